"""Checkpoints of subgraphs that came before the one they were started from.

LangGraph hands over the checkpoint that a subgraph was started from when the subgraph is at work already, or at the end
of the run. Until then nobody knows which of the subgraph's messages are only handed down: its checkpoints are stored
with all messages as bytes, and wait here to be put again.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple
from weakref import WeakSet

from langgraph.checkpoint.base import Checkpoint
from langgraph.checkpoint.serde.base import SerializerProtocol

from everthread.adapters.checkpoints.threads import CheckpointAddress
from everthread.core.nouns import Ref
from everthread.core.recent import forget_on_erase

MAX_THREADS = 1_000
"""A run that died leaves its own here. What is displaced stays as it is stored: readable, and not in the log."""
LONGEST_SECONDS = 60.0
"""After so long the run has died, and an erase anywhere takes its messages out of memory."""


class Put(NamedTuple):
    """What LangGraph's `put` was called with."""

    address: CheckpointAddress
    checkpoint: Checkpoint
    metadata: Mapping[str, Any]
    new_versions: Mapping[str, Any]
    serde: SerializerProtocol


class Start(NamedTuple):
    """The checkpoint of a graph that a subgraph was started from."""

    namespace: str
    id: str


def start_of(put: Put) -> Start | None:
    """LangGraph keeps, in the metadata of a subgraph's checkpoint, the newest of each graph around it."""
    parents: Mapping[str, str] = put.metadata.get("parents") or {}
    namespace = put.address.namespace
    around = [one for one in parents if one != namespace and (not one or namespace.startswith(f"{one}|"))]
    return Start(nearest := max(around, key=len), parents[nearest]) if around else None


class _Waiting(NamedTuple):
    start: Start
    put: Put
    since: float


class EarlyPuts:
    """Those of the threads used last. Any number of threads of the process may call."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._waiting: OrderedDict[Ref, list[_Waiting]] = OrderedDict()
        _in_use.add(self)

    def add(self, ref: Ref, start: Start, put: Put) -> None:
        """Keep a put until that of its start comes."""
        with self._lock:
            self._waiting.setdefault(ref, []).append(_Waiting(start, put, self._clock()))
            self._waiting.move_to_end(ref)
            while len(self._waiting) > MAX_THREADS:
                self._waiting.popitem(last=False)

    def has(self, ref: Ref, id: str) -> bool:
        """Whether a checkpoint itself came too early."""
        with self._lock:
            return any(one.put.checkpoint["id"] == id for one in self._waiting.get(ref, ()))

    def take(self, ref: Ref, namespace: str, id: str) -> Sequence[Put]:
        """Remove and return the puts that were started from a checkpoint, or from an older one that never came."""
        with self._lock:
            due: list[_Waiting] = []
            rest: list[_Waiting] = []
            for one in self._waiting.get(ref, ()):
                (due if one.start.namespace == namespace and one.start.id <= id else rest).append(one)
            self._keep(ref, rest)
        return [one.put for one in due]

    def forget_dead(self) -> None:
        """Forget what waits in vain."""
        with self._lock:
            longest = self._clock() - LONGEST_SECONDS
            for ref, waiting in list(self._waiting.items()):
                self._keep(ref, [one for one in waiting if one.since > longest])

    def _keep(self, ref: Ref, waiting: list[_Waiting]) -> None:
        if waiting:
            self._waiting[ref] = waiting
        else:
            self._waiting.pop(ref, None)


_in_use: WeakSet[EarlyPuts] = WeakSet()


@forget_on_erase
def _forget_dead() -> None:
    for puts in list(_in_use):
        puts.forget_dead()
