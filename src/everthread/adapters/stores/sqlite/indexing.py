"""The search index of a SQLite file, a little behind the log and never seen so.

FTS5 writes a segment at each commit: five messages cost 280 µs that way, and 40 µs when some hundred are
indexed together. So an append only notes what waits (in its own transaction, so nothing is forgotten), the
writer indexes a batch when one has gathered, and a search first has the rest indexed.
"""

from __future__ import annotations

import sqlite3

from everthread.adapters.stores.layout import words_of
from everthread.adapters.stores.sqlite import statements as sql
from everthread.core.entries import Entry

BATCH = 200
"""How many entries are indexed in one transaction: some 5 ms, for which other writers wait."""


def is_behind(connection: sqlite3.Connection) -> bool:
    """Whether some entries wait for the index."""
    return bool(connection.execute(sql.ANY_UNINDEXED).fetchone()[0])


def index_some(connection: sqlite3.Connection) -> int:
    """Index one batch of what waits, in the writer's transaction; give how many that were."""
    rows = connection.execute(sql.UNINDEXED, (BATCH,)).fetchall()
    connection.executemany(sql.INSERT_WORDS, [(row[0], words_of(Entry._make(row[2:]), row[1])) for row in rows])
    connection.executemany(sql.DELETE_UNINDEXED, [(row[0],) for row in rows])
    return len(rows)
