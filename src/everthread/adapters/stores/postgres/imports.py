"""Where imported messages come from, in PostgreSQL. Their lines are written by `log.py`, with the messages."""

from __future__ import annotations

from collections.abc import Sequence

from everthread.adapters.stores.layout import line_with
from everthread.adapters.stores.postgres import statements as sql
from everthread.adapters.stores.postgres.log import living_head
from everthread.adapters.stores.postgres.pool import Connection, PostgresDatabase
from everthread.core.imports import ImportLine, ImportSource
from everthread.core.nouns import Ref


class PostgresImports:
    """`store.imports` of core/ports.py."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database

    async def sources(self, owner: str) -> Sequence[ImportSource]:
        rows = await self._database.pool.read(lambda c: c.fetch(sql.SOURCES, owner))
        return [ImportSource._make(row) for row in rows]

    async def source(self, owner: str, path: str) -> ImportSource | None:
        row = await self._database.pool.read(lambda c: c.fetchrow(sql.SOURCE_AT, owner, path))
        return None if row is None else ImportSource._make(row)

    async def keep_source(self, owner: str, source: ImportSource) -> int:
        number: int = await self._database.pool.write(lambda c: c.fetchval(sql.KEEP_SOURCE, owner, *source[1:]))
        return number

    async def lines(self, ref: Ref, *, after: int, limit: int) -> Sequence[ImportLine]:
        async def work(connection: Connection) -> Sequence[ImportLine]:
            key, _, _ = await living_head(connection, ref)
            return [ImportLine._make(row) for row in await connection.fetch(sql.LINES, *key, after, limit)]

        return await self._database.pool.read(work)

    async def write_at(self, ref: Ref, source: int, first_byte: int, more: bytes) -> None:
        async def work(connection: Connection) -> None:
            key, _, _ = await living_head(connection, ref)
            found = await connection.fetchrow(sql.LINE_BEFORE, *key, source, first_byte)
            if found is not None and (line := line_with(found[1], found[2], first_byte, more)) is not None:
                await connection.execute(sql.SET_LINE, *key, found[0], line)

        await self._database.pool.write(work)

    async def detach_lines(self, ref: Ref, source: int) -> None:
        async def work(connection: Connection) -> None:
            key, _, _ = await living_head(connection, ref)
            await connection.execute(sql.DETACH_LINES, *key, source)

        await self._database.pool.write(work)
