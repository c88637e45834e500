"""Operations on a whole PostgreSQL database: erasing, statistics, blobs, backups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path

from everthread.adapters.stores.layout import NO_BLOB_STORE
from everthread.adapters.stores.postgres import blobs, dump, erase, errors, log
from everthread.adapters.stores.postgres import statements as sql
from everthread.adapters.stores.postgres.conversations import numbered_conversations
from everthread.adapters.stores.postgres.pool import Connection, PostgresDatabase
from everthread.adapters.stores.postgres.turn_statements import NOTIFY
from everthread.core.chain import SettingsChange
from everthread.core.clock import from_micros, to_micros
from everthread.core.errors import NotFound, StoreError
from everthread.core.nouns import ConversationInfo, EraseReport, Ref
from everthread.core.recent import forget_texts

_LEFT_BEHIND = timedelta(days=1)
"""Off-record conversations untouched for this long were left by a crash; the next opening erases them."""


class PostgresMaintenance:
    """`store.maintenance` of core/ports.py."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database

    async def finish_what_a_crash_left(self) -> None:
        """Erase off-record conversations left by a crash, and complete interrupted erasures."""
        old = to_micros(self._database.clock() - _LEFT_BEHIND)
        left = [
            *await self._database.pool.read(lambda c: c.fetch(sql.STALE_OFF_RECORD, old)),
            *await self._database.pool.read(lambda c: c.fetch(sql.LEFT_BY_ERASED_PARENTS)),
        ]
        await self.erase_all([Ref(*row) for row in left])
        if await self._database.pool.read(lambda c: c.fetch(sql.UNFINISHED_ERASURES)):
            await self._rewrite(wait=False)
        await self._delete_doomed_blobs()

    async def erase_all(self, refs: Sequence[Ref]) -> None:
        for ref in refs:
            with suppress(NotFound):  # erased by hand, or by another process, before
                await self._blank(ref.owner, ref.id, None)
        if refs:
            await self._rewrite(wait=True)

    async def heads(self) -> Sequence[ConversationInfo]:
        found = await self._database.pool.read(lambda c: numbered_conversations(c, sql.ALL_CONVERSATIONS))
        return [info for _, info in found]

    async def newest_changes(self) -> Mapping[Ref, SettingsChange]:
        rows = await self._database.pool.read(lambda c: c.fetch(sql.NEWEST_CHANGES))
        return {Ref(*row[:2]): SettingsChange._make(row[2:]) for row in rows}

    async def erase(self, owner: str, conversation: str | None, message: str | None) -> EraseReport:
        report = await self._blank(owner, conversation, message)
        in_files = await self._rewrite(wait=True)
        return erase.with_what_is_left(report, (*await self._delete_doomed_blobs(), *in_files))

    async def _blank(self, owner: str, conversation: str | None, message: str | None) -> EraseReport:
        now, kept = self._database.now(), self._database.blobs
        pool = self._database.pool

        async def work(connection: Connection) -> EraseReport:
            report = await erase.blank(connection, owner, conversation, message, now, kept)
            await connection.execute(NOTIFY, [pool.signals.erased_payload()])
            return report

        report = await pool.write(work)
        forget_texts()
        return report

    async def _rewrite(self, *, wait: bool) -> Sequence[str]:
        """Rewrite the tables. The erasure is committed by now, so a full disk or a lost connection neither makes it
        fail nor keeps the database from opening."""
        try:
            async with self._database.pool.alone() as connection:
                return await erase.rewrite(connection, self._database.now(), wait=wait)
        except errors.DRIVER as problem:
            return (f"{erase.NOT_REWRITTEN}: {errors.text(problem, self._database.address)}",)
        except StoreError as problem:
            return (f"{erase.NOT_REWRITTEN}: {problem}",)

    async def _delete_doomed_blobs(self) -> Sequence[str]:
        """Delete the blobs of erased text; returns what is left. The erasure is committed by now, so an error
        neither makes it fail nor keeps the database from opening."""
        kept = self._database.blobs
        try:
            doomed = await self._database.pool.read(lambda c: c.fetch(sql.DOOMED_BLOBS))
            if not doomed:
                return ()
            if kept is None:
                return (f"{len(doomed)} blobs: {NO_BLOB_STORE}",)
            await self._database.pool.write(lambda c: blobs.delete_doomed(c, kept))
        except StoreError as problem:
            return (f"blobs of what was erased (the next opening of the database tries again): {problem}",)
        return ()

    async def erasures(self) -> Sequence[tuple[str, str | None, str | None, datetime]]:
        rows = await self._database.pool.read(lambda c: c.fetch(sql.ERASURES))
        return [(owner, conversation, message, from_micros(at)) for owner, conversation, message, at in rows]

    async def stats(self) -> Mapping[str, int]:
        async def work(connection: Connection) -> Mapping[str, int]:
            return {name: int(await connection.fetchval(query)) for name, query in sql.STATS.items()}

        return await self._database.pool.read(work)

    async def payload_blobs(self) -> Mapping[str, int]:
        return {row[0]: row[1] for row in await self._database.pool.read(lambda c: c.fetch(sql.BLOB_NAMES))}

    async def blob_at(self, ref: Ref, seq: int) -> str | None:
        async def work(connection: Connection) -> str | None:
            key, _, _ = await log.head(connection, ref)
            name: str | None = await connection.fetchval(sql.BLOB_OF, *key, seq)
            return name

        return await self._database.pool.read(work)

    async def delete_unused_blobs(self, names: Sequence[str]) -> int:
        kept = self._database.blobs
        return 0 if kept is None else await self._database.pool.write(lambda c: blobs.delete_unused(c, kept, names))

    async def backup(self, target: Path) -> None:
        await dump.backup(self._database.pool.address, target)
