"""The events of one run: at once to whoever follows it here, and in batches to the database.

A token is never a write of its own: events wait until there are many, or some bytes, or a quarter of a second has
passed. Stored events leave memory after a while; a reader so slow that it misses them reads them from the database,
as does one that comes after the end or after a restart. Numbers have no gaps either way.

Stored events are deltas (`DeltaCodec`): a graph streams its whole state after each step, and a message's metadata with
each of its tokens. Stored as they come, 50 steps over a history of 300 messages are 15 MB; as deltas they are the
history once, and then what was added.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import orjson

from everthread.core.errors import EverthreadError
from everthread.core.nouns import Ref
from everthread.core.turns import EventBatch, StoredEvent, Turns
from everthread.http.protocol.serialization import JsonObject, dumps

_LOG = logging.getLogger("everthread.http")
BATCH_EVENTS = 256
BATCH_BYTES = 128 * 1024
BATCH_SECONDS = 0.25
CACHED_EVENTS = 4096
CACHED_BYTES = 4 * 1024 * 1024
_PAGE = 1000


class RunEvent(NamedTuple):
    """One event, as a reader gets it."""

    number: int
    kind: str
    data: bytes
    """JSON."""


class RunEventLog:
    """The events of one run of this process."""

    def __init__(self, turns: Turns, ref: Ref, turn_id: str, holder: str) -> None:
        self._turns = turns
        self._ref = ref
        self._turn_id = turn_id
        self._holder = holder
        self._encoder = DeltaCodec()
        self._recent: deque[RunEvent] = deque()
        self._recent_bytes = 0
        self._unwritten: list[StoredEvent] = []
        self._unwritten_bytes = 0
        self._has_news = asyncio.Event()
        self._is_due = asyncio.Event()
        self._writer = asyncio.create_task(self._write_batches())
        self.last = 0
        """The number of the newest event."""
        self.is_closed = False

    def append(self, kind: str, value: object) -> None:
        """Add an event, for readers and for the database."""
        data = dumps(value)
        self.last += 1
        self._recent.append(RunEvent(self.last, kind, data))
        self._unwritten.append(StoredEvent(self.last, kind, self._encoder.encode(kind, json.loads(data))))
        self._recent_bytes += len(data)
        self._unwritten_bytes += len(data)
        self._has_news.set()
        if self._unwritten_bytes >= BATCH_BYTES or len(self._unwritten) >= BATCH_EVENTS:
            self._is_due.set()

    async def close(self) -> None:
        """Write what is not written yet. `release` lets the readers go, once the run's row says how it ended."""
        self.is_closed = True
        self._is_due.set()
        await self._writer

    def release(self) -> None:
        """Wake the readers: there will be no more events."""
        self._has_news.set()

    async def after(self, number: int) -> list[RunEvent] | None:
        """The events after one, as soon as there are any; [] at the end; None when the database must be read."""
        while number >= self.last and not self.is_closed:
            self._has_news.clear()
            await self._has_news.wait()
        if number >= self.last:
            return []
        first = self._recent[0].number if self._recent else self.last + 1
        if number + 1 < first:
            return None
        return [self._recent[index] for index in range(number + 1 - first, len(self._recent))]

    async def _write_batches(self) -> None:
        while not self.is_closed or self._unwritten:
            with suppress(TimeoutError):
                async with asyncio.timeout(BATCH_SECONDS):
                    await self._is_due.wait()
            self._is_due.clear()
            if self._unwritten:
                await self._write()
            self._evict()

    async def _write(self) -> None:
        batch, self._unwritten, self._unwritten_bytes = self._unwritten, [], 0
        try:
            await self._turns.add_events(self._ref, self._holder, EventBatch(turn_id=self._turn_id, events=batch))
        except EverthreadError as problem:
            if problem.retryable and not self.is_closed:
                self._unwritten = [*batch, *self._unwritten]
            else:  # the run goes on for those who follow it now; whoever comes later misses these events
                _LOG.error("run events were not stored", exc_info=problem, extra={"turn_id": self._turn_id})

    def _evict(self) -> None:
        """Drop the oldest events from memory, but none that is not in the database yet, and never the newest."""
        written_to = self._unwritten[0].number - 1 if self._unwritten else self.last
        while (len(self._recent) > CACHED_EVENTS or self._recent_bytes > CACHED_BYTES) and len(self._recent) > 1:
            if self._recent[0].number > written_to:
                return
            self._recent_bytes -= len(self._recent.popleft().data)


async def read_stored_events(turns: Turns, ref: Ref, turn_id: str) -> AsyncIterator[RunEvent]:
    """The events of a run that are in the database, from the first: each is a delta to the one before."""
    decoder = DeltaCodec()
    number = 0
    while page := await turns.events(ref, turn_id, after=number, limit=_PAGE):
        for event in page:
            yield RunEvent(event.number, event.kind, dumps(decoder.decode(event.kind, dict(event.body))))
        number = page[-1].number


# -- deltas ----------------------------------------------------------------------------------------------------------

_WHOLE = "="
"""A value in full."""
_MEMBERS = "~"
"""Each member of an object or list by itself; an empty delta says that one is unchanged."""
_KEPT, _ADDED = "n", "+"
"""A list: how many of its first elements are unchanged, and those that follow."""


class DeltaCodec:
    """Writes each event as its difference to the one of the same kind before, and reads it back.

        encoder = DeltaCodec(); stored = [encoder.encode(kind, data) for …]
        decoder = DeltaCodec(); data = decoder.decode(kind, stored)      in the same order

    Only whole members of an object or list, and the beginning of a list in it, are taken from the event before. Data
    are plain JSON.
    """

    def __init__(self) -> None:
        self._previous: dict[str, Any] = {}

    def encode(self, kind: str, data: Any) -> JsonObject:
        before, self._previous[kind] = self._previous.get(kind), data
        if isinstance(before, dict) and isinstance(data, dict) and before:
            return {_MEMBERS: {key: _encode_member(before.get(key), value) for key, value in data.items()}}
        if isinstance(before, list) and isinstance(data, list) and len(before) == len(data):
            return {_MEMBERS: [_encode_member(old, new) for old, new in zip(before, data, strict=True)]}
        return {_WHOLE: data}

    def decode(self, kind: str, delta: Mapping[str, Any]) -> Any:
        before: Any = self._previous.get(kind)
        if _WHOLE in delta:
            data = delta[_WHOLE]
        elif isinstance(members := delta[_MEMBERS], dict):
            data = {key: _decode_member(before.get(key), value) for key, value in members.items()}
        else:
            data = [_decode_member(old, value) for old, value in zip(before, members, strict=True)]
        self._previous[kind] = data
        return data


def _encode_member(before: Any, data: Any) -> JsonObject:
    if before is not None and _is_same_json(before, data):
        return {}
    if isinstance(before, list) and isinstance(data, list):
        shared = 0
        for old, new in zip(before, data, strict=False):
            if not _is_same_json(old, new):
                break
            shared += 1
        return {_KEPT: shared, _ADDED: data[shared:]}
    return {_WHOLE: data}


def _is_same_json(before: Any, data: Any) -> bool:
    """Python calls 1 and True equal, and objects whose members stand in another order; JSON does not."""
    return bool(before == data) and orjson.dumps(before) == orjson.dumps(data)


def _decode_member(before: Any, delta: JsonObject) -> Any:
    if _WHOLE in delta:
        return delta[_WHOLE]
    return before[: delta[_KEPT]] + delta[_ADDED] if _ADDED in delta else before
