"""Large payloads outside of the database: how they are named, and the port that keeps them.

A blob is named by its conversation and the hash of its bytes, so one that is written twice is there once, and no two
conversations share any. It is on the disk before the commit that refers to it; one that a crash left without a
reference harms nobody and is swept later.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from hashlib import blake2b, sha256
from typing import NamedTuple, Protocol

from everthread.core.nouns import Ref

REFERENCE = b"\x00"
"""Begins the bytes that stand for a blob where a payload is expected: no JSON begins so."""


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
    """A place for large payloads. Blocking: stores call it from threads."""

    def put(self, name: str, body: bytes) -> None:
        """Keep the bytes; they are durable when this returns. The same name again is written anew."""

    def get(self, name: str) -> bytes | None:
        """The bytes; None when there is no blob by this name."""

    def delete(self, name: str) -> None:
        """Destroy a blob; nothing when there is none."""

    def everything(self) -> Iterator[BlobInfo]:
        """All that are there."""


def blob_name(ref: Ref, body: bytes) -> str:
    """`conversation/content`, both as hashes: a name says nothing about either, and any file system takes it."""
    scope = blake2b(f"{ref.owner}\x00{ref.id}".encode(), digest_size=16).hexdigest()
    return f"{scope}/{sha256(body).hexdigest()}"


def is_sound(name: str, body: bytes) -> bool:
    """Whether these are the bytes that were written under the name."""
    return name.rpartition("/")[2] == sha256(body).hexdigest()
