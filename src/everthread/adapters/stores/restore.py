"""Backups: written whole or not at all, and put back so that nothing erased comes back with them.

A backup holds what was erased after it was taken. So restoring first reads the list of erasures of the database
that is replaced (and any list kept elsewhere), applies what the backup does not know yet, under its first date,
revokes the keys and share links that were revoked in the replaced one, and verifies the result. Only then it takes
the old one's place. Killed anywhere before that moment, the old database stands as it was; after it, the new one does.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import quote

from everthread.adapters.stores import schema
from everthread.core.access import SHARE_FIELD, without_share
from everthread.core.blobs import Blobs
from everthread.core.clock import from_micros, system_clock, to_micros
from everthread.core.errors import Conflict, NotFound, StoreBusy, StoreDamaged
from everthread.core.nouns import Ref, VerifyReport
from everthread.core.ports import Store
from everthread.history import verify as verifying


class Erasure(NamedTuple):
    """One line of the list of erasures."""

    owner: str
    conversation_id: str | None
    message_id: str | None
    erased_at: datetime


class Access(NamedTuple):
    """Who could get into the replaced database."""

    revoked_keys: frozenset[str] = frozenset()
    """The ids of keys that let nobody in any more."""
    shares: Mapping[Ref, object] = MappingProxyType({})
    """Of each conversation, what its metadata know of a share link; None for one that is not shared."""


class RevokedAccess(NamedTuple):
    """How many keys and share links of a backup were revoked, because they had been since it was made."""

    keys: int = 0
    links: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """The result of a restore."""

    erasures: Sequence[Erasure]
    """The erasures made after the backup, which were applied to it."""
    is_old_list_read: bool
    """False when there was a database to replace, but it was too damaged to tell what was erased in it."""
    kept: str | None
    """Where the old database is, if it was to be kept: a file, or a schema."""
    report: VerifyReport
    revoked: RevokedAccess


async def back_up(store: Store, target: Path) -> int:
    """Write a consistent copy, which gets its name only once it is complete, and return its size in bytes."""
    with _appearing_whole(target) as copy:
        await store.maintenance.backup(copy)
    return os.stat(target).st_size


@contextmanager
def _appearing_whole(target: Path) -> Iterator[Path]:
    """Yield a temporary path; when the block succeeds, the file there gets its name, readable by its owner only."""
    if target.exists():
        raise Conflict(f"{target} exists already; nothing was written: choose another name")
    if not target.parent.is_dir():
        raise NotFound(f"folder not found: {target.parent}; nothing was written")
    with tempfile.TemporaryDirectory(prefix=".backup-", dir=target.parent) as work:
        copy = Path(work, target.name)
        yield copy
        os.chmod(copy, 0o600)
        _to_disk(copy)
        os.rename(copy, target)
    _to_disk(target.parent)


async def restore_sqlite(
    source: Path,
    target: Path,
    *,
    erasures: Sequence[Erasure] = (),
    force: bool = False,
    keep_old: bool = False,
    blobs: Blobs | None = None,
) -> Restored:
    """Replace a database file with a backup, without what was erased since.

    A backup holds no blobs: `blobs` is where they are, and they are verified with the rest.

    When the copy does not verify, `Restored.report` says so and the old database stands untouched.
    """
    from everthread.adapters.stores.sqlite import SqliteStore  # noqa: PLC0415 - only where there is SQLite

    target = _free_place(target, force)
    with _lock(target) as old, _copy_of(source, target) as copy:
        applied = _erase_again(copy, [*old.erasures, *erasures], blobs)
        report, revoked = await revoke_and_verify(SqliteStore(copy, blobs=blobs), old.access)
        kept = _take_place(copy, target, keep_old) if report.ok else None
    return Restored(erasures=applied, is_old_list_read=old.is_readable, kept=kept, report=report, revoked=revoked)


def _free_place(target: Path, force: bool) -> Path:
    """The file itself, where the name is a link to it."""
    place = target.resolve()
    if place.exists() and not force:
        raise Conflict(f"{place} exists already; nothing was changed: --force replaces it")
    place.parent.mkdir(parents=True, exist_ok=True)
    return place


# --- the old database ---------------------------------------------------------------------------------------------


class _Old(NamedTuple):
    erasures: Sequence[Erasure] = ()
    access: Access = Access()
    is_readable: bool = True


@contextmanager
def _lock(target: Path) -> Iterator[_Old]:
    """Lock the old database, with all of it in one file: a process that had it open would go on writing to a file that
    is replaced, and lose what it wrote.
    """
    if not target.exists():
        yield _Old()
        return
    with closing(sqlite3.connect(target, timeout=2, isolation_level=None)) as connection:
        try:
            found = _Old(_erasures(connection), _access(connection))
            # Leaving WAL succeeds only for a connection that is alone, and brings the log's pages into the file.
            connection.execute("PRAGMA journal_mode = DELETE").fetchone()
            connection.execute("BEGIN EXCLUSIVE")
        except sqlite3.DatabaseError as problem:
            _refuse_busy(problem, target)
            old = _Old(is_readable=False)
        else:
            old = found
        yield old


def _refuse_busy(problem: sqlite3.DatabaseError, target: Path) -> None:
    if problem.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        raise StoreBusy(f"another process has {target} open; nothing was changed: stop it, then restore") from problem


def _erasures(connection: sqlite3.Connection) -> list[Erasure]:
    from everthread.adapters.stores.sqlite import statements as sql  # noqa: PLC0415 - only where there is SQLite

    if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'erasures'").fetchone() is None:
        return []
    rows = connection.execute(sql.ERASURES)
    return [Erasure(owner, conversation, message, from_micros(at)) for owner, conversation, message, at in rows]


def _access(connection: sqlite3.Connection) -> Access:
    names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    keys = connection.execute(REVOKED_KEYS.format(place="")).fetchall() if "api_keys" in names else []
    shares = connection.execute(SHARES.format(place="")).fetchall() if "conversations" in names else []
    return access_of(keys, shares)


REVOKED_KEYS = "SELECT id FROM {place}api_keys WHERE revoked_at IS NOT NULL"
"""The keys that let nobody in any more."""

SHARES = "SELECT owner, id, metadata FROM {place}conversations WHERE erased_at IS NULL"
"""What the metadata of each conversation know of a share link."""


def access_of(keys: Iterable[Any], shares: Iterable[Any]) -> Access:
    """From the rows of `REVOKED_KEYS` and `SHARES`."""
    found: dict[Ref, object] = {}
    for owner, id, metadata in shares:
        found[Ref(owner, id)] = None
        with suppress(ValueError, AttributeError):  # damaged: its link is revoked, whatever it was
            found[Ref(owner, id)] = json.loads(metadata).get(SHARE_FIELD)
    return Access(frozenset(row[0] for row in keys), found)


async def _revoke_again(store: Store, access: Access) -> RevokedAccess:
    """Revoke the keys and links of a backup that were revoked, or replaced by others, since it was made."""
    keys = links = 0
    for key in await store.api_keys.list(None):
        if key.revoked_at is None and key.id in access.revoked_keys:
            await store.api_keys.revoke(key.id)
            keys += 1
    for info in await store.maintenance.heads():
        ref, share = Ref(info.owner, info.id), info.metadata.get(SHARE_FIELD)
        if share is not None and share != access.shares.get(ref, share):
            await store.conversations.update(ref, {"metadata": json.dumps(without_share(info.metadata)).encode()})
            links += 1
    return RevokedAccess(keys, links)


# --- the backup, made ready beside the old one --------------------------------------------------------------------


@contextmanager
def _copy_of(source: Path, target: Path) -> Iterator[Path]:
    """The backup, copied into a file beside the target, at today's tables. It is gone when the block ends.

    It always has the same name: what a killed restore left there, erased text perhaps, goes with the next one.
    """
    copy = unfinished(target)
    _remove(copy)
    os.close(os.open(copy, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    try:
        _copy(source, copy)
        _bring_up_to_date(source, copy)
        yield copy
    finally:
        _remove(copy)


def unfinished(target: Path) -> Path:
    """Return the path where a restore prepares the file that is to become `target`."""
    return target.with_name(f".{target.name}.restoring")


def _copy(source: Path, copy: Path) -> None:
    """Copy with SQLite itself, so that the contents of a write-ahead log next to the source are included."""
    if not source.is_file():
        raise NotFound(f"file not found: {source}; nothing was changed")
    # Without a log beside it the file alone is the backup, and may lie where nothing can be written.
    wal = source.with_name(f"{source.name}-wal")
    how = "mode=ro" if wal.exists() else "immutable=1"
    try:
        with (
            closing(sqlite3.connect(f"file:{quote(str(source.absolute()))}?{how}", uri=True)) as backup,
            closing(sqlite3.connect(copy)) as written,
        ):
            backup.backup(written)
            (found,) = written.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.DatabaseError as problem:
        raise StoreDamaged(f"{source} is not an intact SQLite database ({problem}); nothing was changed") from problem
    if found != "ok":
        raise StoreDamaged(f"{source} is damaged ({found}); nothing was changed: restore another backup")


def _bring_up_to_date(source: Path, copy: Path) -> None:
    from everthread.adapters.stores.sqlite import files  # noqa: PLC0415 - only where there is SQLite

    version = files.version_of(copy)
    if version is None:
        raise StoreDamaged(f"{source} is not an everthread backup; nothing was changed")
    schema.refuse_newer(version)
    files.migrate(copy)


def _erase_again(copy: Path, erasures: Sequence[Erasure], blobs: Blobs | None) -> list[Erasure]:
    """Apply the erasures that the backup lacks, under their original dates.

    Those it knows are in it already; applied again, that of an owner would take what this owner wrote afterwards.
    """
    from everthread.adapters.stores.sqlite import erase, files  # noqa: PLC0415 - only where there is SQLite

    with closing(files.connect(copy, lambda: blobs)) as connection:
        known = set(_erasures(connection))
        unknown = [erasure for erasure in dict.fromkeys(erasures) if erasure not in known]
        connection.execute("BEGIN IMMEDIATE")
        for erasure in unknown:
            _erase_one(connection, erasure)
        connection.execute("COMMIT")
        erase.rewrite(connection, to_micros(system_clock()))
    return unknown


def _erase_one(connection: sqlite3.Connection, erasure: Erasure) -> None:
    """Record erasures of what is not in the backup too: another backup may have it."""
    from everthread.adapters.stores.sqlite import erase  # noqa: PLC0415 - only where there is SQLite
    from everthread.adapters.stores.sqlite import statements as sql  # noqa: PLC0415

    at = to_micros(erasure.erased_at)
    connection.execute("SAVEPOINT one")
    try:
        erase.blank(connection, *erasure[:3], at)
    except NotFound:
        connection.execute("ROLLBACK TO one")
        connection.execute(sql.INSERT_ERASURE, (*erasure[:3], at))
    connection.execute("RELEASE one")


async def revoke_and_verify(store: Store, access: Access) -> tuple[VerifyReport, RevokedAccess]:
    """Open a restored database, revoke again what was revoked before, and verify it."""
    await store.open()
    try:
        revoked = await _revoke_again(store, access)
        return await verifying.verify(store), revoked
    finally:
        await store.close()


# --- taking its place ---------------------------------------------------------------------------------------------


def _take_place(copy: Path, target: Path, keep_old: bool) -> str | None:
    """Put the new file in place. The rename is the moment that counts; the old file's log must be gone before it, or
    SQLite would apply it to the new one.
    """
    if target.exists():
        shutil.copymode(target, copy)
    _to_disk(copy)
    kept = str(_set_aside(target)) if keep_old and target.exists() else None
    for end in ("-wal", "-shm", "-journal"):
        target.with_name(target.name + end).unlink(missing_ok=True)
    os.replace(copy, target)
    _to_disk(target.parent)
    return kept


def _set_aside(target: Path) -> Path:
    """A second name for the old file, and its log (which only a damaged one still has) beside it."""
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    aside = target.with_name(f"{target.name}.replaced-{stamp}")
    os.link(target, aside)
    for end in ("-wal", "-shm", "-journal"):
        with suppress(FileNotFoundError):
            shutil.copy2(target.with_name(target.name + end), aside.with_name(aside.name + end))
    return aside


def _remove(file: Path) -> None:
    for end in ("", "-wal", "-shm", "-journal"):
        file.with_name(file.name + end).unlink(missing_ok=True)


def _to_disk(place: Path) -> None:
    """Flush a file's bytes, or a folder's names, to the disk."""
    opened = os.open(place, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
