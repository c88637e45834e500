"""Opens SQLite databases of other programs: for reading only, and so that no file keeps its reader busy without end.

A database can hold more than data. A view, a generated column and a page that many rows share compute or repeat what no
file could hold, and anybody may upload one.
"""

from __future__ import annotations

import sqlite3
from itertools import count
from pathlib import Path

from everthread.imports.session import MAX_WEIGHT_BYTES, BrokenEntry, weight_of

_FUNCTIONS = frozenset({"count", "length", "max", "min"})
"""What our own statements call."""
_GENERATED = (2, 3)
_MOST_VALUE_BYTES = 1_000_000_000
"""SQLite's own limit."""
_STEPS_AT_ONCE = 1_000_000
_SPARE_STEPS, _STEPS_PER_BYTE = 200_000_000, 20
_SPARE_BYTES, _READINGS = 64 << 20, 8
"""A reader reads the rows of a table a few times at most."""
_ROW_BYTES = 64


class ForeignDatabase(sqlite3.Connection):
    """Gives no more than a file of its size can hold, and of one session no more than fits in memory."""

    _bytes_left = _session_bytes = 0

    def bound(self, file_bytes: int) -> None:
        """Let no statement read from views, use recursion, or do and give much more than a file of this size has."""
        self.execute("PRAGMA trusted_schema = OFF")
        self.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, min(_MOST_VALUE_BYTES, max(file_bytes, 1 << 20)))
        self.set_authorizer(_authorize)
        steps = count()
        most_steps = (_SPARE_STEPS + _STEPS_PER_BYTE * file_bytes) // _STEPS_AT_ONCE
        self.set_progress_handler(lambda: next(steps) > most_steps, _STEPS_AT_ONCE)
        self._bytes_left = _SPARE_BYTES + _READINGS * file_bytes
        self.row_factory = self._counted_row

    def begin_session(self) -> None:
        """What is read from now on is of another session."""
        self._session_bytes = 0

    def _counted_row(self, cursor: sqlite3.Cursor, values: tuple[object, ...]) -> sqlite3.Row:
        texts = [one for one in values if isinstance(one, str | bytes)]
        self._bytes_left -= _ROW_BYTES + sum(map(len, texts))
        if self._bytes_left < 0:
            raise BrokenEntry("gives more than a file of its size can hold")
        self._session_bytes += sum(map(weight_of, texts))
        if self._session_bytes > MAX_WEIGHT_BYTES:
            raise BrokenEntry("has a session too large to be held in memory")
        return sqlite3.Row(cursor, values)


def open_read_only(path: Path, *tables: str) -> ForeignDatabase:
    """A database of which these tables are to be read, opened so that nothing is written beside it: SQLite would make
    the files of its write-ahead log where there are none. Without one, the file alone is the whole database."""
    log = path.with_name(f"{path.name}-wal")
    log_bytes = log.stat().st_size if log.exists() else 0
    address = f"{path.absolute().as_uri()}?mode=ro{'' if log_bytes else '&immutable=1'}"
    connection = sqlite3.connect(address, uri=True, timeout=10, check_same_thread=False, factory=ForeignDatabase)
    connection.bound(path.stat().st_size + log_bytes)
    for table in tables:  # what computes a column may take for ever already when a statement is prepared
        if any(row["hidden"] in _GENERATED for row in connection.execute(f"PRAGMA table_xinfo({table})")):
            connection.close()
            raise BrokenEntry(f"has generated columns in its table {table}, which are not read")
    return connection


def _authorize(action: int, first: str | None, second: str | None, database: str | None, view: str | None) -> int:
    if view is not None or action == sqlite3.SQLITE_RECURSIVE:
        return sqlite3.SQLITE_DENY
    if action == sqlite3.SQLITE_FUNCTION and second not in _FUNCTIONS:
        return sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK
