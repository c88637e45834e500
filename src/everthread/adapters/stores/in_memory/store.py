"""The store in memory: the reference that the databases are compared with, and a quick one for tests.

Plain dicts and lists, scanned where a database would have an index. Nothing survives the process.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from everthread.adapters.jobs.in_memory import InMemoryJobs
from everthread.adapters.stores.in_memory.access import InMemoryApiKeys, InMemoryReplies
from everthread.adapters.stores.in_memory.checkpoints import InMemoryCheckpoints
from everthread.adapters.stores.in_memory.imports import InMemoryImports
from everthread.adapters.stores.in_memory.items import InMemoryItems
from everthread.adapters.stores.in_memory.log import InMemoryConversations, InMemoryLog
from everthread.adapters.stores.in_memory.maintenance import InMemoryMaintenance
from everthread.adapters.stores.in_memory.notes import InMemoryNotes
from everthread.adapters.stores.in_memory.rows import InMemoryDatabase
from everthread.adapters.stores.in_memory.search import InMemorySearch
from everthread.adapters.stores.in_memory.turns import InMemoryTurns
from everthread.adapters.stores.in_memory.views import InMemoryCalibrations, InMemoryViews, unsummarised
from everthread.adapters.vectors.in_memory import InMemoryVectors
from everthread.core.clock import Clock, system_clock
from everthread.core.timings import Timings

R = TypeVar("R")


class InMemoryStore:
    """Conversations in memory. Everything runs between two awaits, so each call is a transaction."""

    can_block = False

    def __init__(self, clock: Clock = system_clock) -> None:
        self._database = database = InMemoryDatabase(clock)
        self.jobs = InMemoryJobs(lambda ref: unsummarised(database, ref))
        self.vectors = InMemoryVectors(database.erased_seqs)
        self.turns = InMemoryTurns(database)
        self.conversations = InMemoryConversations(database)
        self.log = InMemoryLog(database, self.turns, self.jobs)
        self.views = InMemoryViews(database, self.jobs)
        self.calibrations = InMemoryCalibrations()
        self.checkpoints = InMemoryCheckpoints(database)
        self.items = InMemoryItems(database)
        self.imports = InMemoryImports(database)
        self.notes = InMemoryNotes(database)
        self.search = InMemorySearch(database)
        self.api_keys = InMemoryApiKeys(database)
        self.replies = InMemoryReplies(database)
        self.maintenance = InMemoryMaintenance(
            database,
            items=self.items,
            imports=self.imports,
            notes=self.notes,
            turns=self.turns,
            vectors=self.vectors,
            jobs=self.jobs,
            api_keys=self.api_keys,
            replies=self.replies,
        )

    @property
    def waits(self) -> Timings:
        """Nobody waits."""
        return Timings()

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
