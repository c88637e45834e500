"""Where imported messages come from, in SQLite. Their lines are written by `log.py`, with the messages."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from everthread.adapters.stores.layout import line_with
from everthread.adapters.stores.sqlite import statements as sql
from everthread.adapters.stores.sqlite.engine import SqliteDatabase
from everthread.adapters.stores.sqlite.log import living_head
from everthread.core.imports import ImportLine, ImportSource
from everthread.core.nouns import Ref


class SqliteImports:
    """`store.imports` of core/ports.py."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database

    async def sources(self, owner: str) -> Sequence[ImportSource]:
        rows = await self._database.engine.read(lambda c: c.execute(sql.SOURCES, (owner,)).fetchall())
        return [ImportSource._make(row) for row in rows]

    async def source(self, owner: str, path: str) -> ImportSource | None:
        row = await self._database.engine.read(lambda c: c.execute(sql.SOURCE_AT, (owner, path)).fetchone())
        return None if row is None else ImportSource._make(row)

    async def keep_source(self, owner: str, source: ImportSource) -> int:
        def work(connection: sqlite3.Connection) -> int:
            number: int = connection.execute(sql.KEEP_SOURCE, (owner, *source[1:])).fetchone()[0]
            return number

        return await self._database.engine.write(work)

    async def lines(self, ref: Ref, *, after: int, limit: int) -> Sequence[ImportLine]:
        def work(connection: sqlite3.Connection) -> Sequence[ImportLine]:
            number, _, _ = living_head(connection, ref)
            return [ImportLine._make(row) for row in connection.execute(sql.LINES, (number, after, limit))]

        return await self._database.engine.read(work)

    async def write_at(self, ref: Ref, source: int, first_byte: int, more: bytes) -> None:
        def work(connection: sqlite3.Connection) -> None:
            number, _, _ = living_head(connection, ref)
            found = connection.execute(sql.LINE_BEFORE, (number, source, first_byte)).fetchone()
            if found is not None and (line := line_with(found[1], found[2], first_byte, more)) is not None:
                connection.execute(sql.SET_LINE, (line, number, found[0]))

        await self._database.engine.write(work)

    async def detach_lines(self, ref: Ref, source: int) -> None:
        def work(connection: sqlite3.Connection) -> None:
            number, _, _ = living_head(connection, ref)
            connection.execute(sql.DETACH_LINES, (number, source))

        await self._database.engine.write(work)
