"""Items of LangGraph's long-term store: JSON values by namespace and key, each belonging to one owner."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple


class ItemKey(NamedTuple):
    """The address of an item: a namespace (labels joined by dots) and a key in it."""

    namespace: str
    key: str


class StoredItem(NamedTuple):
    """The row of one item."""

    namespace: str
    key: str
    value: bytes
    """JSON."""
    created_at: int
    updated_at: int
    expires_at: int | None = None
    ttl_micros: int | None = None
    """How long after it was last written or read the item expires."""
    model: str | None = None
    """The embedder that made the vectors; vectors of different embedders are never compared."""
    vectors: bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemChanges:
    """A batch of changes, written in one transaction."""

    put: Sequence[StoredItem] = ()
    """Items to insert or to replace; an existing item keeps its `created_at`."""
    delete: Sequence[ItemKey] = ()
    touch: Sequence[ItemKey] = ()
    """Items that were read, whose time to live starts again."""
