"""The events of a run from the store: for a reader that comes after the end, or whose run is in another process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Final, Generic

from everthread.core.cancellation import wait_for_event
from everthread.core.nouns import Ref
from everthread.core.ports import Store
from everthread.history.turn_events import read_events
from everthread.runs.delta_codec import MissingBase
from everthread.runs.event_log import E, EventCodec

POLL_SECONDS: Final = 0.25
"""How often a run of another process is read again if no notification arrives."""


class StoredEvents(Generic[E]):
    """The stored events of one run."""

    def __init__(self, store: Store, ref: Ref, run_id: str, make_codec: Callable[[], EventCodec[E]]) -> None:
        self._store = store
        self._ref = ref
        self._run_id = run_id
        self._make_codec = make_codec

    async def read(self, after: int) -> AsyncIterator[Sequence[E]]:
        """All that is stored after a number, in batches."""
        reader = _Reader(self._store, self._ref, self._run_id, self._make_codec(), after)
        async for batch in reader.read():
            yield batch

    async def follow(self, after: int) -> AsyncIterator[Sequence[E]]:
        """Read what is stored and what comes, to the end of the run."""
        reader = _Reader(self._store, self._ref, self._run_id, self._make_codec(), after)
        with watched(self._store, self._ref) as watch:
            while True:
                watch.clear()
                turn = await self._store.turns.get(
                    self._ref, self._run_id
                )  # first: of one that has ended, all is there
                async for batch in reader.read():
                    yield batch
                if turn.state.is_final:
                    return
                await watch.wait(POLL_SECONDS)


class _Reader(Generic[E]):
    """Reads the events of a run; each `read` continues where the last one ended."""

    def __init__(self, store: Store, ref: Ref, run_id: str, codec: EventCodec[E], after: int) -> None:
        self._source = (store, ref, run_id)
        self._codec = codec
        self._after = after
        self._position = 0 if codec.needs_all else after

    async def read(self) -> AsyncIterator[Sequence[E]]:
        async for page in read_events(*self._source, self._position):
            wanted = []
            for stored in page:
                with suppress(MissingBase):
                    event = self._codec.decode(stored)
                    if event.number > self._after:
                        wanted.append(event)
            self._position = page[-1].number
            if wanted:
                yield wanted


class Watch:
    """Whether something has changed since it was cleared."""

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self.clear = self._event.clear
        self.set = self._event.set

    async def wait(self, seconds: float) -> None:
        """Wait for the next change, at most so long."""
        await wait_for_event(self._event, seconds)


@contextmanager
def watched(store: Store, ref: Ref, *, state_only: bool = False) -> Iterator[Watch]:
    """Watch the turns of a conversation. Clear the watch, look, then wait: so no change is missed in between."""
    watch = Watch()
    unsubscribe = store.turns.subscribe(ref, lambda change: watch.set() if change.is_state or not state_only else None)
    try:
        yield watch
    finally:
        unsubscribe()
