"""Blobs wherever fsspec reaches: S3 and what speaks like it, by their addresses and the settings those take."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import fsspec

from everthread.core.blobs import BlobInfo
from everthread.core.errors import Invalid, MissingExtra, StoreError

_TIMES = ("LastModified", "mtime", "created", "last_modified")
"""What the file systems call the time of the last write."""

_FLAT = frozenset({"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "oss"})
"""Where there are no folders: to make one would be to ask for the bucket with each blob, and to make one that a typing
error names."""


class RemoteBlobs:
    """Blobs under an address of fsspec."""

    def __init__(self, url: str) -> None:
        scheme = url.partition("://")[0]
        if scheme not in fsspec.available_protocols():
            raise Invalid(f"no blob store is known for {scheme!r}; write s3://bucket/folder or the like", field="blobs")
        try:
            self._has_folders = scheme not in _FLAT
            self._files, self._root = fsspec.core.url_to_fs(url)
        except ImportError as problem:
            raise MissingExtra(f"this kind of blob store needs a package of its own: {problem}") from problem

    def put(self, name: str, body: bytes) -> None:
        try:
            if self._has_folders:
                self._files.makedirs(self._parent(name), exist_ok=True)
            self._files.pipe_file(self._path(name), body)
        except OSError as problem:
            raise StoreError(f"a blob could not be written ({problem}); nothing of this call was stored") from problem

    def get(self, name: str) -> bytes | None:
        try:
            found: bytes = self._files.cat_file(self._path(name))
        except FileNotFoundError:
            return None
        except OSError as problem:
            raise StoreError(f"a blob could not be read: {problem}") from problem
        return found

    def delete(self, name: str) -> None:
        try:
            self._files.rm_file(self._path(name))
        except FileNotFoundError:
            return
        except OSError as problem:
            raise StoreError(f"the blob {name} could not be deleted: {problem}") from problem

    def everything(self) -> Iterator[BlobInfo]:
        self._files.invalidate_cache()
        found: Mapping[str, Mapping[str, Any]] = self._files.find(self._root, detail=True)
        for path, info in sorted(found.items()):
            name = "/".join(path.rsplit("/", 2)[-2:])
            yield BlobInfo(name, int(info.get("size") or 0), _written_at(info))

    def _parent(self, name: str) -> str:
        scope = name.partition("/")[0]
        return f"{self._root.rstrip('/')}/{scope[:2]}/{scope}"

    def _path(self, name: str) -> str:
        return f"{self._parent(name)}/{name.rpartition('/')[2]}"


def _written_at(info: Mapping[str, Any]) -> datetime:
    """Now where a file system does not say: then it is never too old."""
    found = next((info[key] for key in _TIMES if info.get(key) is not None), None)
    if isinstance(found, datetime):
        return found if found.tzinfo is not None else found.replace(tzinfo=UTC)
    return datetime.fromtimestamp(found, UTC) if isinstance(found, int | float) else datetime.now(UTC)
