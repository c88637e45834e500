"""Operations on a whole SQLite database: erasing, statistics, blobs, backups."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

from everthread.adapters.stores.layout import NO_BLOB_STORE
from everthread.adapters.stores.restore import unfinished
from everthread.adapters.stores.sqlite import blobs, erase, log
from everthread.adapters.stores.sqlite import statements as sql
from everthread.adapters.stores.sqlite.conversations import conversation_infos
from everthread.adapters.stores.sqlite.engine import SqliteDatabase
from everthread.core.chain import SettingsChange
from everthread.core.clock import from_micros, to_micros
from everthread.core.entries import entry_key
from everthread.core.errors import Conflict, NotFound, StoreError
from everthread.core.nouns import ConversationInfo, EraseReport, Ref
from everthread.core.recent import forget_texts

_LEFT_BEHIND = timedelta(days=1)
"""Off-record conversations untouched for this long were left by a crash; the next opening erases them."""


class SqliteMaintenance:
    """`store.maintenance` of core/ports.py."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database

    async def finish_what_a_crash_left(self) -> None:
        """Erase off-record conversations left by a crash, and complete interrupted erasures."""
        old = to_micros(self._database.clock() - _LEFT_BEHIND)

        def left(connection: sqlite3.Connection) -> list[tuple[str, str]]:
            stale = connection.execute(sql.STALE_OFF_RECORD, (old,)).fetchall()
            return [*stale, *connection.execute(sql.LEFT_BY_ERASED_PARENTS).fetchall()]

        for row in await self._database.engine.read(left):
            await self.erase_if_there(Ref(*row))
        if await self._database.engine.read(lambda c: c.execute(sql.UNFINISHED_ERASURES).fetchone()[0]):
            await self._rewrite()
        await self._delete_doomed_blobs()

    async def erase_if_there(self, ref: Ref) -> None:
        with suppress(NotFound):  # erased by hand, or by another process, before
            await self.erase(ref.owner, ref.id, None)

    async def heads(self) -> Sequence[ConversationInfo]:
        rows = await self._database.engine.read(lambda c: c.execute(sql.ALL_CONVERSATIONS).fetchall())
        return conversation_infos(rows)

    async def newest_changes(self) -> Mapping[Ref, SettingsChange]:
        rows = await self._database.engine.read(lambda c: c.execute(sql.NEWEST_CHANGES).fetchall())
        return {Ref(*row[:2]): SettingsChange._make(row[2:]) for row in rows}

    async def erase(self, owner: str, conversation: str | None, message: str | None) -> EraseReport:
        now = self._database.now()
        engine = self._database.engine

        def work(connection: sqlite3.Connection) -> EraseReport:
            engine.unindexed_texts.forget()
            return erase.blank(connection, owner, conversation, message, now)

        report = await engine.write(work)
        forget_texts()
        left = (*await self._rewrite(), *await self._delete_doomed_blobs(), *self._remove_unfinished_restore())
        return replace(report, cannot_reach=(*report.cannot_reach, *left))

    def _remove_unfinished_restore(self) -> Sequence[str]:
        """A restore that was killed leaves a copy of its backup beside the file, with what was erased in it. None can
        be at work now: it holds the file locked, and we wrote to it."""
        try:
            for suffix in ("", "-wal", "-shm", "-journal"):
                copy = unfinished(self._database.engine.path)
                copy.with_name(f"{copy.name}{suffix}").unlink(missing_ok=True)
        except OSError as problem:
            return (f"the copy that a killed restore left at {copy}: {problem.strerror}; remove it",)
        return ()

    async def _rewrite(self) -> Sequence[str]:
        now = self._database.now()
        return await self._database.engine.alone(lambda c: erase.rewrite(c, now))

    async def _delete_doomed_blobs(self) -> Sequence[str]:
        """Delete the blobs of erased text; returns what is left. The erasure is committed by now, so an error
        neither makes it fail nor keeps the database from opening."""
        engine = self._database.engine
        kept = engine.blobs
        try:
            doomed = await engine.read(lambda c: c.execute(sql.DOOMED_BLOBS).fetchall())
            if not doomed:
                return ()
            if kept is None:
                return (f"{len(doomed)} blobs: {NO_BLOB_STORE}",)
            await engine.write(lambda c: blobs.delete_doomed(c, kept))
        except StoreError as problem:
            return (f"blobs of what was erased (the next opening of the database tries again): {problem}",)
        return ()

    async def erasures(self) -> Sequence[tuple[str, str | None, str | None, datetime]]:
        rows = await self._database.engine.read(lambda c: c.execute(sql.ERASURES).fetchall())
        return [(owner, conversation, message, from_micros(at)) for owner, conversation, message, at in rows]

    async def stats(self) -> Mapping[str, int]:
        def work(connection: sqlite3.Connection) -> Mapping[str, int]:
            return {name: connection.execute(query).fetchone()[0] for name, query in sql.STATS.items()}

        return await self._database.engine.read(work)

    async def payload_blobs(self) -> Mapping[str, int]:
        return await self._database.engine.read(blobs.referred)

    async def blob_at(self, ref: Ref, seq: int) -> str | None:
        def work(connection: sqlite3.Connection) -> str | None:
            row = connection.execute(sql.BLOB_OF, (entry_key(log.head(connection, ref)[0], seq),)).fetchone()
            return None if row is None else row[0]

        return await self._database.engine.read(work)

    async def delete_unused_blobs(self, names: Sequence[str]) -> int:
        kept = self._database.engine.blobs
        return 0 if kept is None else await self._database.engine.write(lambda c: blobs.delete_unused(c, kept, names))

    async def backup(self, target: Path) -> None:
        def work(connection: sqlite3.Connection) -> None:
            if target.exists():
                raise Conflict(f"{target} exists already; nothing was written: choose another name")
            copy = sqlite3.connect(target)
            try:
                connection.backup(copy)
            finally:
                copy.close()

        await self._database.engine.read(work)
