"""Compactions in PostgreSQL: the few that a view or an intent needs, however many there are.

The summaries of a path are read by walking: at each place the highest summary that begins there, then where that one
ends. So nothing has to be noted about which summaries are in use, and nothing can be noted wrongly.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from everthread.adapters.stores.layout import compaction_from_row, compaction_values
from everthread.adapters.stores.postgres import statements as sql
from everthread.adapters.stores.postgres.pool import Connection, Row
from everthread.adapters.stores.postgres.statements import ConversationKey
from everthread.core.clock import to_micros
from everthread.core.compactions import Compaction
from everthread.core.entries import Entry
from everthread.core.failpoints import reach
from everthread.core.log import BranchRow, CompactionQuery, Segment
from everthread.core.paths import holds
from everthread.core.ports import CompactionPosition


async def summaries_of(connection: Connection, key: ConversationKey, path: Sequence[Segment]) -> list[Compaction]:
    """The summaries that tell this path from its beginning, oldest first."""
    return _read(await connection.fetch(sql.COMPACTION_ROW, *key, *_columns(path))) if path else []


async def was_undone(connection: Connection, key: ConversationKey, path: Sequence[Segment], covered: int) -> bool:
    """Whether a compaction that reaches further than this was undone on the path."""
    return bool(await connection.fetchval(sql.IS_ASKED_BACK, *key, *_columns(path), covered))


def _columns(path: Sequence[Segment]) -> tuple[list[int], list[int], list[int]]:
    """A path as the arrays that `unnest` takes."""
    return [one.branch for one in path], [one.after for one in path], [one.last for one in path]


async def find(connection: Connection, key: ConversationKey, query: CompactionQuery) -> list[Compaction]:
    """All that any part of the query names, oldest first."""
    some = await summaries_of(connection, key, query.path)
    if query.over is not None:
        some += _read(await connection.fetch(sql.COMPACTIONS_OVER, *key, *query.over))
    if query.ids:
        some += _read(await connection.fetch(sql.COMPACTIONS_BY_ID, *key, list(query.ids)))
    return sorted({one.id: one for one in some}.values(), key=lambda one: (one.created_at, one.id))


async def page(
    connection: Connection, key: ConversationKey, after: CompactionPosition | None, limit: int
) -> list[Compaction]:
    """A page of all there are."""
    made, id = (-1, "") if after is None else (to_micros(after.created_at), after.id)
    return _read(await connection.fetch(sql.COMPACTION_PAGE, *key, made, id, limit))


async def keep(connection: Connection, key: ConversationKey, new: Iterable[Compaction]) -> None:
    """Write compactions, new or undone."""
    for compaction in new:
        await connection.execute(sql.INSERT_COMPACTION, *key, *compaction_values(compaction))
        reach("compaction.written")


async def invalidate(
    connection: Connection, key: ConversationKey, changed: Iterable[Entry], branches: Mapping[int, BranchRow], now: int
) -> None:
    """Mark the compactions that cover a changed message as invalid, so that no view uses them."""
    for place in changed:
        over = _read(await connection.fetch(sql.COMPACTIONS_OVER, *key, place.seq, place.seq))
        ids = [one.id for one in over if holds(branches, one, place)]
        if ids:
            await connection.execute(sql.INVALIDATE_COMPACTIONS, *key, ids, now)


async def destroy(connection: Connection, key: ConversationKey, place: Entry, branches: Mapping[int, BranchRow]) -> int:
    """Remove every summary, in use or not, that speaks of an erased message; how many there were."""
    over = _read(await connection.fetch(sql.EVERY_COMPACTION_OVER, *key, place.seq, place.seq))
    ids = [one.id for one in over if holds(branches, one, place)]
    if ids:
        await connection.execute(sql.DELETE_COMPACTIONS_BY_ID, *key, ids)
    return len(ids)


def _read(rows: Iterable[Row]) -> list[Compaction]:
    return [compaction_from_row(row) for row in rows]
