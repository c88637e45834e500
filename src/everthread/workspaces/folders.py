"""One folder for each conversation: `root/owner/name-hash/files`, and beside `files` what is known about it.

`lease` is locked by whoever has the workspace open (the system lets go of it when the process dies) and its time is
that of the last use; `uploads.json` names what was handed in; `gone.json` says what a clean-up took. Owners and
conversations stand in no path as they are: any string may be an id.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import re
import secrets
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from datetime import UTC, datetime
from hashlib import blake2b, sha256
from pathlib import Path
from typing import Any, Final

from everthread.core.clock import Clock, system_clock
from everthread.core.errors import Conflict, Invalid, NotFound, StoreError
from everthread.core.ids import owner_scope
from everthread.core.nouns import Ref
from everthread.core.workspaces import (
    IDLE_DAYS,
    UPLOADS,
    FileInfo,
    Quota,
    Upload,
    WorkspaceInfo,
    check_name,
    check_path,
)
from everthread.workspaces import no_follow
from everthread.workspaces.destroy import destroy, open_folder
from everthread.workspaces.mime import check_mime

_LOG = logging.getLogger("everthread.workspaces")
_FILES: Final = "files"
_LEASE: Final = "lease"
_ABOUT: Final = "about.json"
_UPLOADS: Final = "uploads.json"
_GONE: Final = "gone.json"
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MAX_TRIES: Final = 100


class FolderWorkspaces:
    """Workspaces under a folder, made when the first of them is opened."""

    def __init__(
        self, root: Path, *, quota: Quota | None = None, idle_days: float = IDLE_DAYS, clock: Clock = system_clock
    ) -> None:
        self.root = root
        self.idle_days = idle_days
        self._quota = quota or Quota()
        self._clock = clock
        self._off_record: set[Ref] = set()

    def open(self, ref: Ref, *, expected: bool = False, off_record: bool = False) -> FolderWorkspace:
        home = self._home(ref)
        for _ in range(_MAX_TRIES):
            with suppress(FileNotFoundError):  # somebody removes it at this very moment
                return self._open(home, ref, expected, off_record)
        raise StoreError(f"the workspace of {ref.id!r} keeps being removed; try later")

    def _open(self, home: Path, ref: Ref, expected: bool, off_record: bool) -> FolderWorkspace:
        was_here = (home / _FILES).is_dir()
        (home / _FILES).mkdir(parents=True, exist_ok=True, mode=0o700)
        lease = _lock(home / _LEASE, fcntl.LOCK_SH)
        try:
            files = open_folder(home / _FILES)
        except OSError:
            os.close(lease)
            raise
        if not (home / _ABOUT).exists():
            _write_json(
                home / _ABOUT, {"owner": ref.owner, "conversation": ref.id, "off_record": off_record, "version": 1}
            )
        if off_record:
            self._off_record.add(ref)
        notice = _notice(home, was_here, expected)
        return FolderWorkspace(home, files, lease, notice=notice, quota=self._quota, clock=self._clock)

    def path(self, ref: Ref) -> Path:
        return self._home(ref) / _FILES

    def uploads(self, ref: Ref) -> Sequence[Upload]:
        return _read_uploads(self._home(ref)) if self.path(ref).is_dir() else ()

    def everything(self) -> Iterator[WorkspaceInfo]:
        for about in sorted(self.root.glob(f"*/*/{_ABOUT}")):
            try:
                if (about.parent / _FILES).is_dir():  # else only a note of what was cleaned is left
                    yield _info(about.parent)
            except (FileNotFoundError, NotFound):
                continue
            except (OSError, StoreError, KeyError) as problem:  # one of them is no reason not to see the others
                _LOG.warning("the workspace %s cannot be read: %s", about.parent.name, problem)

    def remove(self, ref: Ref) -> bool:
        home = self._home(ref)
        try:
            lease = _lock(home / _LEASE, fcntl.LOCK_EX | fcntl.LOCK_NB, make=False)
        except BlockingIOError:
            return False
        except FileNotFoundError:
            return True
        try:
            uploads = _read_json(home / _UPLOADS, [])
            if uploads and not _read_json(home / _ABOUT, {}).get("off_record"):
                _write_json(home / _GONE, {"at": self._clock(), "uploads": [one["name"] for one in uploads]})
                (home / _UPLOADS).unlink(missing_ok=True)
                destroy(home / _FILES)
            else:
                destroy(home)
        finally:
            os.close(lease)
        return True

    def erase(self, owner: str, conversation: str | None) -> int:
        place = self.root / owner_scope(owner) if conversation is None else self._home(Ref(owner, conversation))
        homes = [*place.glob("*/")] if conversation is None else [place]
        folders = [home / _FILES for home in homes if not (home / _FILES).is_symlink()]
        count = sum(map(destroy, folders))
        destroy(place)
        return count

    def used_before(self, erasures: Iterable[tuple[str, str | None, datetime]]) -> Iterator[Ref]:
        for owner, conversation, at in erasures:
            if conversation is not None:
                if self._home(Ref(owner, conversation)).is_dir():
                    yield Ref(owner, conversation)
                continue
            for about in self.root.glob(f"{owner_scope(owner)}/*/{_ABOUT}"):
                with suppress(OSError, StoreError, KeyError):
                    used_at = datetime.fromtimestamp((about.parent / _LEASE).stat().st_mtime, UTC)
                    if used_at <= at:
                        yield Ref(owner, _read_json(about, {})["conversation"])

    def close(self) -> None:
        for ref in self._off_record:
            try:
                self.erase(ref.owner, ref.id)
            except StoreError as problem:
                _LOG.warning("a workspace off the record is left, the next start tries again: %s", problem)
        self._off_record.clear()

    def _home(self, ref: Ref) -> Path:
        plain = re.sub(r"[^A-Za-z0-9]+", "-", ref.id)[:24].strip("-").lower() or "x"
        mark = blake2b(f"{ref.owner}\x00{ref.id}".encode(), digest_size=12).hexdigest()
        return self.root / owner_scope(ref.owner) / f"{plain}-{mark}"


class TemporaryWorkspaces(FolderWorkspaces):
    """Workspaces of a database in memory: they go when it goes."""

    def __init__(self, *, quota: Quota | None = None, clock: Clock = system_clock) -> None:
        folder = f"everthread-{os.getpid()}-{secrets.token_hex(8)}"
        super().__init__(Path(tempfile.gettempdir()) / folder, quota=quota, clock=clock)

    def close(self) -> None:
        with suppress(StoreError):
            destroy(self.root)


class FolderWorkspace:
    """One open workspace. Its folder is held open, so that nobody can put another in its place."""

    def __init__(self, home: Path, files: int, lease: int, *, notice: str | None, quota: Quota, clock: Clock) -> None:
        self.path = home / _FILES
        self.notice = notice
        self._home = home
        self._files = files
        self._lease = lease
        self._quota = quota
        self._clock = clock
        self._closed = False

    def __enter__(self) -> FolderWorkspace:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            os.close(self._files)
            os.close(self._lease)

    def is_there(self) -> bool:
        return not self._closed and os.fstat(self._files).st_nlink > 0

    def read(self, path: str, *, offset: int = 0, limit: int | None = None) -> bytes:
        self._check_open()
        return no_follow.read(self._files, _file_names(path), offset, limit)

    def size(self, path: str) -> int:
        self._check_open()
        with no_follow.file_at(self._files, _file_names(path)) as opened:
            return os.fstat(opened).st_size

    def files(self, folder: str = "") -> Sequence[FileInfo]:
        self._check_open()
        return list(no_follow.walk(self._files, check_path(folder)))

    def write(self, path: str, body: bytes) -> FileInfo:
        names = _file_names(path)
        with self._write_lock():
            self._check_quota("/".join(names), len(body))
            return no_follow.write(self._files, names, body)

    def upload(self, name: str, body: bytes, *, mime: str | None = None) -> Upload:
        check_name(name)
        kind = check_mime(name, body, mime)
        digest = sha256(body).hexdigest()
        with self._write_lock():
            known = self.uploads()
            for one in known:
                if one.name == name and one.sha256 == digest and self._holds(one.path):
                    return one
            path = self._free(name)
            self._check_quota(path, len(body))
            no_follow.write(self._files, check_path(path), body)
            new = Upload(
                name=name, path=path, size_bytes=len(body), sha256=digest, mime=kind, uploaded_at=self._clock()
            )
            _write_json(self._home / _UPLOADS, [asdict(one) for one in (*known, new)])
        return new

    def uploads(self) -> Sequence[Upload]:
        return _read_uploads(self._home)

    @contextmanager
    def _write_lock(self) -> Iterator[None]:
        """One writer at a time, in whichever process, so that two that fit alone cannot break the quota together."""
        self._check_open()
        lock = os.open(self._home, _FOLDER)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
            os.utime(self._lease)
        finally:
            os.close(lock)

    def _check_open(self) -> None:
        if not self.is_there():
            raise NotFound("the workspace is gone; opening it again creates an empty one")

    def _check_quota(self, path: str, more: int) -> None:
        there = {file.path: file.size_bytes for file in no_follow.walk(self._files)}
        there[path] = more
        if len(there) > self._quota.max_files:
            raise Conflict(f"the workspace may hold {self._quota.max_files:,} files; {path} was not written")
        if sum(there.values()) > self._quota.max_bytes:
            raise Conflict(f"the workspace may hold {self._quota.max_bytes:,} bytes; {path} was not written")

    def _holds(self, path: str) -> bool:
        try:
            return self.size(path) >= 0
        except (NotFound, Invalid):
            return False

    def _free(self, name: str) -> str:
        """A place that nothing stands at: another file by the same name keeps its own."""
        stem, dot, suffix = name.rpartition(".")
        stem, suffix = (stem, dot + suffix) if stem else (name, "")
        taken = {file.path for file in no_follow.walk(self._files)}
        tries = (f"{UPLOADS}/{stem}{'' if at == 1 else f'-{at}'}{suffix}" for at in range(1, self._quota.max_files + 2))
        return next(path for path in tries if path not in taken)


def _file_names(path: str) -> tuple[str, ...]:
    names = check_path(path)
    if not names:
        raise Invalid("must name a file, such as notes/plan.md", field="path")
    return names


def _lock(path: Path, kind: int, *, make: bool = True) -> int:
    """A lock on the file that has this name: not on one that was removed while we waited for it."""
    while True:
        flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | (os.O_CREAT if make else 0)
        opened = os.open(path, flags, 0o600)
        try:
            fcntl.flock(opened, kind)
            if os.fstat(opened).st_nlink:
                if make:
                    os.utime(opened)
                return opened
        except OSError:
            os.close(opened)
            raise
        os.close(opened)


def _notice(home: Path, was_here: bool, expected: bool) -> str | None:
    gone = _read_json(home / _GONE, None)
    if gone is not None:
        (home / _GONE).unlink(missing_ok=True)
        day = str(gone["at"])[:10]
        return f"The workspace was idle and was cleaned on {day}; uploads that are gone: {', '.join(gone['uploads'])}."
    lost = [] if was_here else _read_json(home / _UPLOADS, [])
    if was_here or not (expected or lost):
        return None
    (home / _UPLOADS).unlink(missing_ok=True)
    names = f" Uploads that are gone: {', '.join(one['name'] for one in lost)}." if lost else ""
    return f"The workspace was missing and has been created again, empty.{names}"


def _info(home: Path) -> WorkspaceInfo:
    about = _read_json(home / _ABOUT, {})
    lease = home / _LEASE
    files, size_bytes = _measure(home)
    return WorkspaceInfo(
        ref=Ref(about["owner"], about["conversation"]),
        path=home / _FILES,
        files=files,
        size_bytes=size_bytes,
        used_at=datetime.fromtimestamp(lease.stat().st_mtime, UTC),
        in_use=_is_leased(lease),
        off_record=bool(about.get("off_record")),
    )


def _is_leased(lease: Path) -> bool:
    try:
        os.close(_lock(lease, fcntl.LOCK_EX | fcntl.LOCK_NB, make=False))
    except BlockingIOError:
        return True
    return False


def _measure(home: Path) -> tuple[int, int]:
    """How many files, and how many bytes."""
    try:
        files = open_folder(home / _FILES)
    except FileNotFoundError:
        return 0, 0
    try:
        found = [file.size_bytes for file in no_follow.walk(files)]
    finally:
        os.close(files)
    return len(found), sum(found)


def _read_uploads(home: Path) -> Sequence[Upload]:
    kept = _read_json(home / _UPLOADS, [])
    return [Upload(**{**one, "uploaded_at": datetime.fromisoformat(one["uploaded_at"])}) for one in kept]


def _read_json(path: Path, default: Any) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return default
    except ValueError as problem:
        raise StoreError(f"{path.name} of a workspace cannot be read; its files are safe: remove it") from problem


def _write_json(path: Path, value: object) -> None:
    """Whole or not at all."""
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.{os.urandom(4).hex()}")
    unfinished.write_text(json.dumps(value, default=str, ensure_ascii=False), encoding="utf-8")
    os.replace(unfinished, path)
