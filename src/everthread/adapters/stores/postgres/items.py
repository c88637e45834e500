"""Items over a connection."""

from __future__ import annotations

from collections.abc import Sequence

from everthread.adapters.stores.layout import below
from everthread.adapters.stores.postgres import statements as sql
from everthread.adapters.stores.postgres.pool import Connection, PostgresDatabase
from everthread.core.items import ItemChanges, ItemKey, StoredItem


async def change(connection: Connection, owner: str, changes: ItemChanges, now: int) -> None:
    """Write a batch, in a transaction."""
    await connection.execute(sql.DELETE_EXPIRED_ITEMS, owner, now)
    await connection.executemany(sql.DELETE_ITEM, [(owner, *key) for key in sorted(changes.delete)])
    await connection.executemany(sql.PUT_ITEM, [(owner, *item) for item in sorted(changes.put, key=_by_key)])
    await connection.executemany(sql.TOUCH_ITEM, [(now, owner, *key) for key in sorted(changes.touch)])


def _by_key(item: StoredItem) -> tuple[str, str]:
    """One order for all writers, so that two batches cannot wait for each other."""
    return item.namespace, item.key


async def read(connection: Connection, owner: str, keys: Sequence[ItemKey], now: int) -> list[StoredItem]:
    """Some items."""
    rows = await connection.fetch(sql.ITEMS, owner, [key.namespace for key in keys], [key.key for key in keys], now)
    return [StoredItem._make(row) for row in rows]


async def under(connection: Connection, owner: str, prefix: str, now: int) -> list[StoredItem]:
    """All items of a namespace and those below it."""
    rows = await connection.fetch(sql.ITEMS_UNDER, owner, prefix, *below(prefix), now)
    return [StoredItem._make(row) for row in rows]


async def namespaces(connection: Connection, owner: str, now: int) -> list[str]:
    """The namespaces that have items."""
    return [row[0] for row in await connection.fetch(sql.ITEM_NAMESPACES, owner, now)]


class PostgresItems:
    """`store.items` of core/ports.py."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database

    async def change(self, owner: str, changes: ItemChanges) -> None:
        now = self._database.now()
        await self._database.pool.write(lambda c: change(c, owner, changes, now))

    async def get(self, owner: str, keys: Sequence[ItemKey]) -> Sequence[StoredItem]:
        now = self._database.now()
        return await self._database.pool.read(lambda c: read(c, owner, keys, now))

    async def under(self, owner: str, prefix: str) -> Sequence[StoredItem]:
        now = self._database.now()
        return await self._database.pool.read(lambda c: under(c, owner, prefix, now))

    async def namespaces(self, owner: str) -> Sequence[str]:
        now = self._database.now()
        return await self._database.pool.read(lambda c: namespaces(c, owner, now))
