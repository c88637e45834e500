"""How far the index of a SQLite file may fall behind its log."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import everthread
from everthread.adapters.stores.sqlite.indexing import MOST_UNINDEXED

_AT_ONCE = 1_000


def waiting(path: Path) -> int:
    """How many entries the index has not reached."""
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute(
            "SELECT c.entry_count - u.after_seq FROM conversations c JOIN unindexed u ON u.conversation = c.number"
        )
        return sum(row[0] for row in rows)


async def test_who_appends_by_the_thousand_does_not_leave_the_index_behind(tmp_path: Path) -> None:
    """Else the first search after an import of a million messages has all of them to index."""
    async with everthread.open(f"sqlite:///{tmp_path}/et.db", worker=False) as et:
        conv = await et.conversations.create()
        for part in range(2 * MOST_UNINDEXED // _AT_ONCE):
            await conv.append([{"role": "user", "content": f"line {part} {n}"} for n in range(_AT_ONCE)])
            assert waiting(tmp_path / "et.db") <= MOST_UNINDEXED + _AT_ONCE
