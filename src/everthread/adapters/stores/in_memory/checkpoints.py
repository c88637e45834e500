"""Checkpoints in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from everthread.adapters.stores.in_memory.rows import CheckpointRows, InMemoryDatabase
from everthread.core.checkpoints import (
    CheckpointNeeds,
    CheckpointQuery,
    CheckpointsSeen,
    ListedCheckpoint,
    SavedCheckpoint,
)
from everthread.core.nouns import Ref


class InMemoryCheckpoints:
    """`store.checkpoints` of core/ports.py."""

    def __init__(self, database: InMemoryDatabase) -> None:
        self._database = database

    def _of(self, ref: Ref) -> CheckpointRows:
        row = self._database.rows.get(ref)
        return CheckpointRows() if row is None or row.is_erased else row.checkpoints

    async def get(self, ref: Ref, namespace: str, id: str | None) -> SavedCheckpoint | None:
        return self._of(ref).read(namespace, id)

    async def list(self, query: CheckpointQuery) -> Sequence[ListedCheckpoint]:
        found = [
            ListedCheckpoint(ref.id, saved)
            for ref in sorted(self._database.rows)
            if ref.owner == query.owner and query.conversation in (None, ref.id)
            for saved in self._of(ref).listed(query, ref.id)
        ]
        return found[: query.limit]

    async def all(self, ref: Ref) -> CheckpointsSeen:
        return self._of(ref).look(CheckpointNeeds(everything=True))

    async def ancestors(self, ref: Ref, namespace: str, id: str, *, limit: int) -> Sequence[SavedCheckpoint]:
        return self._of(ref).ancestors(namespace, id, limit)

    async def blobs(self, ref: Ref, digests: Sequence[bytes]) -> Mapping[bytes, bytes]:
        kept = self._of(ref).blobs
        return {digest: kept[digest] for digest in digests if digest in kept}

    async def conversations(self, owner: str | None, *, run_ids: Sequence[str] | None) -> Sequence[Ref]:
        mine = [ref for ref in sorted(self._database.rows) if owner in (None, ref.owner)]
        return [ref for ref in mine if self._of(ref).is_of(run_ids)]
