"""The PostgreSQL store: the ports of core/ports.py over one database, each in the module that has its code."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from typing import Any, TypeVar

from everthread.adapters.jobs.postgres import PostgresJobs
from everthread.adapters.stores.postgres import tables
from everthread.adapters.stores.postgres.access import PostgresApiKeys, PostgresReplies
from everthread.adapters.stores.postgres.checkpoints import PostgresCheckpoints
from everthread.adapters.stores.postgres.conversations import PostgresConversations
from everthread.adapters.stores.postgres.imports import PostgresImports
from everthread.adapters.stores.postgres.items import PostgresItems
from everthread.adapters.stores.postgres.log import PostgresLog
from everthread.adapters.stores.postgres.maintenance import PostgresMaintenance
from everthread.adapters.stores.postgres.notes import PostgresNotes
from everthread.adapters.stores.postgres.pool import PostgresDatabase
from everthread.adapters.stores.postgres.search import PostgresSearch
from everthread.adapters.stores.postgres.turns import PostgresTurns
from everthread.adapters.stores.postgres.views import PostgresCalibrations, PostgresViews
from everthread.adapters.vectors.postgres import PostgresVectors
from everthread.core.blobs import Blobs
from everthread.core.clock import Clock, system_clock
from everthread.core.timings import Timings

R = TypeVar("R")


class PostgresStore:
    """Conversations in one PostgreSQL database."""

    can_block = False

    def __init__(self, url: str, clock: Clock = system_clock, blobs: Blobs | None = None) -> None:
        self._database = database = PostgresDatabase(url, clock, blobs)
        self.jobs = PostgresJobs(lambda: database.pool)
        self.vectors = PostgresVectors(lambda: database.pool)
        self.conversations = PostgresConversations(database)
        self.log = PostgresLog(database, self.jobs)
        self.views = PostgresViews(database, self.jobs)
        self.calibrations = PostgresCalibrations(database)
        self.checkpoints = PostgresCheckpoints(database)
        self.items = PostgresItems(database)
        self.imports = PostgresImports(database)
        self.notes = PostgresNotes(database)
        self.turns = PostgresTurns(database)
        self.search = PostgresSearch(database)
        self.api_keys = PostgresApiKeys(database)
        self.replies = PostgresReplies(database)
        self.maintenance = PostgresMaintenance(database)

    @property
    def waits(self) -> Timings:
        return self._database.pool.waits if self._database.is_open else Timings()

    async def open(self) -> None:
        if self._database.is_open:
            return
        self._database.acquire()
        async with AsyncExitStack() as on_failure:
            on_failure.push_async_callback(self._database.release)
            await self._database.pool.start()
            await tables.bring_up_to_date(self._database.pool)
            await self.maintenance.finish_what_a_crash_left()
            on_failure.pop_all()

    async def close(self) -> None:
        if not self._database.is_open:
            return
        try:
            await self.maintenance.erase_all(sorted(self.conversations.off_record))
        finally:
            self.conversations.off_record.clear()
            await self._database.release()

    async def run_reads(self, work: Callable[[], Coroutine[Any, Any, R]]) -> R:
        return await work()
