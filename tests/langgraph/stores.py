"""A store that can be down for a while."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TypeVar

from everthread import Everthread
from everthread.adapters.stores.in_memory.log import InMemoryLog
from everthread.core.clock import system_clock
from everthread.core.errors import StoreBusy
from everthread.core.log import Intent
from everthread.core.nouns import Ref
from everthread.runtime import Runtime
from everthread.testing import InMemoryStore

R = TypeVar("R")


class FaultyLog(InMemoryLog):
    """Refuses every write while its store is down."""

    def __init__(self, store: Faulty) -> None:
        super().__init__(store._database, store.turns, store.jobs)
        self._store = store

    async def write(self, ref: Ref, intent: Intent[R]) -> R:
        if self._store.is_down:
            raise StoreBusy("somebody else holds the database; nothing was stored: try again")
        return await super().write(ref, intent)


class Faulty(InMemoryStore):
    """A store that can be down."""

    is_down = False

    def __init__(self) -> None:
        super().__init__()
        self.log = FaultyLog(self)


@asynccontextmanager
async def over(store: InMemoryStore) -> AsyncIterator[Everthread]:
    async with Everthread(Runtime(store=store, clock=system_clock)) as et:
        yield et
