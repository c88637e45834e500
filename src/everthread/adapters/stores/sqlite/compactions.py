"""Compactions in SQLite: the few that a view or an intent needs, however many there are.

The summaries of a path are read by walking: at each place the highest summary that begins there, then where that one
ends. So nothing has to be noted about which summaries are in use, and nothing can be noted wrongly.

A summary that is in use never changes, and every context of its conversation shows it: those read lately are remembered
until they are erased.
"""

from __future__ import annotations

import sqlite3
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from everthread.adapters.stores.layout import compaction_from_row, compaction_values
from everthread.adapters.stores.sqlite import statements as sql
from everthread.core.clock import to_micros
from everthread.core.compactions import Compaction
from everthread.core.entries import Entry
from everthread.core.failpoints import reach
from everthread.core.log import BranchRow, CompactionQuery, Segment
from everthread.core.paths import holds, is_on
from everthread.core.ports import CompactionPosition
from everthread.core.recent import forget_on_erase


def summaries_of(connection: sqlite3.Connection, number: int, path: Sequence[Segment]) -> list[Compaction]:
    """The summaries that tell this path from its beginning, oldest first."""
    summaries: list[Compaction] = []
    end = 0
    while path and (found := _highest(connection, number, end, path)) is not None:
        summaries.append(found)
        end = found.last_seq
    return summaries


def _highest(connection: sqlite3.Connection, number: int, after: int, path: Sequence[Segment]) -> Compaction | None:
    beginning_here = connection.execute(sql.COMPACTIONS_FROM, (number, after))
    id = next((id for id, branch, last_seq in beginning_here if is_on(path, branch, last_seq)), None)
    return None if id is None else _live(connection, number, id)


_known: OrderedDict[str, Compaction] = OrderedDict()
"""The most recently read ones are at the end."""
_MOST_KNOWN = 512
"""Some 2 MB."""
forget_on_erase(_known.clear)


def _live(connection: sqlite3.Connection, number: int, id: str) -> Compaction | None:
    found = _known.pop(id, None) or next(_read(connection.execute(sql.COMPACTION, (number, id))), None)
    if found is not None and found.is_live:  # else it was undone or erased since it was found
        _known[id] = found
        if len(_known) > _MOST_KNOWN:
            _known.popitem(last=False)
    return found


def was_undone(connection: sqlite3.Connection, number: int, path: Sequence[Segment], covered: int) -> bool:
    """Whether a compaction that reaches further than this was undone on the path."""
    undone = connection.execute(sql.UNDONE_COMPACTIONS, (number, covered))
    return any(is_on(path, branch, last_seq) for branch, last_seq in undone)


def find(connection: sqlite3.Connection, number: int, query: CompactionQuery) -> list[Compaction]:
    """All that any part of the query names, oldest first."""
    by_id = {one.id: one for one in summaries_of(connection, number, query.path)}
    if query.over is not None:
        by_id.update({one.id: one for one in _over(connection, number, *query.over)})
    for id in query.ids:
        by_id.update({one.id: one for one in _read(connection.execute(sql.COMPACTION, (number, id)))})
    return sorted(by_id.values(), key=lambda one: (one.created_at, one.id))


def page(connection: sqlite3.Connection, number: int, after: CompactionPosition | None, limit: int) -> list[Compaction]:
    """A page of all there are."""
    made, id = (-1, "") if after is None else (to_micros(after.created_at), after.id)
    return list(_read(connection.execute(sql.COMPACTION_PAGE, (number, made, id, limit))))


def keep(connection: sqlite3.Connection, number: int, new: Iterable[Compaction]) -> None:
    """Write compactions, new or undone."""
    for compaction in new:
        connection.execute(sql.INSERT_COMPACTION, (number, *compaction_values(compaction)))
        reach("compaction.written")


def invalidate(
    connection: sqlite3.Connection, number: int, changed: Iterable[Entry], branches: Mapping[int, BranchRow], now: int
) -> None:
    """Mark the compactions that cover a changed message as invalid, so that no view uses them."""
    for place in changed:
        for compaction in _over(connection, number, place.seq, place.seq):
            if holds(branches, compaction, place):
                connection.execute(sql.INVALIDATE_COMPACTION, (now, number, compaction.id))


def destroy(connection: sqlite3.Connection, number: int, place: Entry, branches: Mapping[int, BranchRow]) -> int:
    """Remove every summary, in use or not, that speaks of an erased message; how many there were."""
    over = list(_read(connection.execute(sql.EVERY_COMPACTION_OVER, (number, place.seq, place.seq))))
    gone = [(number, one.id) for one in over if holds(branches, one, place)]
    connection.executemany(sql.DELETE_COMPACTION, gone)
    return len(gone)


def _over(connection: sqlite3.Connection, number: int, after: int, last: int) -> Iterator[Compaction]:
    rows = connection.execute(sql.COMPACTIONS_OVER, (number, after, last)).fetchall()
    return _read(rows)


def _read(rows: Iterable[tuple[object, ...]]) -> Iterator[Compaction]:
    return map(compaction_from_row, rows)
