"""The events of one run, on their way to its listeners and to the store.

- Events are numbered as they are emitted, and stay in one list. Each listener walks along it at its own pace, from any
  number on. So a slow listener holds up nobody, and a token costs one append to a list.
- A listener may ask for a pause after each batch: while tokens come faster than that, one wake-up delivers several,
  which costs hardly more than one. What comes after a silence is delivered at once.
- Nothing is written per token: new events are saved every half second, and the last ones in the transaction that ends
  the run.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from itertools import groupby
from typing import Any, Final

from everthread.core.errors import StoreError
from everthread.core.turn_events import Thinking, Token, TurnEvent, to_stored
from everthread.core.turns import EventBatch

SAVE_SECONDS: Final = 0.5
BATCH_EVENTS: Final = 256
"""At most so many in one batch, so that replaying a long run does not block the loop."""
_MAX_BLOCK_SECONDS: Final = 0.005
"""A model that never awaits anything may block the loop this long."""

MakeEvent = Callable[[int], TurnEvent]
"""Makes the event from the number it is given."""


class EventLog:
    """The events of one run."""

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        self.events: list[TurnEvent] = []
        self.save_lock = asyncio.Lock()
        """Held while events are saved: the run's last transaction waits for it, so that no event is missing."""
        self._saved_count = 0
        self._is_closed = False
        self._waiters: list[asyncio.Future[None]] = []
        self._yielded_at = time.perf_counter()

    # -- emitting ------------------------------------------------------------------------------------------

    def emit(self, make: MakeEvent) -> TurnEvent:
        """Add the next event."""
        event = make(len(self.events) + 1)
        self.publish(event)
        return event

    def emit_token(self, text: str, message_id: str) -> None:
        """Add a piece of the answer."""
        self.events.append(Token(len(self.events) + 1, text, message_id))
        if self._waiters:
            self._wake()

    def emit_thinking(self, text: str, message_id: str) -> None:
        """Add a piece of the model's reasoning."""
        self.events.append(Thinking(len(self.events) + 1, text, message_id))
        if self._waiters:
            self._wake()

    def has_blocked_loop(self) -> bool:
        """Whether other tasks have waited long enough."""
        return time.perf_counter() - self._yielded_at > _MAX_BLOCK_SECONDS

    async def yield_to_loop(self) -> None:
        """Let other tasks run."""
        await asyncio.sleep(0)
        self._yielded_at = time.perf_counter()

    def close(self) -> None:
        """There is no more to come."""
        self._is_closed = True
        self._wake()

    def _wake(self) -> None:
        waiters, self._waiters = self._waiters, []
        for future in waiters:
            if not future.done():
                future.set_result(None)

    # -- listening -----------------------------------------------------------------------------------------

    async def listen(self, after: int = 0) -> AsyncIterator[TurnEvent]:
        """Every event with a greater number, to the end of the run; text that is ready comes in one piece."""
        async for batch in self.batches(after):
            for event in join_text_events(batch):
                yield event

    async def batches(self, after: int = 0, pause_seconds: float = 0.0) -> AsyncIterator[Sequence[TurnEvent]]:
        """The same as emitted, in batches of whatever is ready, with a pause between two batches."""
        clock = asyncio.get_running_loop().time
        events, position, quiet_until = self.events, after, 0.0
        while True:
            if position < len(events):
                if (pause := quiet_until - clock()) > 0 and len(events) - position < BATCH_EVENTS:
                    await asyncio.sleep(pause)
                batch = events[position : position + BATCH_EVENTS]
                position += len(batch)
                yield batch
                quiet_until = clock() + pause_seconds
            elif self._is_closed:
                return
            else:
                news: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                self._waiters.append(news)
                await news

    # -- saving --------------------------------------------------------------------------------------------

    def take_unsaved(self) -> EventBatch | None:
        """What was emitted since this was last called, as a batch to be stored."""
        fresh = self.events[self._saved_count :]
        self._saved_count = len(self.events)
        return EventBatch(turn_id=self.run_id, events=[to_stored(event) for event in fresh]) if fresh else None

    async def save_periodically(self, save: Callable[[EventBatch], Coroutine[Any, Any, None]]) -> None:
        """Store what is new, twice a second, until cancelled."""
        while True:
            await asyncio.sleep(SAVE_SECONDS)
            async with self.save_lock:
                if (batch := self.take_unsaved()) is not None:
                    try:
                        await save(batch)
                    except StoreError:  # busy, full or unreachable: saved next time, or with the run's end
                        self._saved_count = batch.first - 1

    def prepare_last(self, make: MakeEvent) -> tuple[TurnEvent, EventBatch]:
        """The event that ends the run, and all that must be stored with it; `publish` it once that is done."""
        event = make(len(self.events) + 1)
        fresh = [*self.events[self._saved_count :], event]
        self._saved_count = len(self.events) + 1
        return event, EventBatch(turn_id=self.run_id, events=[to_stored(one) for one in fresh])

    def publish(self, event: TurnEvent) -> None:
        """Add an event that has its number already."""
        self.events.append(event)
        self._wake()


def join_text_events(events: Sequence[TurnEvent]) -> Iterator[TurnEvent]:
    """The same events with consecutive pieces of one text joined, under the number of the last of them."""
    for (kind, message_id), group in groupby(events, _text_key):
        if message_id is None:
            yield from group
            continue
        pieces = [event for event in group if isinstance(event, Token | Thinking)]
        if len(pieces) == 1:
            yield pieces[0]
        else:
            yield kind(pieces[-1].number, "".join(piece.text for piece in pieces), message_id)


def _text_key(event: TurnEvent) -> tuple[type[Token] | type[Thinking], str] | tuple[Any, None]:
    """Which text an event is a piece of, if any."""
    return (type(event), event.message_id) if isinstance(event, Token | Thinking) else (type(event), None)
