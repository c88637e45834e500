"""Items in memory."""

from __future__ import annotations

from collections.abc import Sequence

from everthread.core.items import ItemChanges, ItemKey, StoredItem


class Drawer:
    """The items of all owners."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, ItemKey], StoredItem] = {}

    def change(self, owner: str, changes: ItemChanges, now: int) -> None:
        """Write a batch."""
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

    def read(self, owner: str, keys: Sequence[ItemKey], now: int) -> list[StoredItem]:
        """Some items."""
        found = (self._kept.get((owner, key)) for key in keys)
        return [item for item in found if item is not None and _lives(item, now)]

    def under(self, owner: str, prefix: str, now: int) -> list[StoredItem]:
        """All items of a namespace and those below it."""
        found = [
            item
            for (whose, key), item in self._kept.items()
            if whose == owner and _lives(item, now) and f"{key.namespace}.".startswith(f"{prefix}." if prefix else "")
        ]
        return sorted(found, key=lambda item: (-item.updated_at, item.namespace, item.key))

    def forget(self, owner: str) -> int:
        """Destroy the items of an owner."""
        gone = [key for key in self._kept if key[0] == owner]
        for key in gone:
            del self._kept[key]
        return len(gone)


def _lives(item: StoredItem, now: int) -> bool:
    return item.expires_at is None or item.expires_at > now
