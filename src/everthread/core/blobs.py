"""Large payloads outside of the database: how they are named, and the port that stores them.

A blob is named by its conversation and the hash of its bytes, so equal bytes are stored once per conversation, and
conversations share no blobs. A blob is durable before the commit that refers to it; one that a crash left without a
reference is harmless and swept later.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from hashlib import blake2b, sha256
from typing import NamedTuple, Protocol

from everthread.core.nouns import Ref

REFERENCE = b"\x00"
"""The first byte of a reference to a blob in place of a payload; JSON never starts with it."""


class BlobInfo(NamedTuple):
    """A blob in the blob store: its name, its size and when it was written.

    ```python
    for blob in await et.sweep_blobs(dry_run=True):
        print(blob.name, blob.size_bytes, blob.written_at)
    ```
    """

    name: str
    size_bytes: int
    written_at: datetime


class Blobs(Protocol):
    """A store of large payloads. Its methods block: the database stores call them from threads."""

    def put(self, name: str, body: bytes) -> None:
        """Write a blob, replacing one with the same name. Durable when this returns."""

    def get(self, name: str) -> bytes | None:
        """Return a blob's bytes, or None when there is no blob with this name."""

    def delete(self, name: str) -> None:
        """Delete a blob. Does nothing when there is no blob with this name."""

    def everything(self) -> Iterator[BlobInfo]:
        """Iterate over all blobs."""


def blob_name(ref: Ref, body: bytes) -> str:
    """Return `conversation/content`, both as hashes, so that the name reveals neither and suits any file system."""
    scope = blake2b(f"{ref.owner}\x00{ref.id}".encode(), digest_size=16).hexdigest()
    return f"{scope}/{sha256(body).hexdigest()}"


def is_sound(name: str, body: bytes) -> bool:
    """Whether the bytes match the hash in the blob's name."""
    return name.rpartition("/")[2] == sha256(body).hexdigest()
