"""What `doctor` looks at in a SQLite file. It only reads: a file that is not in order is left as it is."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from everthread.adapters.jobs.sqlite import OLDEST_WAITING
from everthread.adapters.stores import schema
from everthread.adapters.stores.layout import words_of
from everthread.adapters.stores.restore import unfinished
from everthread.adapters.stores.sqlite import statements as sql
from everthread.adapters.stores.sqlite.blobs import add_blob_functions
from everthread.adapters.stores.sqlite.compression import add_compression_functions
from everthread.adapters.stores.sqlite.files import read_version
from everthread.adapters.vectors import sqlite as vectors
from everthread.adapters.vectors.quantised import record_bytes
from everthread.cli.doctor import (
    SAMPLE,
    SAMPLE_WORDS,
    Check,
    CheckState,
    check_disk,
    check_erasures,
    check_holds,
    check_index,
    check_jobs,
    check_sample,
    check_tables,
    check_vectors,
)
from everthread.core.entries import SEQ_BITS, SEQ_MASK, Entry, Flag, Kind
from everthread.core.ids import owner_scope
from everthread.history.holds import DOCUMENTS
from everthread.text.words import scope_token

if TYPE_CHECKING:
    from everthread.core.workspaces import Workspaces

TO_BE_INDEXED = f"""
SELECT c.owner, count(*) FILTER (WHERE u.after_seq IS NULL OR e.key & {SEQ_MASK} <= u.after_seq), count(*)
FROM entries e JOIN conversations c ON c.number = e.key >> {SEQ_BITS} LEFT JOIN unindexed u ON u.conversation = c.number
WHERE e.kind = {Kind.MESSAGE:d} AND e.flags & {Flag.ERASED:d} = 0 AND c.off_record = 0
GROUP BY c.owner"""
"""How many messages of each owner the index must hold by now, and how many in the end."""
INDEXED = "SELECT count(*) FROM words WHERE words MATCH ?"
"""How many it holds: each has its owner's scope as a word."""
KEYS = "SELECT coalesce(min(key), 0), coalesce(max(key), 0) FROM entries"
"""Between which keys a sample is drawn."""
SOME_MESSAGE = f"""
SELECT e.key, c.owner, {sql.ENTRY}
FROM entries e JOIN conversations c ON c.number = e.key >> {SEQ_BITS} LEFT JOIN unindexed u ON u.conversation = c.number
WHERE e.key >= ? AND e.kind = {Kind.MESSAGE:d} AND e.flags & {Flag.ERASED:d} = 0 AND c.off_record = 0
  AND (u.after_seq IS NULL OR e.key & {SEQ_MASK} <= u.after_seq)
  AND NOT EXISTS (SELECT 1 FROM payloads p WHERE p.key = e.key AND p.blob IS NOT NULL)
ORDER BY e.key LIMIT 1"""
"""The next message, from a key on, that the index must hold."""
IS_FOUND = "SELECT 1 FROM words WHERE words MATCH ? AND rowid = ?"
"""Whether the index has an entry under some words."""


def check_file(path: Path, workspaces: Workspaces) -> Iterator[Check]:
    """Look at a file from the outside in; stop where going on makes no sense."""
    if not path.exists():
        yield Check(
            name="database", state=CheckState.FAIL, found=f"no file {path}", advice="make it: everthread migrate"
        )
        return
    try:
        address = f"file:{quote(str(path.absolute()))}?mode=ro"
        with closing(sqlite3.connect(address, uri=True)) as connection:
            add_blob_functions(connection, lambda: None)
            add_compression_functions(connection)
            yield from _check_opened(connection, path, workspaces)
    except sqlite3.DatabaseError as problem:
        yield _unreadable(problem)


def _unreadable(problem: sqlite3.DatabaseError) -> Check:
    code = getattr(problem, "sqlite_errorcode", 0) & 0xFF
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return Check(name="database", state=CheckState.DAMAGED, found=str(problem), advice="restore a backup")
    return Check(
        name="database",
        state=CheckState.FAIL,
        found=str(problem),
        advice="see that the file and its folder can be read and written, and that it is not locked",
    )


def _check_opened(connection: sqlite3.Connection, path: Path, workspaces: Workspaces) -> Iterator[Check]:
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    (page_bytes,) = connection.execute("PRAGMA page_size").fetchone()
    yield _check_pages(connection)
    yield _check_journal(connection)
    yield check_disk(path.parent, pages * page_bytes)
    if unfinished(path).exists():
        yield Check(
            name="restore",
            state=CheckState.WARN,
            found="a restore was cut off and left a copy of its backup",
            advice=f"restore again, or remove {unfinished(path)}",
        )
    tables_check = check_tables(read_version(connection), schema.VERSION)
    yield tables_check
    if tables_check.state is CheckState.OK:
        done = connection.execute(sql.ERASURES).fetchall()
        yield check_erasures(connection.execute(sql.UNFINISHED_ERASURES).fetchone()[0], done, workspaces)
        yield check_holds(row[0] for row in connection.execute(DOCUMENTS))
        counts = {name: connection.execute(sql.STATS[f"jobs_{name}"]).fetchone()[0] for name in ("waiting", "dead")}
        oldest = connection.execute(OLDEST_WAITING).fetchone()
        yield check_jobs(**counts, oldest_at=None if oldest is None else oldest[0])
        connection.execute("BEGIN")
        yield _check_vectors(connection)
        yield _check_count(connection)
        yield _check_sample(connection)


def _check_vectors(connection: sqlite3.Connection) -> Check:
    rows = connection.execute(vectors.ALL_SIZES).fetchall()
    parts = {name: bytes // record_bytes(dimension) for name, dimension, bytes in rows}
    return check_vectors(vectors.SqliteVectors.about, parts)


def _check_pages(connection: sqlite3.Connection) -> Check:
    (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if found == "ok":
        return Check(name="database", state=CheckState.OK, found="readable, pages in order")
    return Check(name="database", state=CheckState.DAMAGED, found=found, advice="restore a backup")


def _check_journal(connection: sqlite3.Connection) -> Check:
    (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
    for pragma in sql.PRAGMAS[1:]:
        connection.execute(pragma)
    (synchronous,) = connection.execute("PRAGMA synchronous").fetchone()
    full = 2
    is_good = mode == "wal" and synchronous == full
    return Check(
        name="durability",
        state=CheckState.OK if is_good else CheckState.WARN,
        found=f"journal_mode={mode}, synchronous={'FULL' if synchronous == full else synchronous}",
        advice="" if is_good else "the next opening sets journal_mode=wal, where the file system allows it",
    )


def _check_count(connection: sqlite3.Connection) -> Check:
    rows = connection.execute(TO_BE_INDEXED).fetchall()
    scopes = (f'"{scope_token(owner_scope(owner))}"' for owner, _, _ in rows)
    indexed = sum(connection.execute(INDEXED, (scope,)).fetchone()[0] for scope in scopes)
    wanted, total = sum(row[1] for row in rows), sum(row[2] for row in rows)
    return check_index(indexed=indexed, wanted=wanted, waiting=total - wanted)


def _check_sample(connection: sqlite3.Connection) -> Check:
    first, last = connection.execute(KEYS).fetchone()
    drawn = (connection.execute(SOME_MESSAGE, (random.randint(first, last),)).fetchone() for _ in range(SAMPLE))
    rows = {row[0]: row for row in drawn if row is not None}
    found = sum(_is_found(connection, row[0], row[1], Entry._make(row[2:])) for row in rows.values())
    return check_sample(found=found, drawn=len(rows))


def _is_found(connection: sqlite3.Connection, key: int, owner: str, entry: Entry) -> bool:
    words = words_of(entry, owner).split(" ")[:SAMPLE_WORDS]
    match = " AND ".join(f'"{word}"' for word in words)
    return connection.execute(IS_FOUND, (match, key)).fetchone() is not None
