"""The rows that conversations have, in SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from everthread.adapters.stores.layout import NEWEST, info_from_row, next_position
from everthread.adapters.stores.sqlite import statements as sql
from everthread.adapters.stores.sqlite.engine import SqliteDatabase
from everthread.core.chain import SettingsChange, genesis, next_change
from everthread.core.clock import to_micros
from everthread.core.errors import Conflict, Erased, Invalid, NotFound, StoreDamaged
from everthread.core.failpoints import reach
from everthread.core.nouns import ConversationInfo, Ref
from everthread.core.ports import ListOrder, ListPosition, NewConversation

_COLUMNS = ("title", "metadata", "is_active", "deleted_at")


class SqliteConversations:
    """`store.conversations` of core/ports.py."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database
        self.off_record: set[Ref] = set()
        """The off-record conversations created here, which closing the store erases."""

    async def create(self, new: NewConversation) -> ConversationInfo:
        now = self._database.now()
        info = await self._database.engine.write(lambda c: _create(c, new, now))
        if info.off_record:
            self.off_record.add(Ref(new.owner, new.id))
        return info

    async def get(self, ref: Ref) -> ConversationInfo:
        return await self._database.engine.read(lambda c: _get(c, ref))

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
        statement = (sql.LIST_CONVERSATIONS if parent_id is None else sql.LIST_CHILDREN)[order]
        values = {
            "owner": owner,
            "before": NEWEST if position is None else min(position.number, NEWEST),
            "said_before": NEWEST if position is None else position.said_at,
            "include_deleted": include_deleted,
            "parent": parent_id,
            "limit": limit + 1,
        }
        rows = await self._database.engine.read(lambda c: c.execute(statement, values).fetchall())
        shown = rows[:limit]
        infos = conversation_infos(shown)
        following = next_position(shown[-1][0], infos[-1]) if shown and len(rows) > limit else None
        return infos, following

    async def update(self, ref: Ref, changes: Mapping[str, Any]) -> ConversationInfo:
        now = self._database.now()

        def work(connection: sqlite3.Connection) -> ConversationInfo:
            for column, value in changes.items():
                if column not in _COLUMNS:
                    raise Invalid("cannot be set", field=column)
                stored = to_micros(value) if isinstance(value, datetime) else value
                connection.execute(sql.UPDATE_CONVERSATION.format(column=column), (stored, now, *ref))
            return note_change(connection, ref, now) if changes else _get(connection, ref)

        return await self._database.engine.write(work)

    async def changes(self, ref: Ref, *, after: int, limit: int) -> Sequence[SettingsChange]:
        rows = await self._database.engine.read(lambda c: c.execute(sql.CHANGES, (*ref, after, limit)).fetchall())
        return [SettingsChange._make(row) for row in rows]


def _create(connection: sqlite3.Connection, new: NewConversation, now: int) -> ConversationInfo:
    known = connection.execute(sql.CONVERSATION_STATE, (new.owner, new.id)).fetchone()
    if known is not None and known[1] is not None:
        raise Erased(f"conversation {new.id!r} was erased; its id cannot be used again")
    if known is not None:
        raise Conflict(f"conversation {new.id!r} exists already; get it, or choose another id")
    parent, off_record = None, new.off_record
    if new.parent_id is not None:
        row = connection.execute(sql.CONVERSATION_STATE, (new.owner, new.parent_id)).fetchone()
        if row is None or row[1] is not None:
            raise NotFound(f"no parent conversation {new.parent_id!r}")
        parent, off_record = row[0], off_record or bool(row[2])  # they speak of the same things
    chain = genesis(new.owner, new.id)
    at = now if new.created_at is None else to_micros(new.created_at)
    number = connection.execute(
        sql.CREATE_CONVERSATION,
        (new.owner, new.id, parent, new.title, new.metadata, int(off_record), at, at, chain),
    ).lastrowid
    connection.execute(sql.INSERT_BRANCH, (number, 0, None, 0, 0, 0, at))
    info = note_change(connection, Ref(new.owner, new.id), at)
    reach("create.written")
    return info


def note_change(connection: sqlite3.Connection, ref: Ref, now: int) -> ConversationInfo:
    """Commit to what the conversation's row says now, and give it."""
    row = connection.execute(sql.GET_CONVERSATION, ref).fetchone()
    if row is None:
        raise NotFound(f"no conversation {ref.id!r}")
    (info,) = conversation_infos([row])
    newest = connection.execute(sql.NEWEST_CHANGE, (row[0],)).fetchone()
    connection.execute(sql.BLANK_CHANGES, (row[0],))
    change = next_change(None if newest is None else SettingsChange._make(newest), info, now)
    connection.execute(sql.INSERT_CHANGE, (row[0], *change))
    return info


def _get(connection: sqlite3.Connection, ref: Ref) -> ConversationInfo:
    row = connection.execute(sql.GET_CONVERSATION, ref).fetchone()
    if row is None:
        raise NotFound(f"no conversation {ref.id!r}")
    return conversation_infos([row])[0]


def conversation_infos(rows: Sequence[Any]) -> Sequence[ConversationInfo]:
    """Conversations from their rows, which damage can have given any type and any value."""
    try:
        return [info_from_row(row) for row in rows]
    except (ValueError, TypeError, OverflowError) as problem:
        raise StoreDamaged(f"the row of a conversation cannot be read ({problem}): restore a backup") from problem
