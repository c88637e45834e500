"""Items that an agent keeps beside its conversations: documents by namespace and key, each of one owner."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple


class ItemKey(NamedTuple):
    """Where an item lies: a namespace as labels joined by dots, and a key in it."""

    namespace: str
    key: str


class StoredItem(NamedTuple):
    """One item."""

    namespace: str
    key: str
    value: bytes
    """JSON."""
    created_at: int
    updated_at: int
    expires_at: int | None
    ttl_micros: int | None
    """How long it lives from when it was last written or read."""
    model: str | None
    """Which embedder made its vectors: those of two are never compared."""
    vectors: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemChanges:
    """What a batch changes, all of it or nothing."""

    put: Sequence[StoredItem] = ()
    """Items to insert or to replace; one that stands keeps the time it was made at."""
    delete: Sequence[ItemKey] = ()
    touch: Sequence[ItemKey] = ()
    """Items that were read, and live on from now."""
