"""A SQLite file as an earlier version left it: steps of the migration undone, newest first."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence

UNDO: Mapping[str, Sequence[str]] = {
    "0021": (),
    "0020": (),
    "0019": (
        "DROP TABLE IF EXISTS entry_ids",
        "DROP TABLE IF EXISTS filed",
        "CREATE INDEX entries_by_id ON entries ((key >> 32), id)",
    ),
    "0018": ("ALTER TABLE unindexed DROP COLUMN counted_seq",),
}
"""What takes each step back; a newer step goes on top."""


def back_to(connection: sqlite3.Connection, revision: str) -> None:
    """Undo what was done after a revision."""
    for statement in (statement for step, undo in UNDO.items() if step > revision for statement in undo):
        connection.execute(statement)
    connection.execute("UPDATE alembic_version SET version_num = ?", (revision,))
