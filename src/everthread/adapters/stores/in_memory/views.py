"""What model views are built from, in memory: compactions, their settings, and manifests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from everthread.adapters.jobs.in_memory import InMemoryJobs
from everthread.adapters.stores.in_memory.rows import InMemoryDatabase, age
from everthread.compaction.summary_chain import summary_chain
from everthread.core.compactions import Compaction
from everthread.core.entries import HIDDEN_FLAGS, Flag
from everthread.core.errors import NotFound
from everthread.core.jobs import NewJob
from everthread.core.log import BranchName, CompactionQuery
from everthread.core.nouns import Ref
from everthread.core.paths import is_on, path_segments
from everthread.core.ports import MOST_PINNED, CompactionPosition, PolicyChange, ViewInputs


class InMemoryViews:
    """`store.views` of core/ports.py."""

    def __init__(self, database: InMemoryDatabase, jobs: InMemoryJobs) -> None:
        self._database = database
        self._jobs = jobs
        self._policy: bytes | None = None
        """The compaction settings of all conversations."""

    async def inputs(self, ref: Ref, branch: BranchName) -> ViewInputs:
        row = self._database.row(ref)
        named = row.by_seq([branch]) if isinstance(branch, int) else []
        found = path_segments(row.branches, row.head, branch, named)
        summaries = summary_chain(row.compactions.values(), found)
        covered = summaries[-1].last_seq if summaries else 0
        return ViewInputs(
            entry_count=len(row.entries),
            segments=found,
            leaf_depth=row.entries[found[-1].last - 1].depth if found else 0,
            summaries=summaries,
            covered_depth=row.entries[covered - 1].depth if covered else 0,
            was_undone=any(
                one.undone_at is not None and one.last_seq > covered and is_on(found, one.branch, one.last_seq)
                for one in row.compactions.values()
                if one.invalid_at is None
            ),
            pinned=[
                (place, row.entries[place.newest_seq - 1] if place.newest_seq else place)
                for place in row.entries
                if place.is_place and place.flags & Flag.PINNED and not place.flags & HIDDEN_FLAGS
            ][-MOST_PINNED:],
            policies=(self._policy, row.policy),
            quarantined=[
                (place.branch, place.seq) for place in row.entries if place.is_place and place.flags & Flag.QUARANTINED
            ][-MOST_PINNED:],
        )

    async def compactions(self, ref: Ref, query: CompactionQuery) -> Sequence[Compaction]:
        return self._database.row(ref).compactions_for(query)

    async def all_compactions(self, ref: Ref, *, after: CompactionPosition | None, limit: int) -> Sequence[Compaction]:
        known = sorted(self._database.row(ref).compactions.values(), key=age)
        return [one for one in known if after is None or age(one) > after][:limit]

    async def change_policy(self, ref: Ref | None, change: PolicyChange) -> None:
        if ref is None:
            self._policy = change(self._policy, self._policy)
        else:
            row = self._database.row(ref)
            row.policy, row.compaction_check_at = change(self._policy, row.policy), 1

    async def policy(self, ref: Ref | None) -> bytes | None:
        return self._policy if ref is None else self._database.row(ref).policy

    async def keep_manifest(
        self, ref: Ref, id: str, manifest: bytes, shared: Mapping[str, bytes], jobs: Sequence[NewJob] = ()
    ) -> None:
        row = self._database.row(ref)
        row.manifests[id] = manifest
        row.prompts.update(shared)
        self._jobs.put_all(ref, jobs, self._database.now())

    async def prompts(self, ref: Ref, digests: Sequence[str]) -> Mapping[str, bytes]:
        kept = self._database.row(ref).prompts
        return {digest: kept[digest] for digest in digests if digest in kept}

    async def manifest_ids(self, ref: Ref, *, after: str, limit: int) -> Sequence[str]:
        return sorted(id for id in self._database.row(ref).manifests if id > after)[:limit]

    async def manifest(self, ref: Ref, id: str) -> bytes:
        try:
            return self._database.row(ref).manifests[id]
        except KeyError:
            raise NotFound(f"no context {id!r} was kept for conversation {ref.id!r}") from None


class InMemoryCalibrations:
    """`store.calibrations` of core/ports.py."""

    def __init__(self) -> None:
        self._calibrations: dict[str, tuple[float, int]] = {}

    async def get(self, model: str) -> tuple[float, int] | None:
        return self._calibrations.get(model)

    async def keep(self, model: str, factor: float, samples: int) -> None:
        self._calibrations[model] = factor, samples


def unsummarised(database: InMemoryDatabase, ref: Ref) -> int:
    """How many messages of the active branch no summary covers."""
    row = database.row(ref)
    found = path_segments(row.branches, row.head, None, [])
    summaries = summary_chain(row.compactions.values(), found)
    covered = row.entries[summaries[-1].last_seq - 1].depth if summaries else 0
    return row.entries[found[-1].last - 1].depth - covered if found else 0
