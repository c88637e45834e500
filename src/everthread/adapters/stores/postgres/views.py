"""What model views are built from, in PostgreSQL: compactions, their settings, and manifests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from everthread.adapters.jobs.postgres import PostgresJobs, put
from everthread.adapters.stores.packed_records import pack, unpack
from everthread.adapters.stores.postgres import compactions, log
from everthread.adapters.stores.postgres import statements as sql
from everthread.adapters.stores.postgres.blobs import fill_pairs
from everthread.adapters.stores.postgres.pool import Connection, PostgresDatabase
from everthread.adapters.stores.postgres.statements import ConversationKey
from everthread.core.compactions import Compaction
from everthread.core.errors import NotFound
from everthread.core.jobs import NewJob
from everthread.core.log import BranchName, CompactionQuery
from everthread.core.nouns import Ref
from everthread.core.paths import path_depth, path_segments
from everthread.core.ports import CompactionPosition, PolicyChange, ViewInputs

_SERVER = ConversationKey("", 0)
"""The key, used by no conversation, under which the settings of all conversations are stored."""


class PostgresViews:
    """`store.views` of core/ports.py."""

    def __init__(self, database: PostgresDatabase, jobs: PostgresJobs) -> None:
        self._database = database
        self._jobs = jobs

    async def inputs(self, ref: Ref, branch: BranchName) -> ViewInputs:
        found = await self._database.pool.read(lambda c: read_inputs(c, ref, branch))
        return replace(found, pinned=await fill_pairs(found.pinned, self._database.blobs)) if found.pinned else found

    async def compactions(self, ref: Ref, query: CompactionQuery) -> Sequence[Compaction]:
        async def work(connection: Connection) -> Sequence[Compaction]:
            return await compactions.find(connection, (await log.living_head(connection, ref))[0], query)

        return await self._database.pool.read(work)

    async def all_compactions(self, ref: Ref, *, after: CompactionPosition | None, limit: int) -> Sequence[Compaction]:
        async def work(connection: Connection) -> Sequence[Compaction]:
            return await compactions.page(connection, (await log.living_head(connection, ref))[0], after, limit)

        return await self._database.pool.read(work)

    async def change_policy(self, ref: Ref | None, change: PolicyChange) -> None:
        async def work(connection: Connection) -> None:
            await connection.execute(sql.LOCK_POLICIES)
            key = await _key(connection, ref)
            found = await _policies(connection, key)
            policy = change(found.get(_SERVER.number), found.get(key.number))
            if policy is None:
                await connection.execute(sql.DELETE_POLICY, key.owner, [key.number])
            else:
                await connection.execute(sql.SET_POLICY, *key, policy)
            await connection.execute(sql.SET_COMPACTION_CHECK_AT, *key, 1)

        await self._database.pool.write(work)

    async def policy(self, ref: Ref | None) -> bytes | None:
        async def work(connection: Connection) -> bytes | None:
            key = await _key(connection, ref)
            return (await _policies(connection, key)).get(key.number)

        return await self._database.pool.read(work)

    async def keep_manifest(
        self, ref: Ref, id: str, manifest: bytes, shared: Mapping[str, bytes], jobs: Sequence[NewJob] = ()
    ) -> None:
        now = self._database.now()

        async def work(connection: Connection) -> None:
            key = await _key(connection, ref)
            await connection.execute(sql.KEEP_MANIFEST, *key, id, pack(manifest), now)
            await connection.execute(sql.KEEP_PROMPTS, *key, list(shared), list(shared.values()))
            await put(connection, key.number, ref, jobs, now)

        await self._database.pool.write(work)
        if jobs:
            self._jobs.ring(jobs)

    async def prompts(self, ref: Ref, digests: Sequence[str]) -> Mapping[str, bytes]:
        async def work(connection: Connection) -> Mapping[str, bytes]:
            rows = await connection.fetch(sql.PROMPTS, *await _key(connection, ref), list(digests))
            return {row[0]: row[1] for row in rows}

        return await self._database.pool.read(work)

    async def manifest_ids(self, ref: Ref, *, after: str, limit: int) -> Sequence[str]:
        async def work(connection: Connection) -> Sequence[str]:
            rows = await connection.fetch(sql.MANIFEST_IDS, *await _key(connection, ref), after, limit)
            return [row[0] for row in rows]

        return await self._database.pool.read(work)

    async def manifest(self, ref: Ref, id: str) -> bytes:
        async def work(connection: Connection) -> bytes:
            found: bytes | None = await connection.fetchval(sql.MANIFEST, *await _key(connection, ref), id)
            if found is None:
                raise NotFound(f"no context {id!r} was kept for conversation {ref.id!r}")
            return unpack(found)

        return await self._database.pool.read(work)


class PostgresCalibrations:
    """`store.calibrations` of core/ports.py."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database

    async def get(self, model: str) -> tuple[float, int] | None:
        found = await self._database.pool.read(lambda c: c.fetchrow(sql.CALIBRATION, model))
        return None if found is None else (found[0], found[1])

    async def keep(self, model: str, factor: float, samples: int) -> None:
        await self._database.pool.write(lambda c: c.execute(sql.KEEP_CALIBRATION, model, factor, samples))


async def read_inputs(connection: Connection, ref: Ref, branch: BranchName) -> ViewInputs:
    """Everything a view of a path needs but the messages."""
    key, head, active = await log.living_head(connection, ref)
    is_plain = branch is None and active.parent is None
    rows = [active] if is_plain else await log.all_branches(connection, key)
    named = await log.by_seq(connection, key, [branch]) if isinstance(branch, int) else []
    by_number = {row.number: row for row in rows}
    found = path_segments(by_number, head, branch, named)
    policies = {row[0]: row[1] for row in await connection.fetch(sql.POLICIES, *key)}
    summaries = await compactions.summaries_of(connection, key, found)
    covered = summaries[-1].last_seq if summaries else 0
    return ViewInputs(
        entry_count=head.entry_count,
        segments=found,
        leaf_depth=path_depth(by_number, head, branch, named),
        summaries=summaries,
        covered_depth=await connection.fetchval(sql.DEPTH, *key, covered) if covered else 0,
        was_undone=await compactions.was_undone(connection, key, found, covered),
        pinned=await log.pinned(connection, key),
        quarantined=await log.quarantined(connection, key),
        policies=(policies.get(_SERVER.number), policies.get(key.number)),
    )


async def _key(connection: Connection, ref: Ref | None) -> ConversationKey:
    return _SERVER if ref is None else (await log.living_head(connection, ref))[0]


async def _policies(connection: Connection, key: ConversationKey) -> dict[int, bytes]:
    """Return the settings of all conversations and of one, by conversation number, as far as they are set."""
    return {row[0]: row[1] for row in await connection.fetch(sql.POLICIES, *key)}
