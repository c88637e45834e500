"""What is on its way to the store, so that others can wait for it.

Two kinds of waiting. A saver's own calls share a run lock: LangGraph saves a task's writes and the next checkpoint in
the background, begun in this order but not necessarily finished in it, and a write that arrived after the checkpoint
which applies it would never be named by a list (`InFlight`). Other captures, in any thread or loop, let a
checkpoint go first, because it says where a run goes on (`InFlightPuts`).
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

from everthread.adapters.stores.blocking import Completion
from everthread.core.nouns import Ref
from everthread.instance import Everthread

K = TypeVar("K")


class InFlight(Generic[K]):
    """Calls that have begun and not ended, by the checkpoint or thread they write to."""

    def __init__(self) -> None:
        self._pending: dict[K, list[Completion]] = {}

    @contextmanager
    def track(self, key: K) -> Iterator[Sequence[Completion]]:
        """Register a call while it runs; yields the calls that began before it."""
        before = self.pending(key)
        begun = Completion()
        self._pending[key] = [*before, begun]
        try:
            yield before
        finally:
            self._pending[key].remove(begun)
            if not self._pending[key]:
                del self._pending[key]
            begun.set()

    def pending(self, key: K) -> Sequence[Completion]:
        """What can be waited for with `blocking.wait_for_all`."""
        return [*self._pending.get(key, ())]


_POLL_SECONDS = 0.001
_MAX_WAIT_SECONDS = 10.0
"""A capture waits no longer: better in the wrong place than not in the log."""
_QUIET_POLLS = 2
"""LangGraph begins the next checkpoint when one has ended: it is gone when two looks in a row see none."""


class InFlightPuts:
    """The puts in flight in one database, by thread."""

    def __init__(self) -> None:
        self._counts: Counter[Ref] = Counter()
        self._guard = threading.Lock()

    @contextmanager
    def track(self, ref: Ref) -> Iterator[None]:
        """Register a put of a thread while it runs."""
        with self._guard:
            self._counts[ref] += 1
        try:
            yield
        finally:
            with self._guard:
                self._counts[ref] -= 1
                if not self._counts[ref]:
                    del self._counts[ref]

    async def wait_until_none(self, ref: Ref) -> None:
        """Wait until no put of the thread is in flight."""
        if ref not in self._counts:
            return
        quiet, until = 0, time.monotonic() + _MAX_WAIT_SECONDS
        while quiet < _QUIET_POLLS and time.monotonic() < until:
            await asyncio.sleep(_POLL_SECONDS)
            quiet = 0 if ref in self._counts else quiet + 1


_IN_FLIGHT: WeakKeyDictionary[Everthread, InFlightPuts] = WeakKeyDictionary()


def in_flight_puts(et: Everthread) -> InFlightPuts:
    """The puts in flight of all savers over an open database."""
    return _IN_FLIGHT.setdefault(et, InFlightPuts())
