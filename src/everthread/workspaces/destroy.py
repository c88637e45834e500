"""Removing a folder with all that is in it, whatever a program put there: folders that may not be read, folders nested
thousands deep, names that are no text, files that are made while we remove.

No recursion and few open files: a folder inside a folder is first moved up, next to it, until all are beneath the top.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from errno import EEXIST, EISDIR, ENOENT, ENOTEMPTY, EPERM
from pathlib import Path
from secrets import token_hex

from everthread.core.errors import StoreError

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MAX_TRIES = 100
_MOVED = ".moved-up-"


def destroy(place: Path) -> int:
    """Remove a folder and all beneath it; gives how many files that were. StoreError when it cannot be done."""
    count = 0
    for _ in range(_MAX_TRIES):
        try:
            top = open_folder(place)
            try:
                count += _empty(top)
            finally:
                os.close(top)
            os.rmdir(place)
        except OSError as problem:
            if problem.errno == ENOENT and not os.path.lexists(place):
                return count
            if problem.errno not in (ENOENT, ENOTEMPTY, EEXIST):
                raise StoreError(f"a workspace could not be removed: {problem.strerror}") from problem
        else:
            return count
    raise StoreError("a workspace could not be removed: files keep being created in it")


def open_folder(name: str | Path, parent: int | None = None) -> int:
    """A folder that is ours, open, also when a program took our rights to it. No link is followed."""
    try:
        opened = os.open(name, _FOLDER, dir_fd=parent)
    except PermissionError:
        _permit(name, parent)
        return os.open(name, _FOLDER, dir_fd=parent)
    try:
        if os.fstat(opened).st_mode & stat.S_IRWXU != stat.S_IRWXU:
            os.fchmod(opened, 0o700)
    except OSError:
        os.close(opened)
        raise
    return opened


def _permit(name: str | Path, parent: int | None = None) -> None:
    """Give ourselves the rights to a folder back. By its descriptor: its name may be a link the next moment."""
    held = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    try:
        os.chmod(f"/proc/self/fd/{held}", 0o700)
    finally:
        os.close(held)


def _empty(top: int) -> int:
    count = 0
    while names := os.listdir(top):
        for name in names:
            with suppress(FileNotFoundError):
                if _unlinked(name, top):
                    count += 1
                else:
                    count += _emptied(name, top)
                    os.rmdir(name, dir_fd=top)
    return count


def _emptied(name: str, top: int) -> int:
    """Remove the files of a folder beneath the top, and move its folders up."""
    count = 0
    folder = open_folder(name, top)
    try:
        for inner in os.listdir(folder):
            with suppress(FileNotFoundError):
                if _unlinked(inner, folder):
                    count += 1
                else:
                    _permit(inner, folder)  # a folder that is moved is written to: its `..` changes
                    os.rename(inner, f"{_MOVED}{token_hex(8)}", src_dir_fd=folder, dst_dir_fd=top)
    finally:
        os.close(folder)
    return count


def _unlinked(name: str, folder: int) -> bool:
    """Remove a file or a link; False for a folder."""
    try:
        os.unlink(name, dir_fd=folder)
    except OSError as problem:
        if problem.errno in (EISDIR, EPERM) and stat.S_ISDIR(os.lstat(name, dir_fd=folder).st_mode):
            return False
        raise
    return True
