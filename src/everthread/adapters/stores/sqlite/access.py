"""Keys and replies over an open connection."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from everthread.adapters.stores.layout import key_from_row, key_values
from everthread.adapters.stores.sqlite import statements as sql
from everthread.adapters.stores.sqlite.engine import SqliteDatabase
from everthread.core.access import ApiKey
from everthread.core.errors import NotFound
from everthread.core.replies import KEPT_SECONDS, Reply


def add(connection: sqlite3.Connection, key: ApiKey) -> None:
    """Keep a new key, in the writer's transaction."""
    connection.execute(sql.ADD_KEY, key_values(key))


def read(connection: sqlite3.Connection, id: str) -> ApiKey | None:
    """One key."""
    row = connection.execute(sql.KEY, (id,)).fetchone()
    return None if row is None else key_from_row(row)


def every(connection: sqlite3.Connection, owner: str | None) -> Sequence[ApiKey]:
    """The keys of an owner, or all."""
    return [key_from_row(row) for row in connection.execute(sql.KEYS, (owner, owner))]


def revoke(connection: sqlite3.Connection, id: str, now: int) -> ApiKey:
    """Make one worthless."""
    connection.execute(sql.REVOKE_KEY, (now, id))
    found = read(connection, id)
    if found is None:
        raise NotFound(f"no key {id!r}")
    return found


def begin_reply(
    connection: sqlite3.Connection, owner: str, key: str, request: bytes, lease_micros: int, now: int
) -> Reply | None:
    """Make room for an answer, or give the one that stands."""
    connection.execute(sql.DELETE_OLD_REPLIES, (owner, now - KEPT_SECONDS * 1_000_000))
    until = now + lease_micros
    if connection.execute(sql.BEGIN_REPLY, (owner, key, request, b"[]", b"", until, now)).rowcount:
        return None
    stands = Reply._make(connection.execute(sql.REPLY, (owner, key)).fetchone())
    if stands.status is None and stands.request == request and stands.running_until <= now:
        connection.execute(sql.TAKE_REPLY, (until, owner, key))
        return None
    return stands


def keep_reply(connection: sqlite3.Connection, owner: str, key: str, reply: Reply) -> None:
    """Keep an answer that was made."""
    made = (reply.conversation, reply.status, reply.headers, reply.body)
    connection.execute(sql.KEEP_REPLY, (*made, owner, key, reply.request))


def forget(connection: sqlite3.Connection, owner: str, conversation: str | None) -> dict[str, int]:
    """What an erase does to keys and replies."""
    if conversation is not None:
        blanked = connection.execute(sql.BLANK_REPLIES, (b"", b"[]", b"", owner, conversation)).rowcount
        return {"replies": blanked}
    keys = connection.execute(sql.DELETE_KEYS_OF, (owner,)).rowcount
    return {"api_keys": keys, "replies": connection.execute(sql.DELETE_REPLIES_OF, (owner,)).rowcount}


class SqliteApiKeys:
    """`store.api_keys` of core/ports.py."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database

    async def add(self, key: ApiKey) -> None:
        await self._database.engine.write(lambda c: add(c, key))

    async def get(self, id: str) -> ApiKey | None:
        return await self._database.engine.read(lambda c: read(c, id))

    async def list(self, owner: str | None) -> Sequence[ApiKey]:
        return await self._database.engine.read(lambda c: every(c, owner))

    async def revoke(self, id: str) -> ApiKey:
        now = self._database.now()
        return await self._database.engine.write(lambda c: revoke(c, id, now))


class SqliteReplies:
    """`store.replies` of core/ports.py."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database

    async def begin(self, owner: str, key: str, request: bytes, *, lease_seconds: float) -> Reply | None:
        now, lease = self._database.now(), int(lease_seconds * 1_000_000)
        return await self._database.engine.write(lambda c: begin_reply(c, owner, key, request, lease, now))

    async def keep(self, owner: str, key: str, reply: Reply) -> None:
        await self._database.engine.write(lambda c: keep_reply(c, owner, key, reply))

    async def drop(self, owner: str, key: str, request: bytes) -> None:
        await self._database.engine.write(lambda c: c.execute(sql.DROP_REPLY, (owner, key, request)))
