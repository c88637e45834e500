"""The store in memory: the reference that the databases are compared with, and a quick one for tests.

Plain dicts and lists, scanned where a database would have an index. Nothing survives the process.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from everthread.adapters.jobs.memory import MemoryJobs
from everthread.adapters.stores.memory.access import MemoryApiKeys, MemoryReplies
from everthread.adapters.stores.memory.checkpoints import MemoryCheckpoints
from everthread.adapters.stores.memory.items import MemoryItems
from everthread.adapters.stores.memory.log import MemoryConversations, MemoryLog
from everthread.adapters.stores.memory.maintenance import MemoryMaintenance
from everthread.adapters.stores.memory.notes import MemoryNotes
from everthread.adapters.stores.memory.rows import MemoryDatabase
from everthread.adapters.stores.memory.search import MemorySearch
from everthread.adapters.stores.memory.turns import MemoryTurns
from everthread.adapters.stores.memory.views import MemoryCalibrations, MemoryViews
from everthread.adapters.vectors.memory import MemoryVectors
from everthread.core.clock import Clock, system_clock

R = TypeVar("R")


class MemoryStore:
    """Conversations in memory. Everything runs between two awaits, so each call is a transaction."""

    can_block = False

    def __init__(self, clock: Clock = system_clock) -> None:
        self._database = database = MemoryDatabase(clock)
        self.jobs = MemoryJobs()
        self.vectors = MemoryVectors(database.erased_seqs)
        self.turns = MemoryTurns(database)
        self.conversations = MemoryConversations(database)
        self.log = MemoryLog(database, self.turns, self.jobs)
        self.views = MemoryViews(database, self.jobs)
        self.calibrations = MemoryCalibrations()
        self.checkpoints = MemoryCheckpoints(database)
        self.items = MemoryItems(database)
        self.notes = MemoryNotes(database)
        self.search = MemorySearch(database)
        self.api_keys = MemoryApiKeys(database)
        self.replies = MemoryReplies(database)
        self.maintenance = MemoryMaintenance(
            database,
            items=self.items,
            notes=self.notes,
            turns=self.turns,
            vectors=self.vectors,
            jobs=self.jobs,
            api_keys=self.api_keys,
            replies=self.replies,
        )

    async def open(self) -> None:
        self._database.is_open = True

    async def close(self) -> None:
        if self._database.is_open:
            for ref, row in list(self._database.rows.items()):
                if row.info.off_record and not row.is_erased:
                    await self.maintenance.erase(ref.owner, ref.id, None)
        self._database.is_open = False

    async def run_reads(self, work: Callable[[], Coroutine[Any, Any, R]]) -> R:
        return await work()
