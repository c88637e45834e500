"""The numbered events of one run in this process, on their way to the store and then to its readers.

- An event is shown to a reader only when it is stored (`EventWriter`), so nobody has seen what a killed process forgot.
- Each reader walks along the list at its own pace, from any number on: a slow one holds up nobody, and a token costs
  one append to a list.
- The oldest stored events of a long run leave memory. A reader so slow that it misses them reads them from the store.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final, Generic, Protocol, TypeVar

from everthread.core.nouns import Ref
from everthread.core.turn_events import Thinking, Token, TurnEvent, from_stored, to_stored
from everthread.core.turns import RESERVED_EVENTS, EventBatch, StoredEvent
from everthread.history.turn_events import without_texts

BATCH_EVENTS: Final = 256
"""At most so many in one batch, so that replaying a long run does not block the loop."""
MOST_IN_MEMORY: Final = 4_096
MOST_BYTES_IN_MEMORY: Final = 4 * 1024 * 1024
_MAX_BLOCK_SECONDS: Final = 0.005
"""A model that never awaits anything may block the loop this long."""


class NumberedEvent(Protocol):
    """Any event: it knows its number in its run."""

    @property
    def number(self) -> int: ...


E = TypeVar("E", bound=NumberedEvent)
E_co = TypeVar("E_co", bound=NumberedEvent, covariant=True)


class EventCodec(Protocol[E]):
    """How the events of one run are stored. Events are encoded and decoded in order, each once."""

    needs_all: bool
    """Whether an event can be decoded only after all those before it."""

    def encode(self, event: E) -> StoredEvent: ...

    def decode(self, stored: StoredEvent) -> E: ...

    def size(self, event: E) -> int:
        """Roughly the bytes it takes in memory, beyond a few hundred."""


class TurnCodec:
    """The events of a turn of our own agent."""

    needs_all = False

    def encode(self, event: TurnEvent) -> StoredEvent:
        return to_stored(event)

    def decode(self, stored: StoredEvent) -> TurnEvent:
        return from_stored(stored)

    def size(self, event: TurnEvent) -> int:
        return 0


class StoredReader(Protocol[E_co]):
    """The stored events of a run, for readers whose events are no longer in memory."""

    def read(self, after: int) -> AsyncIterator[Sequence[E_co]]:
        """All that is stored after a number."""

    def follow(self, after: int) -> AsyncIterator[Sequence[E_co]]:
        """Read what is stored and what comes, to the end of the run."""


class EventLog(Generic[E]):
    """The events of one run."""

    def __init__(
        self,
        ref: Ref,
        run_id: str,
        codec: EventCodec[E],
        *,
        on_emit: Callable[[EventLog[E]], None] | None = None,
        stored: StoredReader[E] | None = None,
    ) -> None:
        """`on_emit` has new events stored; without it, they count as stored at once."""
        self.ref = ref
        self.run_id = run_id
        self.events: list[E] = []
        """The events in memory."""
        self.last = 0
        """The number of the newest event."""
        self._codec = codec
        self._on_emit = on_emit
        self._stored_reader = stored
        self._evicted = 0
        """The number of the newest event that is no longer in memory."""
        self._bytes = 0
        self._encoded: list[StoredEvent] = []
        """The encoded form of the first events in memory; the others have not been handed to the writer yet."""
        self._in_flight: EventBatch | None = None
        """The batch that the writer was given last, until it is known to be stored."""
        self._is_announced = False
        """Whether the writer was told of new events."""
        self._stored = 0
        """The number of the newest event that is stored."""
        self._reserved = RESERVED_EVENTS
        self._end_at = 0
        """The number of the first of the last events, once there are any."""
        self._is_closed = False
        self._is_lost = False
        self._error: Exception | None = None
        self._waiters: list[asyncio.Future[None]] = []
        self._yielded_at = time.perf_counter()

    # -- emitting ------------------------------------------------------------------------------------------

    def emit(self, make: Callable[[int], E]) -> E:
        """Add the next event, made from the number it is given."""
        event = make(self.last + 1)
        self.append(event)
        return event

    def append(self, event: E) -> None:
        """Add an event that has the next number."""
        self.last += 1
        self.events.append(event)
        if self._on_emit is None:
            self._encode_new()
            self.mark_stored(self.last)
        elif not self._is_announced:
            self._is_announced = True
            self._on_emit(self)

    def has_blocked_loop(self) -> bool:
        """Whether this task has kept the loop for too long."""
        return time.perf_counter() - self._yielded_at > _MAX_BLOCK_SECONDS

    async def yield_to_loop(self) -> None:
        """Let other tasks run."""
        await asyncio.sleep(0)
        self._yielded_at = time.perf_counter()

    # -- storing -------------------------------------------------------------------------------------------

    def add_stored(self, events: Sequence[StoredEvent]) -> None:
        """Begin with the events that were stored when the run began."""
        self._encoded += events
        self.events += map(self._codec.decode, events)
        self.last = self._stored = len(events)

    def take_unstored(self) -> EventBatch | None:
        """The next batch to store: what was emitted since the last one, or that one again while it is not stored."""
        self._is_announced = False
        if self._in_flight is None and (fresh := self._encode_new()):
            reserved = 0
            if self.last + RESERVED_EVENTS // 2 > self._reserved:
                reserved = self._reserved = self.last + RESERVED_EVENTS
            self._in_flight = EventBatch(turn_id=self.run_id, events=fresh, reserved=reserved)
        return self._in_flight

    def _encode_new(self) -> Sequence[StoredEvent]:
        begin = len(self._encoded)
        fresh = self.events[begin:]
        self._encoded += map(self._codec.encode, fresh)
        self._bytes += sum(map(self._codec.size, fresh))
        return self._encoded[begin:]

    def mark_stored(self, number: int) -> None:
        """Everything up to this number is stored: show it to the readers."""
        self._in_flight = None
        self._stored = number
        self._wake()
        if len(self.events) > MOST_IN_MEMORY or self._bytes > MOST_BYTES_IN_MEMORY:
            self._evict()

    def _evict(self) -> None:
        """Let go of the older half of what is stored."""
        count = (self._stored - self._evicted) // 2
        self._bytes -= sum(map(self._codec.size, self.events[:count]))
        del self.events[:count], self._encoded[:count]
        self._evicted += count

    def end(self, make: Callable[[int], Sequence[E]], texts: Mapping[str, str]) -> Sequence[EventBatch]:
        """Add the last events, and return what must be stored with them; then call `close`. Called again, it puts
        others in their place.

        `texts` are messages that are in the log by then: their pieces need not be stored a second time.
        """
        if self._end_at:
            self.last = self._end_at - 1
            del self.events[self.last - self._evicted :], self._encoded[self.last - self._evicted :]
        self._end_at = self.last + 1
        last = make(self._end_at)
        self.events += last
        self.last += len(last)
        self._encode_new()
        if not self._evicted:
            events = without_texts(self._encoded, texts)
            return [EventBatch(turn_id=self.run_id, events=events, replaces_earlier=True, earlier=self._stored)]
        repeated = [] if self._in_flight is None else [self._in_flight]
        after = repeated[-1].last if repeated else self._stored
        rest = EventBatch(turn_id=self.run_id, events=self._encoded[after - self._evicted :])
        return [*repeated, rest]

    def close(self) -> None:
        """Everything is stored, and nothing more will come."""
        self._stored = self.last
        self._is_closed = True
        self._wake()

    def lose(self) -> None:
        """Another process has taken the run: what happens to it is read from the store."""
        self._is_lost = self._is_closed = True
        self._wake()

    def fail(self, error: Exception) -> None:
        """The end could not be stored. Readers get the error instead of an event that nobody would see again."""
        self._error = error
        self._is_closed = True
        self._wake()

    # -- reading -------------------------------------------------------------------------------------------

    async def batches(self, after: int = 0) -> AsyncIterator[Sequence[E]]:
        """Every event with a greater number, as soon as it is stored, in batches of whatever is ready, to the end."""
        position = after
        while True:
            if position < self._evicted:
                async for batch in self._reader().read(position):
                    position = batch[-1].number
                    yield batch
                position = max(position, self._evicted)  # the rest was pruned, or erased
            elif position < self._stored:
                begin = position - self._evicted
                batch = self.events[begin : min(begin + BATCH_EVENTS, self._stored - self._evicted)]
                position += len(batch)
                yield batch
            elif self._error is not None:
                raise self._error
            elif self._is_lost:
                async for batch in self._reader().follow(position):
                    yield batch
                return
            elif self._is_closed:
                return
            else:
                news: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                self._waiters.append(news)
                await news

    def _reader(self) -> StoredReader[E]:
        assert self._stored_reader is not None, "events leave memory only where they are stored"
        return self._stored_reader

    def _wake(self) -> None:
        waiters, self._waiters = self._waiters, []
        for future in waiters:
            if not future.done():
                future.set_result(None)


class TurnEventLog(EventLog[TurnEvent]):
    """The events of one turn of our own agent. Nearly all of them are pieces of text."""

    def __init__(
        self,
        ref: Ref,
        run_id: str,
        *,
        on_emit: Callable[[EventLog[TurnEvent]], None] | None = None,
        stored: StoredReader[TurnEvent] | None = None,
    ) -> None:
        super().__init__(ref, run_id, TurnCodec(), on_emit=on_emit, stored=stored)

    def emit_token(self, text: str, message_id: str) -> None:
        """Add a piece of the answer."""
        self.append(Token(self.last + 1, text, message_id))

    def emit_thinking(self, text: str, message_id: str) -> None:
        """Add a piece of the model's reasoning."""
        self.append(Thinking(self.last + 1, text, message_id))

    async def listen(self, after: int = 0) -> AsyncIterator[TurnEvent]:
        """Every event with a greater number, to the end of the run; text that is ready comes in one piece."""
        async for batch in self.batches(after):
            for event in join_text_events(batch):
                yield event


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
    """The text that an event is a piece of, if any."""
    return (type(event), event.message_id) if isinstance(event, Token | Thinking) else (type(event), None)
