"""Items in PostgreSQL: the documents that agents keep beside their conversations."""

from __future__ import annotations

from collections.abc import Sequence

from everthread.adapters.stores.layout import below
from everthread.adapters.stores.postgres import statements as sql
from everthread.adapters.stores.postgres.pool import Connection, PostgresDatabase
from everthread.core.items import ItemChanges, ItemKey, StoredItem


class PostgresItems:
    """`store.items` of core/ports.py."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database

    async def change(self, owner: str, changes: ItemChanges) -> None:
        now = self._database.now()

        async def work(connection: Connection) -> None:
            # All writers go by the same order, so that two batches cannot wait for each other.
            puts = sorted(changes.put, key=lambda item: (item.namespace, item.key))
            await connection.execute(sql.DELETE_EXPIRED_ITEMS, owner, now)
            await connection.executemany(sql.DELETE_ITEM, [(owner, *key) for key in sorted(changes.delete)])
            await connection.executemany(sql.PUT_ITEM, [(owner, *item) for item in puts])
            await connection.executemany(sql.TOUCH_ITEM, [(now, owner, *key) for key in sorted(changes.touch)])

        await self._database.pool.write(work)

    async def get(self, owner: str, keys: Sequence[ItemKey]) -> Sequence[StoredItem]:
        values = (owner, [key.namespace for key in keys], [key.key for key in keys], self._database.now())
        rows = await self._database.pool.read(lambda c: c.fetch(sql.ITEMS, *values))
        return [StoredItem._make(row) for row in rows]

    async def under(self, owner: str, prefix: str) -> Sequence[StoredItem]:
        values = (owner, prefix, *below(prefix), self._database.now())
        rows = await self._database.pool.read(lambda c: c.fetch(sql.ITEMS_UNDER, *values))
        return [StoredItem._make(row) for row in rows]

    async def namespaces(self, owner: str) -> Sequence[str]:
        now = self._database.now()
        return [row[0] for row in await self._database.pool.read(lambda c: c.fetch(sql.ITEM_NAMESPACES, owner, now))]
