"""Database files: opened with our settings, brought up to date, and what SQLite says of them in our words."""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

from everthread.adapters.stores import schema
from everthread.adapters.stores.layout import note_tokens
from everthread.adapters.stores.sqlite import statements as sql
from everthread.adapters.stores.sqlite.blobs import add_blob_functions, cause_of
from everthread.adapters.stores.sqlite.compression import add_compression_functions
from everthread.core.blobs import Blobs
from everthread.core.errors import StoreBusy, StoreDamaged, StoreError, StoreFull
from everthread.core.failpoints import reach

DAMAGE = (sqlite3.Error, UnicodeDecodeError, json.JSONDecodeError)
"""The exceptions that working on a file can raise; the last two only when the file is damaged."""


def connect(path: Path, blobs: Callable[[], Blobs | None] = lambda: None) -> sqlite3.Connection:
    """A connection to a file that is up to date."""
    connection = _connect(path)
    add_blob_functions(connection, blobs)
    add_compression_functions(connection)
    return connection


def identity(path: Path) -> Sequence[tuple[int, int] | None]:
    """Which files the names of a database and its log stand for now; None for one that is not there."""
    return [_identity(os.fspath(path)), _identity(f"{path}-wal")]


def _identity(name: str) -> tuple[int, int] | None:
    try:
        found = os.stat(name)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _connect(path: Path) -> sqlite3.Connection:
    """With our pragmas; transactions are ours to begin."""
    try:
        connection = sqlite3.connect(
            path,
            timeout=sql.BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=256,
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


_LEAST_PAGE_BYTES = 512
"""Every size of a page is a multiple of it."""


def prepare(path: Path) -> None:
    """Make the folder, and bring the tables up to date."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise StoreError(f"cannot make the folder of {path}: {problem}") from problem
    _refuse_cut_off(path)
    version = version_of(path)
    if version is None or version < schema.VERSION:
        migrate(path)
    else:
        schema.refuse_newer(version)


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
    page_bytes = _LEAST_PAGE_BYTES
    if not size % page_bytes:  # else the cut may be within the schema, without which SQLite tells no size of a page
        with closing(_connect(path)) as connection:
            try:
                (page_bytes,) = connection.execute(sql.PAGE_BYTES).fetchone()
            except DAMAGE as problem:
                raise translated(problem) from problem
    if size % page_bytes:
        _refuse_other_file(path)
        raise StoreDamaged("the file ends within a page: its end was cut off; restore a backup")


def _refuse_other_file(path: Path) -> None:
    """StoreDamaged for a file that does not begin as SQLite's do: a mistyped path, not a file that was cut off."""
    with closing(sqlite3.connect(path)) as connection:
        try:
            connection.execute(sql.SCHEMA_NUMBER).fetchone()
        except sqlite3.Error as problem:
            if problem.sqlite_errorcode & 0xFF == sqlite3.SQLITE_NOTADB:
                raise translated(problem) from problem


def version_of(path: Path) -> int | None:
    """Return the version of a file's tables; None when it has no tables yet."""
    with closing(_connect(path)) as connection:
        try:
            return read_version(connection)
        except DAMAGE as problem:
            raise translated(problem) from problem


def read_version(connection: sqlite3.Connection) -> int | None:
    """The same over a connection."""
    names = {row[0] for row in connection.execute(sql.VERSION_TABLES)}
    if "schema_version" in names:
        row = connection.execute(schema.VERSION_QUERY).fetchone()
        return None if row is None else int(row[0])
    if "alembic_version" in names:
        row = connection.execute(schema.OLD_VERSION_QUERY).fetchone()
        return None if row is None else schema.old_version(str(row[0]))
    return None


def migrate(path: Path) -> list[int]:
    """Make the tables of a new file, or run the steps that are missing; give the versions it went through.

    All in one transaction: killed anywhere, it has happened or it has not.
    """
    with closing(_connect(path)) as connection:
        connection.create_function("note_tokens", 3, note_tokens, deterministic=True)
        try:
            connection.execute("BEGIN IMMEDIATE")
            version = read_version(connection)
            reach("migrate.begun")
            if version is None:
                _run(connection, schema.create("sqlite"), schema.VERSION)
                ran = [schema.VERSION]
            else:
                steps = schema.missing_steps(version)
                for step in steps:
                    _run(connection, step.upgrade("sqlite"), step.version)
                ran = [step.version for step in steps]
            reach("migrate.before_commit")
            connection.execute("COMMIT")
        except DAMAGE as problem:
            raise translated(problem) from problem
    return ran


def _run(connection: sqlite3.Connection, statements: Sequence[str], to: int) -> None:
    for statement in statements:
        connection.execute(statement)
        reach("migrate.step_done")
    connection.execute(sql.DELETE_VERSION)
    connection.execute(sql.INSERT_VERSION, (to,))


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
    if code == sqlite3.SQLITE_NOTADB:
        return StoreDamaged("the file is not an SQLite database: name another; if it was one, restore a backup")
    if code == sqlite3.SQLITE_CORRUPT or _is_unreadable(problem):
        return StoreDamaged(f"the file is not a sound SQLite database ({problem}): restore a backup")
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN):
        return StoreError(
            f"the database's file or its folder cannot be written ({problem}); nothing was stored: let the user who "
            "runs this read and write both, or work on a copy"
        )
    return StoreError(f"SQLite: {problem}; nothing of this call was stored")


def _is_unreadable(problem: sqlite3.Error | ValueError) -> bool:
    """Whether a row, or SQLite's message about the damage, holds bytes that are not text or not JSON."""
    return isinstance(problem, ValueError) or str(problem).startswith("Could not decode to UTF-8")
