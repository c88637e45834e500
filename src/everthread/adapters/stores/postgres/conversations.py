"""The rows that conversations have, in PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from everthread.adapters.stores.layout import NEWEST, info_from_row, next_position
from everthread.adapters.stores.postgres import statements as sql
from everthread.adapters.stores.postgres.pool import Connection, PostgresDatabase
from everthread.core.chain import SettingsChange, genesis, next_change
from everthread.core.clock import to_micros
from everthread.core.errors import Conflict, Erased, Invalid, NotFound
from everthread.core.failpoints import reach
from everthread.core.nouns import ConversationInfo, Ref
from everthread.core.ports import ListOrder, ListPosition, NewConversation


class PostgresConversations:
    """`store.conversations` of core/ports.py."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database
        self.off_record: set[Ref] = set()
        """The off-record conversations created here, which closing the store erases."""

    async def create(self, new: NewConversation) -> ConversationInfo:
        now = self._database.now()
        info = await self._database.pool.write(lambda c: _create(c, new, now))
        if info.off_record:
            self.off_record.add(Ref(new.owner, new.id))
        return info

    async def get(self, ref: Ref) -> ConversationInfo:
        return await self._database.pool.read(lambda c: _get(c, ref))

    async def list(
        self,
        owner: str,
        *,
        limit: int,
        position: ListPosition | None,
        include_deleted: bool,
        parent_id: str | None,
        order: ListOrder = "created",
    ) -> tuple[Sequence[ConversationInfo], ListPosition | None]:
        before = NEWEST if position is None else max(0, min(position.number, NEWEST))
        statement = (sql.LIST_CONVERSATIONS if parent_id is None else sql.LIST_CHILDREN)[order]
        said_before = () if order == "created" else (NEWEST if position is None else position.said_at,)
        parent = () if parent_id is None else (parent_id,)
        values = (owner, include_deleted, limit + 1, before, *said_before, *parent)
        found = await self._database.pool.read(lambda c: numbered_conversations(c, statement, *values))
        shown = found[:limit]
        following = next_position(*shown[-1]) if shown and len(found) > limit else None
        return [info for _, info in shown], following

    async def update(self, ref: Ref, changes: Mapping[str, Any]) -> ConversationInfo:
        now = self._database.now()

        async def work(connection: Connection) -> ConversationInfo:
            for column, value in changes.items():
                if column not in sql.UPDATE_CONVERSATION:
                    raise Invalid("cannot be set", field=column)
                stored = to_micros(value) if isinstance(value, datetime) else value
                await connection.execute(sql.UPDATE_CONVERSATION[column], stored, now, *ref)
            return await note_change(connection, ref, now) if changes else await _get(connection, ref)

        return await self._database.pool.write(work)

    async def changes(self, ref: Ref, *, after: int, limit: int) -> Sequence[SettingsChange]:
        rows = await self._database.pool.read(lambda c: c.fetch(sql.CHANGES, *ref, after, limit))
        return [SettingsChange._make(row) for row in rows]


async def _create(connection: Connection, new: NewConversation, now: int) -> ConversationInfo:
    await _refuse_known(connection, new)
    parent, off_record = None, new.off_record
    if new.parent_id is not None:
        row = await connection.fetchrow(sql.CONVERSATION_STATE, new.owner, new.parent_id)
        if row is None or row[1] is not None:
            raise NotFound(f"no parent conversation {new.parent_id!r}")
        parent, off_record = row[0], off_record or bool(row[2])  # they speak of the same things
    chain = genesis(new.owner, new.id)
    at = now if new.created_at is None else to_micros(new.created_at)
    values = (new.owner, new.id, parent, new.title, new.metadata, int(off_record), at, chain)
    if await connection.fetchval(sql.CREATE_CONVERSATION, *values) is None:
        await _refuse_known(connection, new)
    info = await note_change(connection, Ref(new.owner, new.id), at)
    reach("create.written")
    return info


async def _refuse_known(connection: Connection, new: NewConversation) -> None:
    known = await connection.fetchrow(sql.CONVERSATION_STATE, new.owner, new.id)
    if known is not None and known[1] is not None:
        raise Erased(f"conversation {new.id!r} was erased; its id cannot be used again")
    if known is not None:
        raise Conflict(f"conversation {new.id!r} exists already; get it, or choose another id")


async def numbered_conversations(
    connection: Connection, statement: str, *values: object
) -> Sequence[tuple[int, ConversationInfo]]:
    """Conversations with their numbers."""
    return [(row[0], info_from_row(row)) for row in await connection.fetch(statement, *values)]


async def note_change(connection: Connection, ref: Ref, now: int) -> ConversationInfo:
    """Commit to what the conversation's row says now, and give it. The caller has written to that row, so that no other
    change comes between."""
    row = await connection.fetchrow(sql.GET_CONVERSATION, *ref)
    if row is None:
        raise NotFound(f"no conversation {ref.id!r}")
    info, number = info_from_row(row), row[0]
    newest = await connection.fetchrow(sql.NEWEST_CHANGE, ref.owner, number)
    await connection.execute(sql.BLANK_CHANGES, ref.owner, [number])
    change = next_change(None if newest is None else SettingsChange._make(newest), info, now)
    await connection.execute(sql.INSERT_CHANGE, ref.owner, number, *change)
    return info


async def _get(connection: Connection, ref: Ref) -> ConversationInfo:
    row = await connection.fetchrow(sql.GET_CONVERSATION, *ref)
    if row is None:
        raise NotFound(f"no conversation {ref.id!r}")
    return info_from_row(row)
