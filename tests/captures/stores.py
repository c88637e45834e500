"""A store that can be down for a while."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TypeVar

from everthread import Everthread
from everthread.contexts import Means
from everthread.core.clock import system_clock
from everthread.core.errors import StoreBusy
from everthread.core.log import Intent
from everthread.core.nouns import Ref
from everthread.testing import MemoryStore

R = TypeVar("R")


class Faulty(MemoryStore):
    """Refuses every write while it is down."""

    is_down = False

    async def write(self, ref: Ref, intent: Intent[R]) -> R:
        if self.is_down:
            raise StoreBusy("somebody else holds the database; nothing was stored: try again")
        return await super().write(ref, intent)


@asynccontextmanager
async def over(store: MemoryStore) -> AsyncIterator[Everthread]:
    async with Everthread(Means(store=store, clock=system_clock)) as et:
        yield et
