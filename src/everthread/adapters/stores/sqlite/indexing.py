"""The search index of a SQLite file, a little behind the log and never seen so.

FTS5 writes a segment at each commit: five messages cost 280 µs that way, and 40 µs when some hundred are
indexed together. So an append only notes up to where its log is indexed (in its own transaction, so nothing is
forgotten), the writer indexes a batch when one has gathered, and a search first has the rest indexed; a recall in one
conversation looks through the few that wait there instead. The tools that messages call are counted in the same
batch, and the tokens that a reader has counted are noted.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from everthread.adapters.stores.layout import may_call, sound_payload, text_of, uses_of
from everthread.adapters.stores.sqlite import statements as sql
from everthread.adapters.stores.sqlite.unindexed import Known, UnindexedTexts, known_tokens
from everthread.core.entries import SEQ_MASK, UNCOUNTED, Flag, Kind, entry_key
from everthread.core.errors import StoreDamaged
from everthread.core.failpoints import reach
from everthread.core.ids import owner_scope
from everthread.core.nouns import Ref
from everthread.core.text_memo import TextMemo
from everthread.text.words import index_text, index_tokens

_ERASED = int(Flag.ERASED)
"""A number, because a flag makes an object of every answer."""
_MESSAGE = int(Kind.MESSAGE)
BATCH = 400
"""How many entries are indexed in one transaction: some 12 ms, for which other writers wait. A long one counts as
several (`index_weight`)."""
_WEIGHED_BYTES = 1_250
MOST_UNINDEXED = 4_000
"""While callers wait the index may fall this far behind: a search then has 0.2 s of work to do first."""


COUNT_USE = """
INSERT INTO uses (conversation, kind, name, uses, last_at) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (conversation, kind, name) DO UPDATE SET uses = uses + excluded.uses, last_at = excluded.last_at"""
"""Count that a tool was used."""

FEW = 40
"""So many entries are looked through as they are: to read them takes less than to index and commit them."""


_words_of = TextMemo(lambda text: frozenset(index_tokens(text)), min_chars=96, max_chars=4_000, capacity=256)
"""Of messages that wait, at which one question after another looks."""


def index_weight(length: int) -> int:
    """For how many short entries one of this length counts, in bytes or characters."""
    return 1 + length // _WEIGHED_BYTES


def is_behind(connection: sqlite3.Connection) -> bool:
    """Whether some entries wait for the index."""
    return connection.execute(sql.UNINDEXED).fetchone() is not None


def is_far_behind(connection: sqlite3.Connection, ref: Ref) -> bool:
    """Whether more than a few entries of one conversation do."""
    row = connection.execute(sql.WAITING, ref).fetchone()
    return row is not None and row[0] > FEW


def index_some(connection: sqlite3.Connection, texts: UnindexedTexts) -> None:
    """Index a batch of what waits, over as many logs as it takes, in the writer's transaction."""
    left = BATCH
    while left > 0 and (row := connection.execute(sql.UNINDEXED).fetchone()) is not None:
        left -= _index_log(connection, _Behind._make(row), left, texts)
    reach("index.written")


class _Behind(NamedTuple):
    """A log that the index has not reached the end of."""

    number: int
    after: int
    counted: int
    """Up to here the uses of tools are counted already, so that rebuilding the index does not count them again."""
    owner: str
    last: int


class _Batch(NamedTuple):
    """What a batch of entries adds to the index, and to the counts made with it."""

    said: list[tuple[int, str]]
    """By the keys of messages."""
    counted: list[tuple[int, int]]
    """The tokens of entries that a reader has counted meanwhile, and their keys."""
    calling: list[bytes]
    """Payloads that may call tools."""
    last: int
    """The key of the last entry that was looked at …"""
    weight: int
    """… and for how many short ones they all count."""


def _index_log(connection: sqlite3.Connection, behind: _Behind, limit: int, texts: UnindexedTexts) -> int:
    number = behind.number
    span = (entry_key(number, behind.after), entry_key(number, behind.last), limit)
    rows = connection.execute(sql.TO_INDEX, span).fetchall()
    found = _read_batch(connection, rows, entry_key(number, behind.counted), limit, texts)
    scope = (owner_scope(behind.owner),)
    connection.executemany(sql.INSERT_WORDS, [(key, index_text(text, scope)) for key, text in found.said])
    connection.executemany(sql.SET_TOKENS, found.counted)
    if used := uses_of(map(sound_payload, found.calling)):
        last_at = max(row[-1] for row in rows)
        connection.executemany(COUNT_USE, [(number, *use, count, last_at) for use, count in used.items()])
    if found.weight >= limit and found.last < span[1]:
        connection.execute(sql.MOVE_UNINDEXED, (found.last & SEQ_MASK, number))
    else:
        connection.execute(sql.DELETE_UNINDEXED, (number,))
    return found.weight


def _read_batch(
    connection: sqlite3.Connection, rows: Iterable[tuple[Any, ...]], used_until: int, limit: int, texts: UnindexedTexts
) -> _Batch:
    """Of the first rows, as many as a batch takes, those that are not erased; without a damaged one, of which `verify`
    tells, so that the others are still found. One loop over plain rows: it runs for every entry."""
    said: list[tuple[int, str]] = []
    counted: list[tuple[int, int]] = []
    callers: list[bytes] = []
    last = weight = 0
    for key, kind, role, change_kind, flags, tokens, chain, _ in rows:
        if weight >= limit:
            break
        last = key
        weight += 1
        if flags & _ERASED:
            continue
        try:
            text, calling = texts.take(chain) or _read(connection, key, role, change_kind)
        except StoreDamaged:
            continue
        weight += index_weight(len(text)) - 1
        if kind == _MESSAGE:
            said.append((key, text))
        if tokens == UNCOUNTED and (known := known_tokens(chain)) is not None:
            counted.append((known, key))
        if calling is not None and key > used_until:
            callers.append(calling)
    return _Batch(said, counted, callers, last, weight)


def _read(connection: sqlite3.Connection, key: int, role: str, change_kind: int | None) -> Known:
    (raw,) = connection.execute(sql.PAYLOAD, (key,)).fetchone()
    return text_of(raw), raw if may_call(role, change_kind, raw) else None


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
            found.append((key, _words_of(text_of(raw))))
    return Tail(after, found)


def is_in_index(connection: sqlite3.Connection, number: int, seq: int) -> bool:
    """Whether the index has reached this entry of a log that is on the record."""
    row = connection.execute(sql.INDEXED_UNTIL, (number,)).fetchone()
    return row is None or seq <= row[0]
