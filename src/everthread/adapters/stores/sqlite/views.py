"""What model views are built from, in SQLite: compactions, their settings, and manifests."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence

from everthread.adapters.jobs.sqlite import SqliteJobs, put
from everthread.adapters.stores.sqlite import compactions, log, manifests
from everthread.adapters.stores.sqlite import statements as sql
from everthread.adapters.stores.sqlite.engine import SqliteDatabase
from everthread.core.compactions import Compaction
from everthread.core.entries import entry_key
from everthread.core.errors import NotFound
from everthread.core.jobs import NewJob
from everthread.core.log import BranchName, CompactionQuery
from everthread.core.nouns import Ref
from everthread.core.paths import path_depth, path_segments
from everthread.core.ports import CompactionPosition, PolicyChange, ViewInputs

_SERVER = 0
"""The number no conversation has: the server's own settings."""


class SqliteViews:
    """`store.views` of core/ports.py."""

    def __init__(self, database: SqliteDatabase, jobs: SqliteJobs) -> None:
        self._database = database
        self._jobs = jobs

    async def inputs(self, ref: Ref, branch: BranchName) -> ViewInputs:
        return await self._database.engine.read(lambda c: read_inputs(c, ref, branch))

    async def compactions(self, ref: Ref, query: CompactionQuery) -> Sequence[Compaction]:
        return await self._database.engine.read(lambda c: compactions.find(c, log.living_head(c, ref)[0], query))

    async def all_compactions(self, ref: Ref, *, after: CompactionPosition | None, limit: int) -> Sequence[Compaction]:
        return await self._database.engine.read(lambda c: compactions.page(c, log.living_head(c, ref)[0], after, limit))

    async def change_policy(self, ref: Ref | None, change: PolicyChange) -> None:
        def work(connection: sqlite3.Connection) -> None:
            number = _SERVER if ref is None else log.living_head(connection, ref)[0]
            found: dict[int, bytes] = dict(connection.execute(sql.POLICIES, (number,)).fetchall())
            policy = change(found.get(_SERVER), found.get(number))
            if policy is None:
                connection.execute(sql.DELETE_POLICY, (number,))
            else:
                connection.execute(sql.SET_POLICY, (number, policy))
            connection.execute(sql.SET_COMPACTION_CHECK_AT, (1, number))

        await self._database.engine.write(work)

    async def policy(self, ref: Ref | None) -> bytes | None:
        def work(connection: sqlite3.Connection) -> bytes | None:
            number = _SERVER if ref is None else log.living_head(connection, ref)[0]
            found: bytes | None = dict(connection.execute(sql.POLICIES, (number,)).fetchall()).get(number)
            return found

        return await self._database.engine.read(work)

    async def keep_manifest(
        self, ref: Ref, id: str, manifest: bytes, shared: Mapping[str, bytes], jobs: Sequence[NewJob] = ()
    ) -> None:
        now = self._database.now()

        def work(connection: sqlite3.Connection) -> None:
            number = log.living_head(connection, ref)[0]
            connection.execute(sql.KEEP_MANIFEST, (number, id, manifests.pack(connection, number, manifest), now))
            for digest, text in shared.items():
                if connection.execute(sql.USE_PROMPT, (number, digest)).rowcount:
                    connection.execute(sql.KEEP_PROMPT, (ref.owner, digest, text))
            put(connection, number, ref.owner, jobs, now)

        await self._database.engine.write(work)
        if jobs:
            self._jobs.ring(jobs)

    async def prompts(self, ref: Ref, digests: Sequence[str]) -> Mapping[str, bytes]:
        def work(connection: sqlite3.Connection) -> Mapping[str, bytes]:
            number = log.living_head(connection, ref)[0]
            found = (
                (digest, connection.execute(sql.PROMPT, (ref.owner, number, digest)).fetchone()) for digest in digests
            )
            return {digest: row[0] for digest, row in found if row is not None}

        return await self._database.engine.read(work)

    async def manifest_ids(self, ref: Ref, *, after: str, limit: int) -> Sequence[str]:
        def work(connection: sqlite3.Connection) -> Sequence[str]:
            number = log.living_head(connection, ref)[0]
            return [row[0] for row in connection.execute(sql.MANIFEST_IDS, (number, after, limit))]

        return await self._database.engine.read(work)

    async def manifest(self, ref: Ref, id: str) -> bytes:
        def work(connection: sqlite3.Connection) -> bytes:
            found = manifests.read(connection, log.living_head(connection, ref)[0], id)
            if found is None:
                raise NotFound(f"no context {id!r} was kept for conversation {ref.id!r}")
            return found

        return await self._database.engine.read(work)


class SqliteCalibrations:
    """`store.calibrations` of core/ports.py."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database

    async def get(self, model: str) -> tuple[float, int] | None:
        found = await self._database.engine.read(lambda c: c.execute(sql.CALIBRATION, (model,)).fetchone())
        return None if found is None else (found[0], found[1])

    async def keep(self, model: str, factor: float, samples: int) -> None:
        await self._database.engine.write(lambda c: c.execute(sql.KEEP_CALIBRATION, (model, factor, samples)))


def read_inputs(connection: sqlite3.Connection, ref: Ref, branch: BranchName) -> ViewInputs:
    """Everything a view of a path needs but the messages."""
    number, head, active = log.living_head(connection, ref)
    rows = [active] if branch is None and active.parent is None else log.all_branches(connection, number)
    named = log.by_seq(connection, number, [branch]) if isinstance(branch, int) else []
    by_number = {row.number: row for row in rows}
    found = path_segments(by_number, head, branch, named)
    policies = dict(connection.execute(sql.POLICIES, (number,)).fetchall())
    summaries = compactions.summaries_of(connection, number, found)
    covered = summaries[-1].last_seq if summaries else 0
    return ViewInputs(
        entry_count=head.entry_count,
        segments=found,
        leaf_depth=path_depth(by_number, head, branch, named),
        summaries=summaries,
        covered_depth=connection.execute(sql.DEPTH, (entry_key(number, covered),)).fetchone()[0] if covered else 0,
        was_undone=compactions.was_undone(connection, number, found, covered),
        pinned=log.pinned(connection, number),
        quarantined=log.quarantined(connection, number),
        policies=(policies.get(_SERVER), policies.get(number)),
    )
