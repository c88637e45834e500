"""The SQLite store: the ports of core/ports.py over one file, each in the module that has its code."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

from everthread.adapters.jobs.sqlite import SqliteJobs
from everthread.adapters.stores.sqlite.access import SqliteApiKeys, SqliteReplies
from everthread.adapters.stores.sqlite.checkpoints import SqliteCheckpoints
from everthread.adapters.stores.sqlite.conversations import SqliteConversations
from everthread.adapters.stores.sqlite.engine import SqliteDatabase
from everthread.adapters.stores.sqlite.imports import SqliteImports
from everthread.adapters.stores.sqlite.items import SqliteItems
from everthread.adapters.stores.sqlite.log import SqliteLog
from everthread.adapters.stores.sqlite.maintenance import SqliteMaintenance
from everthread.adapters.stores.sqlite.notes import SqliteNotes
from everthread.adapters.stores.sqlite.search import SqliteSearch
from everthread.adapters.stores.sqlite.turns import SqliteTurns
from everthread.adapters.stores.sqlite.views import SqliteCalibrations, SqliteViews
from everthread.adapters.vectors.sqlite import SqliteVectors
from everthread.core.blobs import Blobs
from everthread.core.clock import Clock, system_clock
from everthread.core.timings import Timings

R = TypeVar("R")


class SqliteStore:
    """Conversations in one SQLite file."""

    can_block = True

    def __init__(self, path: Path, clock: Clock = system_clock, blobs: Blobs | None = None) -> None:
        self._database = database = SqliteDatabase(path, clock, blobs)
        self.jobs = SqliteJobs(lambda: database.engine)
        self.vectors = SqliteVectors(lambda: database.engine)
        self.conversations = SqliteConversations(database)
        self.log = SqliteLog(database, self.jobs)
        self.views = SqliteViews(database, self.jobs)
        self.calibrations = SqliteCalibrations(database)
        self.checkpoints = SqliteCheckpoints(database)
        self.items = SqliteItems(database)
        self.imports = SqliteImports(database)
        self.notes = SqliteNotes(database)
        self.turns = SqliteTurns(database)
        self.search = SqliteSearch(database)
        self.api_keys = SqliteApiKeys(database)
        self.replies = SqliteReplies(database)
        self.maintenance = SqliteMaintenance(database)

    @property
    def waits(self) -> Timings:
        return self._database.engine.waits if self._database.is_open else Timings()

    async def open(self) -> None:
        if not self._database.is_open:
            await self._database.open()
            await self.maintenance.finish_what_a_crash_left()

    async def close(self) -> None:
        if not self._database.is_open:
            return
        try:
            for ref in sorted(self.conversations.off_record):
                await self.maintenance.erase_if_there(ref)
        finally:
            self.conversations.off_record.clear()
            await self._database.close()

    async def run_reads(self, work: Callable[[], Coroutine[Any, Any, R]]) -> R:
        return await self._database.engine.run_reads(work)
