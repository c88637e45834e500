"""The search index of a SQLite file, a little behind the log and never seen so.

FTS5 writes a segment at each commit: five messages cost 280 µs that way, and 40 µs when some hundred are
indexed together. So an append only notes up to where its log is indexed (in its own transaction, so nothing is
forgotten), the writer indexes a batch when one has gathered, and a search first has the rest indexed; a recall in one
conversation looks through the few that wait there instead. Tokens, and the tools that messages call, are counted in
the same batch.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import NamedTuple

from everthread.adapters.stores.layout import SEQ_MASK, entry_key, may_call, sound_payload, text_of, uses_of
from everthread.adapters.stores.sqlite import notes
from everthread.adapters.stores.sqlite import statements as sql
from everthread.adapters.stores.sqlite.counting import known_tokens
from everthread.adapters.stores.sqlite.fresh import Fresh, Known
from everthread.context.tokens import count_tokens
from everthread.core.entries import UNCOUNTED, Flag, Kind
from everthread.core.errors import StoreDamaged
from everthread.core.failpoints import reach
from everthread.core.ids import owner_scope
from everthread.core.nouns import Ref
from everthread.history.words import index_text, index_tokens

_ERASED = int(Flag.ERASED)
"""A number, because a flag makes an object of every answer."""
BATCH = 400
"""How many entries are indexed in one transaction: some 12 ms, for which other writers wait."""
MOST_UNINDEXED = 4_000
"""While callers wait the index may fall this far behind: a search then has 0.2 s of work to do first."""


FEW = 40
"""So many entries are looked through as they are: to read them takes less than to index and commit them."""


def is_behind(connection: sqlite3.Connection) -> bool:
    """Whether some entries wait for the index."""
    return connection.execute(sql.UNINDEXED).fetchone() is not None


def is_far_behind(connection: sqlite3.Connection, ref: Ref) -> bool:
    """Whether more than a few entries of one conversation do."""
    row = connection.execute(sql.WAITING, ref).fetchone()
    return row is not None and row[0] > FEW


def index_some(connection: sqlite3.Connection, fresh: Fresh) -> None:
    """Index a batch of what waits, over as many logs as it takes, in the writer's transaction."""
    left = BATCH
    while left > 0 and (row := connection.execute(sql.UNINDEXED).fetchone()) is not None:
        left -= _index_log(connection, _Behind._make(row), left, fresh)
    reach("index.written")


class _Behind(NamedTuple):
    """A log that the index has not reached the end of."""

    number: int
    after: int
    counted: int
    """Up to here the uses of tools were counted before: an index made anew does not count them again."""
    owner: str
    last: int


class _Waiting(NamedTuple):
    """What the index needs of an entry it has not reached, beside what it says."""

    key: int
    kind: int
    role: str
    how: int | None
    flags: int
    created_at: int
    tokens: int
    chain: bytes


def _index_log(connection: sqlite3.Connection, behind: _Behind, limit: int, fresh: Fresh) -> int:
    number = behind.number
    span = (entry_key(number, behind.after), entry_key(number, behind.last), limit)
    waiting = list(map(_Waiting._make, connection.execute(sql.TO_INDEX, span)))
    texts = _texts(connection, waiting, fresh)
    scope = (owner_scope(behind.owner),)
    words = [(one.key, index_text(known.text, scope)) for one, known in texts if one.kind == Kind.MESSAGE]
    connection.executemany(sql.INSERT_WORDS, words)
    counts = [(_tokens(one, known.text), one.key) for one, known in texts if one.tokens == UNCOUNTED]
    connection.executemany(sql.SET_TOKENS, counts)
    new = (known.calling for one, known in texts if one.key & SEQ_MASK > behind.counted)
    if used := uses_of(sound_payload(calling) for calling in new if calling is not None):
        notes.count_uses(connection, number, used, max(one.created_at for one in waiting))
    if len(waiting) == limit and waiting[-1].key < span[1]:
        connection.execute(sql.MOVE_UNINDEXED, (waiting[-1].key & SEQ_MASK, number))
    else:
        connection.execute(sql.DELETE_UNINDEXED, (number,))
    return len(waiting)


def _texts(connection: sqlite3.Connection, waiting: Iterable[_Waiting], fresh: Fresh) -> list[tuple[_Waiting, Known]]:
    """Those that are not erased, each with what it says; without a damaged one, of which `verify` tells, so that the
    others are still found."""
    found: list[tuple[_Waiting, Known]] = []
    for one in waiting:
        if not one.flags & _ERASED:
            with suppress(StoreDamaged):
                found.append((one, fresh.take(one.chain) or _read(connection, one)))
    return found


def _read(connection: sqlite3.Connection, one: _Waiting) -> Known:
    (raw,) = connection.execute(sql.PAYLOAD, (one.key,)).fetchone()
    return Known(text_of(raw), raw if may_call(one.role, one.how, raw) else None)


class Tail(NamedTuple):
    """The end of a log that the index has not reached."""

    after: int
    """The key of the last entry that it has."""
    words: Sequence[tuple[int, frozenset[str]]] = ()
    """Of each message after that, by its key, the tokens that the index will have."""


def tail(connection: sqlite3.Connection, number: int) -> Tail:
    """What waits of one log; the index may get there meanwhile, so who reads both takes it up to `after` only."""
    row = connection.execute(sql.INDEXED_UNTIL, (number,)).fetchone()
    end = entry_key(number, SEQ_MASK)
    if row is None:
        return Tail(end)
    after = entry_key(number, row[0])
    found: list[tuple[int, frozenset[str]]] = []
    for key, raw in connection.execute(sql.WAITING_MESSAGES, (after, end)):
        with suppress(StoreDamaged):
            found.append((key, frozenset(index_tokens(text_of(raw)))))
    return Tail(after, found)


def _tokens(one: _Waiting, text: str) -> int:
    known = known_tokens(one.chain)
    return count_tokens(text) if known is None else known


def is_in_index(connection: sqlite3.Connection, number: int, seq: int) -> bool:
    """Whether the index has reached this entry of a log that is on the record."""
    row = connection.execute(sql.INDEXED_UNTIL, (number,)).fetchone()
    return row is None or seq <= row[0]
