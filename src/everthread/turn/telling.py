"""What a turn tells, on its way to whoever listens and to the store.

- Events are numbered as they are told, and lie in one list. A reader walks along it at its own pace, from any number
  on, and takes what lies ready at a time. So a slow reader holds up nobody, and a token costs an append to a list.
- A reader may ask for a pause after each time that it was told something: while tokens come faster than that, one
  wake-up tells several, and they cost hardly more than one. What comes after a silence is told at once.
- Nothing is written per token: a keeper stores what is new every half a second, and the last of it goes into the
  transaction that ends the turn.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from itertools import groupby
from typing import Any, Final

from everthread.core.errors import StoreError
from everthread.core.turn_events import Thinking, Token, TurnEvent, kept
from everthread.core.turns import EventBatch

KEEP_SECONDS: Final = 0.5
MOST_EVENTS: Final = 256
"""At a time, so that a long turn that is told again does not keep the loop to itself."""
_BREATH_SECONDS: Final = 0.005
"""How long a model that never waits may keep the loop to itself."""

Make = Callable[[int], TurnEvent]
"""From the number it gets to the event."""


class Teller:
    """The events of one turn."""

    def __init__(self, turn_id: str) -> None:
        self.turn_id = turn_id
        self.events: list[TurnEvent] = []
        self._kept = 0
        self.keeping = asyncio.Lock()
        """Held while events are stored: the end of the turn waits for what is under way, so that none is missing."""
        self._is_closed = False
        self._waiting: list[asyncio.Future[None]] = []
        self._breathed = time.perf_counter()

    # -- telling -------------------------------------------------------------------------------------------

    def tell(self, make: Make) -> TurnEvent:
        """The next event."""
        event = make(len(self.events) + 1)
        self.events.append(event)
        self._wake()
        return event

    def token(self, text: str, message_id: str) -> None:
        """A piece of the answer."""
        self.events.append(Token(len(self.events) + 1, text, message_id))
        if self._waiting:
            self._wake()

    def thinking(self, text: str, message_id: str) -> None:
        """A piece of reasoning."""
        self.events.append(Thinking(len(self.events) + 1, text, message_id))
        if self._waiting:
            self._wake()

    def is_out_of_breath(self) -> bool:
        """Whether others have not run for a while, and should."""
        return time.perf_counter() - self._breathed > _BREATH_SECONDS

    async def breathe(self) -> None:
        """Let others run."""
        await asyncio.sleep(0)
        self._breathed = time.perf_counter()

    def close(self) -> None:
        """There is no more to come."""
        self._is_closed = True
        self._wake()

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)

    # -- listening -----------------------------------------------------------------------------------------

    async def listen(self, after: int = 0) -> AsyncIterator[TurnEvent]:
        """Every event with a greater number, to the end of the turn; pieces of a text that lie ready are one."""
        async for batch in self.batches(after):
            for event in joined(batch):
                yield event

    async def batches(self, after: int = 0, pause_seconds: float = 0.0) -> AsyncIterator[Sequence[TurnEvent]]:
        """The same, each as it was told: at a time as many as lie ready, and that not sooner than after a pause."""
        clock = asyncio.get_running_loop().time
        events, position, quiet_until = self.events, after, 0.0
        while True:
            if position < len(events):
                if (pause := quiet_until - clock()) > 0 and len(events) - position < MOST_EVENTS:
                    await asyncio.sleep(pause)
                batch = events[position : position + MOST_EVENTS]
                position += len(batch)
                yield batch
                quiet_until = clock() + pause_seconds
            elif self._is_closed:
                return
            else:
                await self._news()

    def _news(self) -> asyncio.Future[None]:
        """Done when there is something new."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        return future

    # -- the end -------------------------------------------------------------------------------------------

    def last(self, make: Make) -> tuple[TurnEvent, list[EventBatch]]:
        """The event that ends the turn, and all that is to be stored with it; told by `publish` when that is done."""
        event = make(len(self.events) + 1)
        fresh = [*self.events[self._kept :], event]
        self._kept = len(self.events) + 1
        return event, [EventBatch(turn_id=self.turn_id, events=[kept(one) for one in fresh])]

    def publish(self, event: TurnEvent) -> None:
        """Tell it."""
        self.events.append(event)
        self._wake()

    # -- keeping -------------------------------------------------------------------------------------------

    def unkept(self) -> list[EventBatch]:
        """What was told since this was last asked, as a batch to be stored."""
        fresh = self.events[self._kept :]
        self._kept = len(self.events)
        return [EventBatch(turn_id=self.turn_id, events=[kept(event) for event in fresh])] if fresh else []

    async def keep_going(self, store: Callable[[EventBatch], Coroutine[Any, Any, None]]) -> None:
        """Store what is new, twice a second, until cancelled."""
        while True:
            await asyncio.sleep(KEEP_SECONDS)
            async with self.keeping:
                for batch in self.unkept():
                    try:
                        await store(batch)
                    except StoreError:  # busy, full or away: the next time, or with the end
                        self._kept = batch.first - 1


def joined(events: Sequence[TurnEvent]) -> Iterator[TurnEvent]:
    """The same, with pieces of one text that follow each other as one; their last number stands for all of them."""
    for (kind, message_id), run in groupby(events, _text_of):
        if message_id is None:
            yield from run
            continue
        pieces = [event for event in run if isinstance(event, Token | Thinking)]
        yield (
            pieces[0] if len(pieces) == 1 else kind(pieces[-1].number, "".join(one.text for one in pieces), message_id)
        )


def _text_of(event: TurnEvent) -> tuple[type[Token] | type[Thinking], str] | tuple[Any, None]:
    """Which text an event is a piece of, if it is one."""
    return (type(event), event.message_id) if isinstance(event, Token | Thinking) else (type(event), None)
