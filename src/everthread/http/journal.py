"""What a run tells while it runs: at once to whoever follows it here, and in batches to the database.

A token is never a write of its own: events wait until there are many, or some bytes, or a quarter of a second has
passed. Those that are kept leave the memory after a while; a reader so slow that it misses them reads them from the
database, as one does that comes after the end or after a restart. Numbers have no gaps either way.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from everthread.core.errors import EverthreadError
from everthread.core.nouns import Ref
from everthread.core.turns import EventBatch, StoredEvent, Turns

_LOG = logging.getLogger("everthread.http")
BATCH_EVENTS = 256
BATCH_BYTES = 128 * 1024
BATCH_SECONDS = 0.25
REMEMBERED_EVENTS = 4096
REMEMBERED_BYTES = 4 * 1024 * 1024
_PAGE = 1000


class Told(NamedTuple):
    """One event, as a reader gets it."""

    number: int
    kind: str
    shown: bytes
    """What it says, as JSON."""


Reviving = Callable[[StoredEvent], bytes]
"""From an event as it is kept to what it says; asked for each event of a run in order, from the first on."""


class Journal:
    """The events of one run of this process."""

    def __init__(self, turns: Turns, ref: Ref, turn_id: str, holder: str) -> None:
        self._turns = turns
        self._ref = ref
        self._turn_id = turn_id
        self._holder = holder
        self._told: deque[Told] = deque()
        self._bytes = 0
        self._waiting: list[StoredEvent] = []
        self._waiting_bytes = 0
        self._news = asyncio.Event()
        self._due = asyncio.Event()
        self._keeping = asyncio.create_task(self._keep_all())
        self.last = 0
        """The number of the newest event."""
        self.is_closed = False

    def tell(self, kind: str, shown: bytes, kept: Mapping[str, Any]) -> None:
        """Say something, to readers as `shown`; `kept` is what the database gets."""
        self.last += 1
        self._told.append(Told(self.last, kind, shown))
        self._waiting.append(StoredEvent(self.last, kind, kept))
        self._bytes += len(shown)
        self._waiting_bytes += len(shown)
        self._news.set()
        if self._waiting_bytes >= BATCH_BYTES or len(self._waiting) >= BATCH_EVENTS:
            self._due.set()

    async def close(self) -> None:
        """Keep what is not kept yet. Readers are let go by `release`, when the run's row says how it ended."""
        self.is_closed = True
        self._due.set()
        await self._keeping

    def release(self) -> None:
        """There will be no more."""
        self._news.set()

    async def after(self, number: int) -> list[Told] | None:
        """What comes after an event, as soon as there is something; [] at the end; None when it is to be read from the
        database."""
        while number >= self.last and not self.is_closed:
            self._news.clear()
            await self._news.wait()
        if number >= self.last:
            return []
        first = self._told[0].number if self._told else self.last + 1
        if number + 1 < first:
            return None
        return [self._told[place] for place in range(number + 1 - first, len(self._told))]

    async def _keep_all(self) -> None:
        while not self.is_closed or self._waiting:
            await self._wait_until_due()
            if self._waiting:
                await self._keep()
            self._forget()

    async def _wait_until_due(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(BATCH_SECONDS):
                await self._due.wait()
        self._due.clear()

    async def _keep(self) -> None:
        batch, self._waiting, self._waiting_bytes = self._waiting, [], 0
        try:
            await self._turns.add_events(self._ref, self._holder, EventBatch(turn_id=self._turn_id, events=batch))
        except EverthreadError as problem:
            if problem.retryable and not self.is_closed:
                self._waiting = [*batch, *self._waiting]
            else:  # the run goes on and those who follow it hear it; whoever comes later does not
                _LOG.error("events of a run are not kept", exc_info=problem, extra={"turn_id": self._turn_id})

    def _forget(self) -> None:
        """Let go of what is kept, but for the newest."""
        kept_to = self._waiting[0].number - 1 if self._waiting else self.last
        while (len(self._told) > REMEMBERED_EVENTS or self._bytes > REMEMBERED_BYTES) and len(self._told) > 1:
            if self._told[0].number > kept_to:
                return
            self._bytes -= len(self._told.popleft().shown)


async def kept_events(turns: Turns, ref: Ref, turn_id: str, revive: Reviving) -> AsyncIterator[Told]:
    """The events of a run that are in the database."""
    number = 0
    while page := await turns.turn_events(ref, turn_id, after=number, limit=_PAGE):
        for event in page:
            yield Told(event.number, event.kind, revive(event))
        number = page[-1].number
