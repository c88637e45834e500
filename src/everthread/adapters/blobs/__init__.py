"""Where large payloads live when they are not to be in the database: a folder, or any place that fsspec knows."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit

from everthread.adapters.blobs.files import FileBlobs
from everthread.core.blobs import Blobs
from everthread.core.errors import Invalid, MissingExtra

EXAMPLES = "file:///var/lib/everthread/blobs or s3://bucket/folder"


def blobs_at(url: str) -> Blobs:
    """The blob store behind an address."""
    if not isinstance(url, str) or "://" not in url:
        raise Invalid(f"not the address of a blob store; use {EXAMPLES}", field="blobs")
    parts = urlsplit(url)
    if parts.scheme == "file":
        path = unquote(parts.path)
        if parts.netloc or not path.strip("/"):
            raise Invalid("a folder is written with three slashes and its path: file:///var/lib/blobs", field="blobs")
        return FileBlobs(Path(path))
    try:
        from everthread.adapters.blobs.remote import RemoteBlobs  # noqa: PLC0415 - an extra
    except ImportError as problem:
        raise MissingExtra("blobs elsewhere than in a folder need an extra: pip install 'everthread[s3]'") from problem
    return RemoteBlobs(url)
