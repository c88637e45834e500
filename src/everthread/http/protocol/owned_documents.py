"""What the protocol keeps for an owner as JSON documents, assistants and crons: each kind has a namespace of its own,
which graphs themselves may not use.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from everthread.core.clock import from_micros, system_clock, to_micros
from everthread.core.errors import NotFound
from everthread.core.ids import check_id
from everthread.core.items import ItemChanges, ItemKey, StoredItem
from everthread.core.ports import Items
from everthread.http.protocol.serialization import JsonObject, dumps

_TIMES = ("created_at", "updated_at")


class OwnedDocuments(NamedTuple):
    """The documents of one kind. Each is read with the times at which it was created and last written."""

    namespace: str
    name: str
    """As messages call one of them."""

    async def get(self, items: Items, owner: str, id: str) -> JsonObject:
        """Return a document; NotFound when the owner has none with this id."""
        found = await items.get(owner, [ItemKey(self.namespace, check_id(id, f"{self.name}_id"))])
        if not found:
            raise NotFound(f"{self.name} {id!r} not found")
        return _with_times(found[0])

    async def all(self, items: Items, owner: str) -> list[JsonObject]:
        """Return all documents of an owner."""
        return [_with_times(item) for item in await items.under(owner, self.namespace)]

    async def put(self, items: Items, owner: str, id: str, document: Mapping[str, Any]) -> None:
        """Create or replace a document."""
        now = to_micros(system_clock())
        value = dumps({name: value for name, value in document.items() if name not in _TIMES})
        await items.change(owner, ItemChanges(put=[StoredItem(self.namespace, id, value, now, now)]))

    async def delete(self, items: Items, owner: str, id: str) -> None:
        """Delete a document, if it is there."""
        await items.change(owner, ItemChanges(delete=[ItemKey(self.namespace, id)]))


def _with_times(item: StoredItem) -> JsonObject:
    value: JsonObject = json.loads(item.value)
    return {**value, "created_at": from_micros(item.created_at), "updated_at": from_micros(item.updated_at)}
