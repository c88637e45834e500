"""Files beneath an open folder, reached name by name without following a link.

Each step opens one name relative to the folder that is open already, so nobody can put a link in the way between a
look and an open. A file is written beside its place and then renamed: it never writes through a link, hard or soft,
and whoever reads sees the old file or the new one.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from errno import EEXIST, EISDIR, ELOOP, ENOENT, ENOSPC, ENOTDIR, ENOTEMPTY, ENXIO
from secrets import token_hex

from everthread.core.errors import Conflict, EverthreadError, Invalid, NotFound, StoreError, StoreFull
from everthread.core.workspaces import MAX_DEPTH, FileInfo

UNFINISHED = ".unfinished-"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""Not to block: a named pipe waits for its other end."""


def join_names(names: Sequence[str]) -> str:
    return "/".join(names)


@contextmanager
def folder_at(root: int, names: Sequence[str], *, make: bool = False) -> Iterator[int]:
    """The folder beneath the root, open."""
    opened = os.dup(root)
    try:
        for at, name in enumerate(names):
            with translate_errors(names[: at + 1]):
                if make:
                    with suppress(FileExistsError):
                        os.mkdir(name, 0o700, dir_fd=opened)
                inner = os.open(name, _FOLDER, dir_fd=opened)
            os.close(opened)
            opened = inner
        yield opened
    finally:
        os.close(opened)


@contextmanager
def file_at(root: int, names: Sequence[str]) -> Iterator[int]:
    """A plain file beneath the root, open for reading."""
    with folder_at(root, names[:-1]) as folder:
        with translate_errors(names):
            opened = os.open(names[-1], _FILE, dir_fd=folder)
        try:
            _check_plain(os.fstat(opened), names)
            yield opened
        finally:
            os.close(opened)


def _check_plain(found: os.stat_result, names: Sequence[str]) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise Invalid(f"{join_names(names)} is a folder, not a file", field="path")
    if not stat.S_ISREG(found.st_mode):
        raise Invalid(f"{join_names(names)} is not a regular file", field="path")
    if found.st_nlink > 1:  # its other name may be anywhere
        raise Invalid(f"{join_names(names)} is a link to a file that has other names; copy it instead", field="path")


def read(root: int, names: Sequence[str], offset: int, limit: int | None) -> bytes:
    with file_at(root, names) as opened, translate_errors(names), os.fdopen(os.dup(opened), "rb") as file:
        file.seek(offset)
        return file.read(-1 if limit is None else limit)


def write(root: int, names: Sequence[str], body: bytes) -> FileInfo:
    """All of it or nothing, and on the disk before it has its name."""
    with folder_at(root, names[:-1], make=True) as folder, translate_errors(names):
        unfinished = f"{UNFINISHED}{token_hex(8)}"
        opened = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=folder)
        try:
            with os.fdopen(opened, "wb") as file:
                file.write(body)
                file.flush()
                os.fsync(file.fileno())
            os.rename(unfinished, names[-1], src_dir_fd=folder, dst_dir_fd=folder)
        except OSError:
            with suppress(OSError):
                os.unlink(unfinished, dir_fd=folder)
            raise
        return _info(names, os.stat(names[-1], dir_fd=folder, follow_symlinks=False))


def walk(root: int, names: Sequence[str] = ()) -> Iterator[FileInfo]:
    """Every plain file below a folder. Links, pipes and devices are none; left out is what vanishes meanwhile, and what
    a program put where no path leads: in folders that may not be read or are nested too deep, under names that are no
    text."""
    with folder_at(root, names) as folder:
        with os.scandir(folder) as found:
            entries = sorted(found, key=lambda entry: entry.name)
        for entry in entries:
            with suppress(FileNotFoundError, PermissionError, NotFound):
                if not _is_text(entry.name):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    if len(names) + 1 < MAX_DEPTH and _may_enter(entry.name, folder):
                        yield from walk(root, (*names, entry.name))
                elif entry.is_file(follow_symlinks=False) and not entry.name.startswith(UNFINISHED):
                    yield _info((*names, entry.name), entry.stat(follow_symlinks=False))


def _is_text(name: str) -> bool:
    """Not bytes that are no UTF-8, which Python writes as half surrogate pairs."""
    try:
        return bool(name.encode())
    except UnicodeEncodeError:
        return False


def _may_enter(name: str, folder: int) -> bool:
    return os.access(name, os.R_OK | os.X_OK, dir_fd=folder)


def _info(names: Sequence[str], found: os.stat_result) -> FileInfo:
    return FileInfo(
        path=join_names(names), size_bytes=found.st_size, modified_at=datetime.fromtimestamp(found.st_mtime, UTC)
    )


@contextmanager
def translate_errors(names: Sequence[str]) -> Iterator[None]:
    """The system's errors as ours."""
    try:
        yield
    except OSError as problem:
        raise _translate(problem, join_names(names)) from problem


def _translate(problem: OSError, path: str) -> EverthreadError:
    match problem.errno:
        case code if code == ENOENT:
            return NotFound(f"file not found: {path}; list_files shows all files")
        case code if code in (ELOOP, ENXIO):
            return Invalid(f"{path} is a link or not a regular file; links are not followed", field="path")
        case code if code == ENOTDIR:
            return Invalid(f"{path} is not a folder, or a link to one", field="path")
        case code if code in (EISDIR, EEXIST, ENOTEMPTY):
            return Conflict(f"{path} is a folder")
        case code if code == ENOSPC:
            return StoreFull("the disk of the workspaces is full; the file was not written: make room and retry")
    return StoreError(f"{path}: {problem.strerror}")
