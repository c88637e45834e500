"""Database files: opened with our settings, brought up to date, and what SQLite says of them in our words."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from everthread.adapters.stores import migrating
from everthread.adapters.stores.sqlite import statements as sql
from everthread.adapters.stores.sqlite.blobs import cause_of, teach_blobs
from everthread.adapters.stores.sqlite.later import Connection, core
from everthread.adapters.stores.sqlite.packing import teach_packing
from everthread.core.blobs import Blobs
from everthread.core.errors import StoreBusy, StoreDamaged, StoreError, StoreFull
from everthread.core.failpoints import reach

DAMAGE = (sqlite3.Error, UnicodeDecodeError, json.JSONDecodeError)
"""What working on a file can raise; the last two only when its bytes are not those that were written."""


def connect(path: Path, blobs: Callable[[], Blobs | None] = lambda: None) -> Connection:
    """A connection to a file that is up to date, whichever tables it has by now."""
    connection = _connect(path)
    try:
        teach_blobs(connection, blobs)
        teach_packing(connection)
        connection.stand_in()
    except DAMAGE as problem:
        connection.close()
        raise translated(problem) from problem
    return connection


def _connect(path: Path) -> Connection:
    """With our pragmas; transactions are ours to begin."""
    try:
        connection = sqlite3.connect(
            path,
            timeout=sql.BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=256,
            factory=Connection,
        )
    except sqlite3.Error as problem:
        raise translated(problem) from problem
    try:
        connection.execute(sql.USE_PAGES)
        _use_wal(connection)
        for pragma in sql.PRAGMAS:
            connection.execute(pragma)
        (page_bytes,) = connection.execute(sql.PAGE_BYTES).fetchone()
        connection.execute(sql.CHECKPOINT_AFTER.format(sql.WAL_BYTES // page_bytes))
    except DAMAGE as problem:
        connection.close()
        raise translated(problem) from problem
    return connection


def _use_wal(connection: sqlite3.Connection) -> None:
    """SQLite does not wait for the lock this takes on a new file, so when several processes make it at once, we do."""
    end = time.monotonic() + sql.BUSY_SECONDS
    while True:
        try:
            connection.execute(sql.USE_WAL)
        except sqlite3.OperationalError as problem:
            if problem.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                raise
            time.sleep(0.01)
        else:
            return


def prepare(path: Path) -> None:
    """Make the folder, and bring the tables up to date."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise StoreError(f"cannot make the folder of {path}: {problem}") from problem
    _refuse_cut_off(path)
    version = revision_of(path)
    if version is None or version < migrating.NEWEST:
        migrate(path)
    else:
        migrating.refuse_newer(version)


def _refuse_cut_off(path: Path) -> None:
    """SQLite misses whole pages, but reads half a page as one that ends in zeros.

    Its size is enough to know: to open the file here would undo the locks that this process has on it.
    """
    wal = path.with_name(f"{path.name}-wal")
    try:
        if not path.is_file() or (wal.is_file() and wal.stat().st_size):  # what a crash left half written is in the log
            return
        size = path.stat().st_size
    except OSError:  # which SQLite will tell
        return
    with closing(_connect(path)) as connection:
        try:
            (page_bytes,) = connection.execute(sql.PAGE_BYTES).fetchone()
        except DAMAGE as problem:
            raise translated(problem) from problem
    if size % page_bytes:
        raise StoreDamaged("the file ends within a page: its end was cut off; restore a backup")


def revision_of(path: Path) -> str | None:
    """The revision of a file's tables; None when it has none yet."""
    connection = _connect(path)
    try:
        row = connection.execute(migrating.VERSION_QUERY).fetchone()
        return None if row is None else str(row[0])
    except sqlite3.OperationalError:
        return None
    except DAMAGE as problem:
        raise translated(problem) from problem
    finally:
        connection.close()


def migrate(path: Path) -> list[str]:
    """Make the tables of a new file, or run the steps that are missing, all in one transaction: killed anywhere, it has
    happened or it has not.
    """
    connection = _connect(path)
    try:
        connection.execute("BEGIN IMMEDIATE")
        if connection.execute(sql.HAS_VERSION).fetchone():
            return _run_steps(connection)
        _make(connection)
    except DAMAGE as problem:
        raise translated(problem) from problem
    else:
        return [migrating.NEWEST]
    finally:
        connection.close()


def _make(connection: sqlite3.Connection) -> None:
    reach("migrate.begun")
    for statement in core():
        connection.execute(statement)
    connection.execute(sql.INSERT_VERSION, (migrating.NEWEST,))
    reach("migrate.before_commit")
    connection.execute("COMMIT")


def _run_steps(connection: sqlite3.Connection) -> list[str]:
    """Over a connection that is in a transaction, which it ends."""
    from sqlalchemy import create_engine  # noqa: PLC0415 - only when there is something to do
    from sqlalchemy.exc import DBAPIError  # noqa: PLC0415
    from sqlalchemy.pool import StaticPool  # noqa: PLC0415

    engine = create_engine("sqlite://", creator=lambda: connection, poolclass=StaticPool)
    try:
        with engine.connect() as over, over.begin():
            return list(migrating.run(over))
    except DBAPIError as problem:
        if isinstance(problem.orig, sqlite3.Error):
            raise translated(problem.orig) from problem
        raise
    finally:
        engine.dispose()


def translated(problem: sqlite3.Error | ValueError) -> StoreError:
    """SQLite's errors in our words."""
    cause = cause_of(problem)
    if isinstance(cause, StoreError):
        return cause
    code = getattr(problem, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_FULL:
        return StoreFull(
            "the disk is full; nothing of this call was stored, all before it is safe: make room and retry"
        )
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreBusy("another process holds the database; nothing of this call was stored: retry")
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB) or _is_unreadable(problem):
        return StoreDamaged(f"the file is not a sound SQLite database ({problem}): restore a backup")
    return StoreError(f"SQLite: {problem}; nothing of this call was stored")


def _is_unreadable(problem: sqlite3.Error | ValueError) -> bool:
    """Whether a row, or SQLite's own word about the damage, holds bytes that are no text or no JSON."""
    return isinstance(problem, ValueError) or str(problem).startswith("Could not decode to UTF-8")
