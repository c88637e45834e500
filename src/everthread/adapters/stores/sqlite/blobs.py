"""Blobs beside a SQLite file: read through a function of SQL, written and deleted in the writer's transactions.

The writer's transaction is the lock between those who write a blob and those who delete one that nothing refers to.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress

from everthread.adapters.stores.layout import NO_BLOB_STORE
from everthread.adapters.stores.sqlite import statements as sql
from everthread.core.blobs import Blobs
from everthread.core.errors import EverthreadError, StoreError
from everthread.core.failpoints import reach

_raised = threading.local()
"""SQLite only reports that a function raised; the exception itself is kept here for the error translation."""


def add_blob_functions(connection: sqlite3.Connection, source: Callable[[], Blobs | None]) -> None:
    """Register the SQL function `blob(name)`, which returns a blob's bytes, or NULL when it is missing."""

    def blob(name: str) -> bytes | None:
        try:
            blobs = source()
            if blobs is None:
                raise StoreError(NO_BLOB_STORE)
            return blobs.get(name)
        except EverthreadError as problem:
            _raised.problem = problem
            raise

    connection.create_function("blob", 1, blob)


def cause_of(problem: BaseException) -> EverthreadError | None:
    """Return the exception that our SQL function raised, if that is what SQLite reports."""
    if "user-defined function raised exception" not in str(problem):
        return None
    cause: EverthreadError | None = getattr(_raised, "problem", None)
    _raised.problem = None
    return cause


def doom(connection: sqlite3.Connection, key: int, now: int) -> bytes | None:
    """Note the blob of a payload that is being erased; give what the payload is committed to."""
    row = connection.execute(sql.BLOB_OF, (key,)).fetchone()
    if row is None or row[0] is None:
        return None
    connection.execute(sql.DOOM_BLOB, (row[0], now))
    commitment: bytes | None = row[1]
    return commitment


def delete_doomed(connection: sqlite3.Connection, blobs: Blobs) -> int:
    """Delete the blobs of what was erased, in the writer's transaction; how many."""
    names = [row[0] for row in connection.execute(sql.DOOMED_BLOBS)]
    return delete_unused(connection, blobs, names)


def delete_unused(connection: sqlite3.Connection, blobs: Blobs, names: Iterable[str]) -> int:
    """Delete those of them that nothing refers to, in the writer's transaction; how many."""
    deleted = 0
    for name in names:
        if connection.execute(sql.HAS_BLOB, (name,)).fetchone() is None:
            blobs.delete(name)
            reach("blob.deleted")
            deleted += 1
        connection.execute(sql.FORGET_DOOMED, (name,))
    return deleted


def referred(connection: sqlite3.Connection) -> dict[str, int]:
    """Every blob that a payload is in, and its size."""
    with suppress(sqlite3.OperationalError):  # tables from before there were blobs
        return dict(connection.execute(sql.BLOB_NAMES).fetchall())
    return {}
