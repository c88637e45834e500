"""Items in memory."""

from __future__ import annotations

from collections.abc import Sequence

from everthread.adapters.stores.in_memory.rows import InMemoryDatabase
from everthread.core.items import ItemChanges, ItemKey, StoredItem


class InMemoryItems:
    """`store.items` of core/ports.py: the items of all owners."""

    def __init__(self, database: InMemoryDatabase) -> None:
        self._database = database
        self._kept: dict[tuple[str, ItemKey], StoredItem] = {}

    async def change(self, owner: str, changes: ItemChanges) -> None:
        now = self._database.now()
        self._kept = {key: item for key, item in self._kept.items() if key[0] != owner or _lives(item, now)}
        for key in changes.delete:
            self._kept.pop((owner, key), None)
        for item in changes.put:
            place = (owner, ItemKey(item.namespace, item.key))
            before = self._kept.get(place, item)
            self._kept[place] = item._replace(created_at=before.created_at)
        for key in changes.touch:
            touched = self._kept.get((owner, key))
            if touched is not None and touched.ttl_micros is not None:
                self._kept[owner, key] = touched._replace(expires_at=now + touched.ttl_micros)

    async def get(self, owner: str, keys: Sequence[ItemKey]) -> Sequence[StoredItem]:
        now = self._database.now()
        found = (self._kept.get((owner, key)) for key in keys)
        return [item for item in found if item is not None and _lives(item, now)]

    async def under(self, owner: str, prefix: str) -> Sequence[StoredItem]:
        now = self._database.now()
        found = [
            item
            for (whose, key), item in self._kept.items()
            if whose == owner and _lives(item, now) and f"{key.namespace}.".startswith(f"{prefix}." if prefix else "")
        ]
        return sorted(found, key=lambda item: (-item.updated_at, item.namespace, item.key))

    async def namespaces(self, owner: str) -> Sequence[str]:
        return sorted({item.namespace for item in await self.under(owner, "")})

    def forget(self, owner: str) -> int:
        """Destroy the items of an owner."""
        gone = [key for key in self._kept if key[0] == owner]
        for key in gone:
            del self._kept[key]
        return len(gone)


def _lives(item: StoredItem, now: int) -> bool:
    return item.expires_at is None or item.expires_at > now
