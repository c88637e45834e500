"""Vectors in the PostgreSQL database of the log.

With pgvector 0.8 or newer the server compares them: all of a conversation, and across an owner the index of their
model (HNSW), asked again until enough of that owner's are found; a plain filtered index would give short answers.
Without it they are kept as on SQLite, and compared by numpy here. A server that gets pgvector later is noticed at the
next opening, and what is there is carried over.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

import asyncpg

from everthread.adapters.stores.postgres.pool import Connection, Pool, Row
from everthread.adapters.vectors import postgres_statements as sql
from everthread.adapters.vectors import quantised
from everthread.adapters.vectors.quantised import nearest
from everthread.core.embeddings import (
    IndexProgress,
    VectorHit,
    VectorPart,
    check_dimension,
    dimension_of,
    same_dimension,
)
from everthread.core.errors import NotFound
from everthread.core.failpoints import reach
from everthread.core.nouns import Ref

OLDEST = (0, 8)
"""The first pgvector whose filtered index searches go on until they have found enough."""
EXACT_ROWS = 20_000
"""Up to so many vectors of an owner are compared one by one: as quick as the index, and exact."""
MOST_INDEXED_DIMENSIONS = 4000
"""The most dimensions that an index of half precision takes."""
_BATCH = 500

UNDECIDED = "in the database, compared by pgvector where the server has it"
WITH_PGVECTOR = "in the database, compared by pgvector"
WITHOUT_PGVECTOR = "in the database, compared by numpy; pgvector 0.8 or newer on the server would do it there"


class PostgresVectors:
    """The vectors of one PostgreSQL database."""

    def __init__(self, on: Callable[[], Pool]) -> None:
        self._on = on
        self._preparing = asyncio.Lock()
        self._has_pgvector: bool | None = None

    @property
    def about(self) -> str:
        if self._has_pgvector is None:
            return UNDECIDED
        return WITH_PGVECTOR if self._has_pgvector else WITHOUT_PGVECTOR

    async def put(self, ref: Ref, model: str, parts: Sequence[VectorPart]) -> None:
        dimension = same_dimension(part.vector for part in parts)
        if dimension is None:
            return
        has_pgvector = await self._prepared()
        kind = await self._known(model, dimension)
        rows = [(*part[:2], *_columns(part, has_pgvector)) for part in sorted(parts)]
        statement = sql.PUT_EMBEDDING if has_pgvector else sql.PUT_RECORD
        await self._on().write(lambda c: _put(c, ref, statement, kind, rows))

    async def near(
        self, owner: str, conversation: str | None, model: str, vector: bytes, limit: int
    ) -> Sequence[VectorHit]:
        known = await self._on().read(lambda c: c.fetchrow(sql.MODEL, model))
        if known is None or limit < 1:
            return []
        kind, dimension = known
        check_dimension(dimension_of(vector), dimension, model)
        if not await self._prepared():
            rows = await self._on().read(lambda c: c.fetch(sql.RECORDS, owner, conversation, kind))
            return await asyncio.to_thread(nearest, [(row[0], row[1]) for row in rows], vector, limit)
        if conversation is not None:
            values = (owner, conversation, kind, _numbers(vector), limit)
            found = await self._on().read(lambda c: c.fetch(sql.NEAR_IN_CONVERSATION, *values))
        else:
            found = await self._on().read(lambda c: _near_of_owner(c, owner, kind, dimension, vector, limit))
        return [VectorHit(*row) for row in found]

    async def forget(
        self,
        owner: str,
        conversation: str | None = None,
        *,
        seqs: Sequence[int] | None = None,
        model: str | None = None,
    ) -> int:
        values = (owner, conversation, None if seqs is None else list(seqs), model)
        return _count(await self._on().write(lambda c: c.execute(sql.FORGET, *values)))

    async def indexed(self, ref: Ref) -> Mapping[str, IndexProgress]:
        rows = await self._on().read(lambda c: c.fetch(sql.INDEXED, *ref))
        return {name: IndexProgress(parts, newest) for name, parts, newest in rows}

    async def models(self) -> Mapping[str, int]:
        if await self._on().read(_has_column):
            self._has_pgvector = True
        return {name: parts for name, parts in await self._on().read(lambda c: c.fetch(sql.MODELS))}

    async def close(self) -> None:
        """The store closes the connections."""
        self._has_pgvector = None

    async def _prepared(self) -> bool:
        """Whether pgvector is used; looked up once, and its column made if need be."""
        async with self._preparing:
            if self._has_pgvector is None:
                self._has_pgvector = await self._on().read(_has_column) or await self._try_pgvector()
            return self._has_pgvector

    async def _try_pgvector(self) -> bool:
        """Where the server offers it and lets us: make its column, and carry over what is there."""
        offered: str | None = await self._on().read(lambda c: c.fetchval(sql.OFFERED))
        if offered is None or _version(offered) < OLDEST:
            return False
        async with self._on().alone() as connection:
            with suppress(asyncpg.PostgresError):  # not ours to install, or to change this table
                await connection.execute(sql.MAKE_COLUMN)
        if not await self._on().read(_has_column):
            return False
        while await self._on().write(_carry_over):
            pass
        return True

    async def _known(self, model: str, dimension: int) -> int:
        """The number of an embedder; a new one gets an index while there is nothing to index yet."""
        has_pgvector = bool(self._has_pgvector)
        kept = await self._on().read(lambda c: c.fetchrow(sql.MODEL, model))
        if kept is None:
            kept = await self._on().write(lambda c: _new_model(c, model, dimension, has_pgvector))
        check_dimension(dimension, kept[1], model)
        return int(kept[0])


async def _has_column(connection: Connection) -> bool:
    return bool(await connection.fetchval(sql.HAS_COLUMN))


async def _new_model(connection: Connection, model: str, dimension: int, has_pgvector: bool) -> Row:
    await connection.execute(sql.NEW_MODEL, model, dimension)
    row = await connection.fetchrow(sql.MODEL, model)
    if row is None:
        raise NotFound(f"no embedder {model!r}")
    if has_pgvector and row[1] <= MOST_INDEXED_DIMENSIONS:
        await connection.execute(sql.MAKE_INDEX.format(model=int(row[0]), dimension=int(row[1])))
    return row


async def _carry_over(connection: Connection) -> int:
    """Some records from before there was pgvector; how many."""
    rows = await connection.fetch(sql.SOME_RECORDS, _BATCH)
    values = [(*row[:5], quantised.dequantise(row[5])) for row in rows]
    await connection.executemany(sql.CARRY_OVER, values)
    for model, dimension in await connection.fetch(sql.DIMENSIONS):
        if dimension <= MOST_INDEXED_DIMENSIONS:
            await connection.execute(sql.MAKE_INDEX.format(model=int(model), dimension=int(dimension)))
    return len(rows)


async def _put(connection: Connection, ref: Ref, statement: str, kind: int, rows: Sequence[tuple[object, ...]]) -> None:
    number = await connection.fetchval(sql.LIVING, *ref)
    if number is None:
        raise NotFound(f"no conversation {ref.id!r}")
    await connection.executemany(statement, [(ref.owner, number, kind, *row) for row in rows])
    reach("vectors.written")


async def _near_of_owner(
    connection: Connection, owner: str, kind: int, dimension: int, vector: bytes, limit: int
) -> list[Row]:
    asked = _numbers(vector)
    count = await connection.fetchval(sql.COUNT_OF_OWNER, owner, kind, EXACT_ROWS + 1)
    if count <= EXACT_ROWS or dimension > MOST_INDEXED_DIMENSIONS:
        return await connection.fetch(sql.NEAR_EXACT, owner, kind, asked, limit)
    async with connection.transaction(readonly=True):
        await connection.execute(sql.SEARCH_ON.format(most=min(1000, max(40, limit))))
        return await connection.fetch(sql.NEAR_BY_INDEX.format(model=kind, dimension=dimension), owner, asked, limit)


def _columns(part: VectorPart, has_pgvector: bool) -> tuple[object, ...]:
    return (_numbers(part.vector),) if has_pgvector else (quantised.quantise(*part),)


def _numbers(vector: bytes) -> list[float]:
    return quantised.floats(vector).tolist()


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in text.split(".")[:2])


def _count(status: str) -> int:
    return int(status.rpartition(" ")[2])
