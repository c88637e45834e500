"""API keys in SQLite, and what was answered to requests with an idempotency key."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from everthread.adapters.stores.layout import key_from_row, key_values
from everthread.adapters.stores.sqlite import statements as sql
from everthread.adapters.stores.sqlite.engine import SqliteDatabase
from everthread.core.access import ApiKey
from everthread.core.errors import NotFound
from everthread.core.replies import KEPT_SECONDS, Reply


class SqliteApiKeys:
    """`store.api_keys` of core/ports.py."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database

    async def add(self, key: ApiKey) -> None:
        await self._database.engine.write(lambda c: c.execute(sql.ADD_KEY, key_values(key)))

    async def get(self, id: str) -> ApiKey | None:
        row = await self._database.engine.read(lambda c: c.execute(sql.KEY, (id,)).fetchone())
        return None if row is None else key_from_row(row)

    async def list(self, owner: str | None) -> Sequence[ApiKey]:
        rows = await self._database.engine.read(lambda c: c.execute(sql.KEYS, (owner, owner)).fetchall())
        return [key_from_row(row) for row in rows]

    async def revoke(self, id: str) -> ApiKey:
        now = self._database.now()

        def work(connection: sqlite3.Connection) -> ApiKey:
            connection.execute(sql.REVOKE_KEY, (now, id))
            row = connection.execute(sql.KEY, (id,)).fetchone()
            if row is None:
                raise NotFound(f"no key {id!r}")
            return key_from_row(row)

        return await self._database.engine.write(work)


class SqliteReplies:
    """`store.replies` of core/ports.py."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database

    async def begin(self, owner: str, key: str, request: bytes, *, lease_seconds: float) -> Reply | None:
        now = self._database.now()
        until = now + int(lease_seconds * 1_000_000)

        def work(connection: sqlite3.Connection) -> Reply | None:
            connection.execute(sql.DELETE_OLD_REPLIES, (owner, now - KEPT_SECONDS * 1_000_000))
            if connection.execute(sql.BEGIN_REPLY, (owner, key, request, b"[]", b"", until, now)).rowcount:
                return None
            stands = Reply._make(connection.execute(sql.REPLY, (owner, key)).fetchone())
            if stands.status is None and stands.request == request and stands.running_until <= now:
                connection.execute(sql.TAKE_REPLY, (until, owner, key))
                return None
            return stands

        return await self._database.engine.write(work)

    async def renew(self, owner: str, key: str, request: bytes, *, lease_seconds: float) -> None:
        until = self._database.now() + int(lease_seconds * 1_000_000)
        await self._database.engine.write(lambda c: c.execute(sql.RENEW_REPLY, (until, owner, key, request)))

    async def keep(self, owner: str, key: str, reply: Reply) -> None:
        values = (reply.conversation, reply.status, reply.headers, reply.body, owner, key, reply.request)
        await self._database.engine.write(lambda c: c.execute(sql.KEEP_REPLY, values))

    async def drop(self, owner: str, key: str, request: bytes) -> None:
        await self._database.engine.write(lambda c: c.execute(sql.DROP_REPLY, (owner, key, request)))


def forget(connection: sqlite3.Connection, owner: str, conversation: str | None) -> dict[str, int]:
    """Erase API keys and stored replies."""
    if conversation is not None:
        return {"replies": blank_replies(connection, owner, conversation)}
    keys = connection.execute(sql.DELETE_KEYS_OF, (owner,)).rowcount
    return {"api_keys": keys, "replies": connection.execute(sql.DELETE_REPLIES_OF, (owner,)).rowcount}


def blank_replies(connection: sqlite3.Connection, owner: str, conversation: str | None) -> int:
    """Destroy what replies say, or may say, of a conversation; with None, of a memory, which belongs to none."""
    return connection.execute(sql.BLANK_REPLIES, (b"", b"[]", b"", owner, conversation)).rowcount
