"""The search index of a SQLite file, a little behind the log and never seen so.

FTS5 writes a segment at each commit: five messages cost 280 µs that way, and 40 µs when some hundred are
indexed together. So an append only notes up to where its log is indexed (in its own transaction, so nothing is
forgotten), the writer indexes a batch when one has gathered, and a search first has the rest indexed.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import suppress

from everthread.adapters.stores.layout import entry_key, is_indexed, words_of
from everthread.adapters.stores.sqlite import statements as sql
from everthread.core.entries import Entry
from everthread.core.errors import StoreDamaged
from everthread.core.failpoints import reach

BATCH = 400
"""How many entries are indexed in one transaction: some 12 ms, for which other writers wait."""
MOST_UNINDEXED = 4_000
"""While callers wait the index may fall this far behind: a search then has 0.2 s of work to do first."""


def is_behind(connection: sqlite3.Connection) -> bool:
    """Whether some entries wait for the index."""
    return connection.execute(sql.UNINDEXED).fetchone() is not None


def index_some(connection: sqlite3.Connection) -> None:
    """Index a batch of what waits, over as many logs as it takes, in the writer's transaction."""
    left = BATCH
    while left > 0 and (row := connection.execute(sql.UNINDEXED).fetchone()) is not None:
        left -= _index_log(connection, row, left)
    reach("index.written")


def _index_log(connection: sqlite3.Connection, behind: tuple[int, int, str, int], limit: int) -> int:
    number, after, owner, count = behind
    span = (entry_key(number, after), entry_key(number, count), limit)
    entries = [Entry._make(row) for row in connection.execute(sql.SCAN, span)]
    connection.executemany(
        sql.INSERT_WORDS,
        [
            (entry_key(number, entry.seq), words)
            for entry in entries
            if is_indexed(entry, off_record=False) and not entry.is_erased
            for words in _readable_words(entry, owner)
        ],
    )
    if entries and entries[-1].seq < count:
        connection.execute(sql.MOVE_UNINDEXED, (entries[-1].seq, number))
    else:
        connection.execute(sql.DELETE_UNINDEXED, (number,))
    return len(entries)


def _readable_words(entry: Entry, owner: str) -> Iterator[str]:
    """The words of an entry; none for a damaged one, of which `verify` tells, so that the others are still found."""
    with suppress(StoreDamaged):
        yield words_of(entry, owner)


def is_in_index(connection: sqlite3.Connection, number: int, seq: int) -> bool:
    """Whether the index has reached this entry of a log that is on the record."""
    row = connection.execute(sql.INDEXED_UNTIL, (number,)).fetchone()
    return row is None or seq <= row[0]
