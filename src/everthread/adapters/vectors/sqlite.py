"""Vectors in the SQLite file of the log: records of sixteen entries in a row, compared by numpy in a reader's thread.

A vector is written in a transaction that sees its conversation and its entry alive, and an erase removes it in its own;
so whichever comes second, nothing is left of what was erased.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from everthread.adapters.stores.sqlite import log
from everthread.adapters.stores.sqlite.engine import Engine
from everthread.adapters.vectors import quantised
from everthread.adapters.vectors.quantised import RecordKey, nearest
from everthread.core.embeddings import (
    IndexProgress,
    VectorHit,
    VectorPart,
    check_dimension,
    dimension_of,
    same_dimension,
)
from everthread.core.entries import Flag, entry_key
from everthread.core.errors import NotFound
from everthread.core.failpoints import reach
from everthread.core.nouns import Ref

PAGE_ENTRIES = 16
"""Entries whose records share a row: more make a search read fewer rows, and a single new vector rewrite more."""

MODEL = "SELECT number, dimension FROM vector_models WHERE name = ?"
"""An embedder's number and dimension."""

MODELS = "SELECT number, name, dimension FROM vector_models ORDER BY number"
"""Every embedder."""

NEW_MODEL = "INSERT INTO vector_models (name, dimension) VALUES (?, ?)"
"""Know an embedder."""

IS_GONE = f"SELECT 1 FROM entries WHERE key = ? AND flags & {Flag.ERASED:d} <> 0"
"""Whether an entry was erased."""

PAGE = "SELECT body FROM vectors WHERE conversation = ? AND model = ? AND page = ?"
"""The records of a page."""

PUT_PAGE = "INSERT OR REPLACE INTO vectors (conversation, model, page, owner, body) VALUES (?, ?, ?, ?, ?)"
"""Write a page."""

CUT_PAGE = "UPDATE vectors SET body = ? WHERE conversation = ? AND model = ? AND page = ?"
"""Leave some records out of a page."""

DELETE_PAGE = "DELETE FROM vectors WHERE conversation = ? AND model = ? AND page = ?"
"""Remove a page that has no records left."""

OF_CONVERSATION = """
SELECT c.id, v.body FROM conversations c JOIN vectors v ON v.conversation = c.number
WHERE c.owner = ? AND c.id = ? AND c.erased_at IS NULL AND v.model = ?"""
"""The records of a conversation."""

OF_OWNER = """
SELECT c.id, v.body FROM conversations c JOIN vectors v ON v.conversation = c.number
WHERE c.owner = ? AND c.erased_at IS NULL AND v.model = ? ORDER BY c.number DESC"""
"""The records of all conversations of an owner, the newest conversation first."""

SIZES = "SELECT model, sum(length(body)) FROM vectors WHERE conversation = ? GROUP BY model"
"""How many bytes of records each embedder has in a conversation."""

NEWEST_PAGE = "SELECT body FROM vectors WHERE conversation = ? AND model = ? ORDER BY page DESC LIMIT 1"
"""The last records of a conversation."""

ALL_SIZES = """
SELECT m.name, m.dimension, sum(length(v.body))
FROM vector_models m JOIN vectors v ON v.model = m.number GROUP BY m.number"""
"""How many bytes of records each embedder has."""

NUMBERS = "SELECT number FROM conversations WHERE owner = ? AND (? IS NULL OR id = ?)"
"""The conversations that are meant."""

DELETE_ALL = "DELETE FROM vectors WHERE conversation = ? AND model = ?"
"""Remove what an embedder has of a conversation."""

SIZE = "SELECT coalesce(sum(length(body)), 0) FROM vectors WHERE conversation = ? AND model = ?"
"""How many bytes that is."""


class SqliteVectors:
    """The vectors of one SQLite file."""

    about = "in the database, compared by numpy"

    def __init__(self, on: Callable[[], Engine]) -> None:
        self._on = on

    async def put(self, ref: Ref, model: str, parts: Sequence[VectorPart]) -> None:
        dimension = same_dimension(part.vector for part in parts)
        if dimension is None:
            return
        rows = quantised.quantise_all(parts)
        await self._on().write(lambda c: _put(c, ref, model, dimension, rows))

    async def near(
        self, owner: str, conversation: str | None, model: str, vector: bytes, limit: int
    ) -> Sequence[VectorHit]:
        return await self._on().read(lambda c: _near(c, owner, conversation, model, vector, limit))

    async def forget(
        self,
        owner: str,
        conversation: str | None = None,
        *,
        seqs: Sequence[int] | None = None,
        model: str | None = None,
    ) -> int:
        def work(connection: sqlite3.Connection) -> int:
            numbers = connection.execute(NUMBERS, (owner, conversation, conversation)).fetchall()
            return sum(forget(connection, number, seqs, model) for (number,) in numbers)

        return await self._on().write(work)

    async def indexed(self, ref: Ref) -> Mapping[str, IndexProgress]:
        return await self._on().read(lambda c: _indexed(c, ref))

    async def models(self) -> Mapping[str, int]:
        rows = await self._on().read(lambda c: c.execute(ALL_SIZES).fetchall())
        return {name: size // quantised.record_bytes(dimension) for name, dimension, size in rows}

    async def close(self) -> None:
        """The store closes the file."""


def _put(connection: sqlite3.Connection, ref: Ref, model: str, dimension: int, rows: Mapping[RecordKey, bytes]) -> None:
    number = log.living_head(connection, ref)[0]
    kind = _known(connection, model, dimension)
    gone = {
        seq for seq in {seq for seq, _ in rows} if connection.execute(IS_GONE, (entry_key(number, seq),)).fetchone()
    }
    pages: dict[int, dict[RecordKey, bytes]] = defaultdict(dict)
    for key, row in rows.items():
        if key[0] not in gone:
            pages[key[0] // PAGE_ENTRIES][key] = row
    for page, new in pages.items():
        found = connection.execute(PAGE, (number, kind, page)).fetchone()
        body = quantised.merge_records(b"" if found is None else found[0], dimension, new)
        connection.execute(PUT_PAGE, (number, kind, page, ref.owner, body))
        reach("vectors.written")


def _known(connection: sqlite3.Connection, model: str, dimension: int) -> int:
    row = connection.execute(MODEL, (model,)).fetchone()
    if row is None:
        connection.execute(NEW_MODEL, (model, dimension))
        row = connection.execute(MODEL, (model,)).fetchone()
    check_dimension(dimension, row[1], model)
    return int(row[0])


def _near(
    connection: sqlite3.Connection, owner: str, conversation: str | None, model: str, vector: bytes, limit: int
) -> Sequence[VectorHit]:
    known = connection.execute(MODEL, (model,)).fetchone()
    if known is None or limit < 1:
        return []
    check_dimension(dimension_of(vector), known[1], model)
    if conversation is None:
        rows = connection.execute(OF_OWNER, (owner, known[0]))
    else:
        rows = connection.execute(OF_CONVERSATION, (owner, conversation, known[0]))
    return nearest(rows, vector, limit)


def _indexed(connection: sqlite3.Connection, ref: Ref) -> Mapping[str, IndexProgress]:
    with suppress(NotFound):
        number = log.living_head(connection, ref)[0]
        sizes = dict(connection.execute(SIZES, (number,)).fetchall())
        return {
            name: IndexProgress(
                sizes[kind] // quantised.record_bytes(dimension), _newest(connection, number, kind, dimension)
            )
            for kind, name, dimension in connection.execute(MODELS).fetchall()
            if kind in sizes
        }
    return {}


def _newest(connection: sqlite3.Connection, number: int, kind: int, dimension: int) -> int:
    (body,) = connection.execute(NEWEST_PAGE, (number, kind)).fetchone()
    return max(seq for (seq, _), _ in quantised.split_records(body, dimension))


def forget(connection: sqlite3.Connection, number: int, seqs: Sequence[int] | None, model: str | None = None) -> int:
    """Destroy the vectors of a conversation, or of some entries, in the writer's transaction; how many there were."""
    kinds = [row for row in connection.execute(MODELS).fetchall() if model in (None, row[1])]
    if seqs is None:
        return sum(_forget_all(connection, number, kind, dimension) for kind, _, dimension in kinds)
    pages = defaultdict(list)
    for seq in seqs:
        pages[seq // PAGE_ENTRIES].append(seq)
    return sum(
        _forget_some(connection, (number, kind, page), dimension, some)
        for kind, _, dimension in kinds
        for page, some in pages.items()
    )


def _forget_all(connection: sqlite3.Connection, number: int, kind: int, dimension: int) -> int:
    (size,) = connection.execute(SIZE, (number, kind)).fetchone()
    connection.execute(DELETE_ALL, (number, kind))
    return int(size) // quantised.record_bytes(dimension)


def _forget_some(connection: sqlite3.Connection, key: tuple[int, int, int], dimension: int, seqs: Sequence[int]) -> int:
    found = connection.execute(PAGE, key).fetchone()
    if found is None:
        return 0
    left = quantised.remove_records(found[0], dimension, seqs)
    if not left:
        connection.execute(DELETE_PAGE, key)
    elif len(left) < len(found[0]):
        connection.execute(CUT_PAGE, (left, *key))
    return (len(found[0]) - len(left)) // quantised.record_bytes(dimension)
