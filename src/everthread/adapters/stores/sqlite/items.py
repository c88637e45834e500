"""Items over an open connection."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from everthread.adapters.stores.layout import below
from everthread.adapters.stores.sqlite import statements as sql
from everthread.adapters.stores.sqlite.engine import SqliteDatabase
from everthread.core.items import ItemChanges, ItemKey, StoredItem


def change(connection: sqlite3.Connection, owner: str, changes: ItemChanges, now: int) -> None:
    """Write a batch, in the writer's transaction."""
    connection.execute(sql.DELETE_EXPIRED_ITEMS, (owner, now))
    connection.executemany(sql.DELETE_ITEM, [(owner, *key) for key in changes.delete])
    connection.executemany(sql.PUT_ITEM, [(owner, *item) for item in changes.put])
    connection.executemany(sql.TOUCH_ITEM, [(now, owner, *key) for key in changes.touch])


def read(connection: sqlite3.Connection, owner: str, keys: Sequence[ItemKey], now: int) -> list[StoredItem]:
    """Some items."""
    found = (connection.execute(sql.ITEM, (owner, *key, now)).fetchone() for key in keys)
    return [StoredItem._make(row) for row in found if row is not None]


def under(connection: sqlite3.Connection, owner: str, prefix: str, now: int) -> list[StoredItem]:
    """All items of a namespace and those below it."""
    rows = connection.execute(sql.ITEMS_UNDER, (owner, prefix, *below(prefix), now))
    return [StoredItem._make(row) for row in rows]


def namespaces(connection: sqlite3.Connection, owner: str, now: int) -> list[str]:
    """The namespaces that have items."""
    return [row[0] for row in connection.execute(sql.ITEM_NAMESPACES, (owner, now))]


class SqliteItems:
    """`store.items` of core/ports.py."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database

    async def change(self, owner: str, changes: ItemChanges) -> None:
        now = self._database.now()
        await self._database.engine.write(lambda c: change(c, owner, changes, now))

    async def get(self, owner: str, keys: Sequence[ItemKey]) -> Sequence[StoredItem]:
        now = self._database.now()
        return await self._database.engine.read(lambda c: read(c, owner, keys, now))

    async def under(self, owner: str, prefix: str) -> Sequence[StoredItem]:
        now = self._database.now()
        return await self._database.engine.read(lambda c: under(c, owner, prefix, now))

    async def namespaces(self, owner: str) -> Sequence[str]:
        now = self._database.now()
        return await self._database.engine.read(lambda c: namespaces(c, owner, now))
