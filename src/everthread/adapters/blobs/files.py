"""Blobs as files: `root/ab/abcd…/hash`, each written under another name first, so that a name is a whole file."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from everthread.core.blobs import BlobInfo
from everthread.core.errors import StoreError, StoreFull

_UNFINISHED = ".unfinished-"
_FULL = 28
"""ENOSPC."""


class FileBlobs:
    """Blobs in a folder of this machine."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def put(self, name: str, body: bytes) -> None:
        target = self._path(name)
        try:
            self._make_folder(target.parent)
            _write_whole(target, body)
        except OSError as problem:
            if problem.errno == _FULL:
                raise StoreFull(
                    "the disk of the blobs is full; nothing of this call was stored: make room and retry"
                ) from problem
            raise StoreError(f"a blob could not be written ({problem}); nothing of this call was stored") from problem

    def get(self, name: str) -> bytes | None:
        try:
            return self._path(name).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as problem:
            raise StoreError(f"a blob could not be read: {problem}") from problem

    def delete(self, name: str) -> None:
        target = self._path(name)
        try:
            with suppress(FileNotFoundError):
                target.unlink()
                _to_disk(target.parent)
            for folder in (target.parent, target.parent.parent):
                folder.rmdir()
        except FileNotFoundError:
            return
        except OSError:
            if target.exists():
                raise StoreError(f"the blob {name} could not be deleted") from None

    def everything(self) -> Iterator[BlobInfo]:
        """What a crash left half written is among them, under a name that nothing refers to."""
        for path in sorted(self._root.glob("??/*/*")):
            with suppress(FileNotFoundError):
                found = path.stat()
                name = f"{path.parent.name}/{path.name}"
                yield BlobInfo(name, found.st_size, datetime.fromtimestamp(found.st_mtime, UTC))

    def _path(self, name: str) -> Path:
        scope, _, content = name.partition("/")
        return self._root / scope[:2] / scope / content

    def _make_folder(self, folder: Path) -> None:
        if folder.is_dir():
            return
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for place in (folder.parent, folder.parent.parent):
            _to_disk(place)


def _write_whole(target: Path, body: bytes) -> None:
    """The bytes, then the name: whoever sees the name sees all of them, also after a power cut."""
    handle, path = tempfile.mkstemp(prefix=_UNFINISHED, dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(body)
            file.flush()
            os.fsync(file.fileno())
        os.replace(path, target)
    except OSError:
        with suppress(OSError):
            os.unlink(path)
        raise
    _to_disk(target.parent)


def _to_disk(folder: Path) -> None:
    """A folder's names."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
