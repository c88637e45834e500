"""API keys in PostgreSQL, and what was answered to requests with an idempotency key."""

from __future__ import annotations

from collections.abc import Sequence

from everthread.adapters.stores.layout import key_from_row, key_values
from everthread.adapters.stores.postgres import statements as sql
from everthread.adapters.stores.postgres.pool import Connection, PostgresDatabase
from everthread.core.access import ApiKey
from everthread.core.errors import NotFound
from everthread.core.replies import KEPT_SECONDS, Reply


class PostgresApiKeys:
    """`store.api_keys` of core/ports.py."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database

    async def add(self, key: ApiKey) -> None:
        await self._database.pool.write(lambda c: c.execute(sql.ADD_KEY, *key_values(key)))

    async def get(self, id: str) -> ApiKey | None:
        row = await self._database.pool.read(lambda c: c.fetchrow(sql.KEY, id))
        return None if row is None else key_from_row(row)

    async def list(self, owner: str | None) -> Sequence[ApiKey]:
        return [key_from_row(row) for row in await self._database.pool.read(lambda c: c.fetch(sql.KEYS, owner))]

    async def revoke(self, id: str) -> ApiKey:
        now = self._database.now()

        async def work(connection: Connection) -> ApiKey:
            await connection.execute(sql.REVOKE_KEY, now, id)
            row = await connection.fetchrow(sql.KEY, id)
            if row is None:
                raise NotFound(f"no key {id!r}")
            return key_from_row(row)

        return await self._database.pool.write(work)


class PostgresReplies:
    """`store.replies` of core/ports.py."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database

    async def begin(self, owner: str, key: str, request: bytes, *, lease_seconds: float) -> Reply | None:
        now = self._database.now()
        until = now + int(lease_seconds * 1_000_000)

        async def work(connection: Connection) -> Reply | None:
            await connection.execute(sql.DELETE_OLD_REPLIES, owner, now - KEPT_SECONDS * 1_000_000)
            begun = await connection.execute(sql.BEGIN_REPLY, owner, key, request, b"[]", b"", until, now)
            if not begun.endswith(" 0"):
                return None
            row = await connection.fetchrow(sql.REPLY, owner, key)
            if row is None:  # dropped between the two statements: the next attempt finds room
                return Reply(request, None, None, b"[]", b"", until)
            stands = Reply._make(row)
            if stands.status is None and stands.request == request and stands.running_until <= now:
                await connection.execute(sql.TAKE_REPLY, until, owner, key)
                return None
            return stands

        return await self._database.pool.write(work)

    async def renew(self, owner: str, key: str, request: bytes, *, lease_seconds: float) -> None:
        until = self._database.now() + int(lease_seconds * 1_000_000)
        await self._database.pool.write(lambda c: c.execute(sql.RENEW_REPLY, until, owner, key, request))

    async def keep(self, owner: str, key: str, reply: Reply) -> None:
        values = (reply.conversation, reply.status, reply.headers, reply.body, owner, key, reply.request)
        await self._database.pool.write(lambda c: c.execute(sql.KEEP_REPLY, *values))

    async def drop(self, owner: str, key: str, request: bytes) -> None:
        await self._database.pool.write(lambda c: c.execute(sql.DROP_REPLY, owner, key, request))


async def forget(connection: Connection, owner: str, conversation: str | None) -> dict[str, int]:
    """Erase API keys and stored replies."""
    if conversation is not None:
        return {"replies": await blank_replies(connection, owner, conversation)}
    keys = _count(await connection.execute(sql.DELETE_KEYS_OF, owner))
    return {"api_keys": keys, "replies": _count(await connection.execute(sql.DELETE_REPLIES_OF, owner))}


async def blank_replies(connection: Connection, owner: str, conversation: str | None) -> int:
    """Destroy what replies say, or may say, of a conversation; with None, of a memory, which belongs to none."""
    return _count(await connection.execute(sql.BLANK_REPLIES, b"", b"[]", b"", owner, conversation))


def _count(status: str) -> int:
    return int(status.rpartition(" ")[2])
