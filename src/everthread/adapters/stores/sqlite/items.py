"""Items in SQLite: the documents that agents keep beside their conversations."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from everthread.adapters.stores.layout import below
from everthread.adapters.stores.sqlite import statements as sql
from everthread.adapters.stores.sqlite.engine import SqliteDatabase
from everthread.core.items import ItemChanges, ItemKey, StoredItem


class SqliteItems:
    """`store.items` of core/ports.py."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database

    async def change(self, owner: str, changes: ItemChanges) -> None:
        now = self._database.now()

        def work(connection: sqlite3.Connection) -> None:
            connection.execute(sql.DELETE_EXPIRED_ITEMS, (owner, now))
            connection.executemany(sql.DELETE_ITEM, [(owner, *key) for key in changes.delete])
            connection.executemany(sql.PUT_ITEM, [(owner, *item) for item in changes.put])
            connection.executemany(sql.TOUCH_ITEM, [(now, owner, *key) for key in changes.touch])

        await self._database.engine.write(work)

    async def get(self, owner: str, keys: Sequence[ItemKey]) -> Sequence[StoredItem]:
        now = self._database.now()

        def work(connection: sqlite3.Connection) -> Sequence[StoredItem]:
            found = (connection.execute(sql.ITEM, (owner, *key, now)).fetchone() for key in keys)
            return [StoredItem._make(row) for row in found if row is not None]

        return await self._database.engine.read(work)

    async def under(self, owner: str, prefix: str) -> Sequence[StoredItem]:
        values = (owner, prefix, *below(prefix), self._database.now())
        rows = await self._database.engine.read(lambda c: c.execute(sql.ITEMS_UNDER, values).fetchall())
        return [StoredItem._make(row) for row in rows]

    async def namespaces(self, owner: str) -> Sequence[str]:
        values = (owner, self._database.now())
        rows = await self._database.engine.read(lambda c: c.execute(sql.ITEM_NAMESPACES, values).fetchall())
        return [row[0] for row in rows]
