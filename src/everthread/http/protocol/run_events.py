"""The events of a run of LangGraph's, which are stored as deltas (`runs/delta_codec.py`)."""

from __future__ import annotations

import json
from typing import NamedTuple

from everthread.core.turns import StoredEvent
from everthread.http.protocol.serialization import dumps
from everthread.runs.delta_codec import DeltaCodec
from everthread.runs.event_log import EventLog


class RunEvent(NamedTuple):
    """One event, as a reader gets it."""

    number: int
    kind: str
    data: bytes
    """JSON."""


RunEventLog = EventLog[RunEvent]


class RunCodec:
    """Stores the events of one run as deltas."""

    needs_all = True

    def __init__(self) -> None:
        self._deltas = DeltaCodec()

    def encode(self, event: RunEvent) -> StoredEvent:
        return StoredEvent(event.number, event.kind, self._deltas.encode(event.kind, json.loads(event.data)))

    def decode(self, stored: StoredEvent) -> RunEvent:
        data = self._deltas.decode(stored.kind, dict(stored.body))
        return RunEvent(stored.number, stored.kind, dumps(data))

    def size(self, event: RunEvent) -> int:
        return len(event.data)
