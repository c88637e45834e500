"""Checkpoints in SQLite: shown to intents, written as decided, read for their users."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from everthread.adapters.stores.layout import (
    checkpoint_from_row,
    checkpoint_values,
    thread_from_row,
    write_from_row,
    write_values,
)
from everthread.adapters.stores.sqlite import statements as sql
from everthread.adapters.stores.sqlite.engine import SqliteDatabase
from everthread.core.checkpoints import (
    CheckpointChanges,
    CheckpointNeeds,
    CheckpointQuery,
    CheckpointsSeen,
    ListedCheckpoint,
    SavedCheckpoint,
    StoredCheckpoint,
    StoredWrite,
    Thread,
)
from everthread.core.entries import SEQ_MASK, entry_key
from everthread.core.failpoints import reach
from everthread.core.nouns import Ref

_THREAD = len(Thread._fields)
"""So many columns of a thread stand before those of a checkpoint …"""
_ID = _THREAD + StoredCheckpoint._fields.index("id")
"""… and here is the id of that."""


class SqliteCheckpoints:
    """`store.checkpoints` of core/ports.py."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database

    async def get(self, ref: Ref, namespace: str, id: str | None) -> SavedCheckpoint | None:
        def work(connection: sqlite3.Connection) -> SavedCheckpoint | None:
            if id is None:
                row = connection.execute(sql.NEWEST_CHECKPOINT, (*ref, namespace)).fetchone()
            else:
                row = connection.execute(sql.CHECKPOINT, (*ref, namespace, id)).fetchone()
            if row is None:
                return None
            return _saved(connection, row[_THREAD:-1], thread_from_row(row), has_writes=row[-1])

        return await self._database.engine.read(work)

    async def list(self, query: CheckpointQuery) -> Sequence[ListedCheckpoint]:
        after = query.after or (None, None, None)
        values = {
            "owner": query.owner,
            "conversation": query.conversation,
            "namespace": query.namespace,
            "id": query.id,
            "before": query.before,
            "after_thread": after[0],
            "after_namespace": after[1],
            "after_id": after[2],
            "limit": query.limit,
        }

        def work(connection: sqlite3.Connection) -> Sequence[ListedCheckpoint]:
            return [
                ListedCheckpoint(row[0], _saved(connection, row[1:], _thread(connection, row[1] >> 32)))
                for row in connection.execute(sql.LIST_CHECKPOINTS, values).fetchall()
            ]

        return await self._database.engine.read(work)

    async def all(self, ref: Ref) -> CheckpointsSeen:
        def work(connection: sqlite3.Connection) -> CheckpointsSeen:
            number = _number(connection, ref)
            if number is None:
                return CheckpointsSeen(thread=Thread())
            return look(connection, number, CheckpointNeeds(everything=True))

        return await self._database.engine.read(work)

    async def ancestors(self, ref: Ref, namespace: str, id: str, *, limit: int) -> Sequence[SavedCheckpoint]:
        def work(connection: sqlite3.Connection) -> Sequence[SavedCheckpoint]:
            number = _number(connection, ref)
            if number is None:
                return []
            values = {"number": number, "namespace": namespace, "id": id, "limit": limit}
            thread = _thread(connection, number)
            return [_saved(connection, row, thread) for row in connection.execute(sql.ANCESTORS, values).fetchall()]

        return await self._database.engine.read(work)

    async def blobs(self, ref: Ref, digests: Sequence[bytes]) -> Mapping[bytes, bytes]:
        def work(connection: sqlite3.Connection) -> Mapping[bytes, bytes]:
            number = _number(connection, ref)
            found = ((digest, connection.execute(sql.BLOB, (number, digest)).fetchone()) for digest in digests)
            return {digest: row[0] for digest, row in found if row is not None}

        return await self._database.engine.read(work)

    async def conversations(self, owner: str | None, *, run_ids: Sequence[str] | None) -> Sequence[Ref]:
        def work(connection: sqlite3.Connection) -> Sequence[Ref]:
            if run_ids is None:
                return [Ref(*row) for row in connection.execute(sql.WITH_HELD, {"owner": owner})]
            values = [{"run_id": run, "owner": owner} for run in run_ids]
            return sorted({Ref(*row) for one in values for row in connection.execute(sql.OF_RUN, one)})

        return await self._database.engine.read(work)


def look(connection: sqlite3.Connection, number: int, needs: CheckpointNeeds) -> CheckpointsSeen:
    """Read what an intent about checkpoints needs."""
    if needs.everything:
        rows = connection.execute(sql.CHECKPOINTS, _span(number)).fetchall()
        writes = [write_from_row(row) for row in connection.execute(sql.ALL_WRITES, _span(number))]
        return CheckpointsSeen(
            thread=_thread(connection, number),
            held=[write for write in writes if write.is_held],
            all=[checkpoint_from_row(row) for row in rows],
            writes=writes,
            digests=[row[0] for row in connection.execute(sql.DIGESTS, (number,))],
            chunks=dict(connection.execute(sql.CHUNKS, (number,)).fetchall()),
        )
    rows = connection.execute(
        sql.THREAD_AND_CHECKPOINTS, (needs.namespace, needs.id, needs.parent_id, number)
    ).fetchall()
    found = {row[_ID]: checkpoint_from_row(row[_THREAD:-1]) for row in rows if row[_ID] is not None}
    holding = {row[_ID] for row in rows if row[-1]}
    parent = found.get(needs.parent_id)
    return CheckpointsSeen(
        thread=thread_from_row(rows[0] if rows else None),
        own=found.get(needs.id),
        parent=parent,
        held=_held_writes(connection, _around(number, parent)) if parent is not None and parent.id in holding else (),
    )


def _span(number: int) -> tuple[int, int]:
    return entry_key(number, 0), entry_key(number, SEQ_MASK)


def _around(number: int, row: StoredCheckpoint) -> tuple[int, int]:
    return entry_key(number, row.number) - 1, entry_key(number, row.number)


def _thread(connection: sqlite3.Connection, number: int) -> Thread:
    return thread_from_row(connection.execute(sql.THREAD, (number,)).fetchone())


def _held_writes(connection: sqlite3.Connection, span: tuple[int, int]) -> list[StoredWrite]:
    return [write_from_row(row) for row in connection.execute(sql.HELD_WRITES, span)]


def apply(connection: sqlite3.Connection, number: int, changes: CheckpointChanges) -> None:
    """Write what was decided."""
    for dropped in changes.drop:
        connection.execute(sql.DELETE_CHECKPOINT, (entry_key(number, dropped),))
        connection.execute(sql.DELETE_WRITES, (entry_key(number, dropped),))
    for digest in changes.drop_blobs:
        connection.execute(sql.DELETE_BLOB, (number, digest))
    for digest, body in changes.blobs.items():
        connection.execute(sql.KEEP_BLOB, (number, digest, body))
    for row in changes.put:
        connection.execute(sql.PUT_CHECKPOINT, checkpoint_values(number, row))
    for write in changes.writes:
        connection.execute(sql.KEEP_WRITE, write_values(number, write))
    for write in changes.settled:
        connection.execute(sql.SETTLE_WRITE, write_values(number, write))
    for digest in changes.drop_unshared_blobs:
        connection.execute(sql.DELETE_UNSHARED_BLOB, (number, digest, *_span(number)))
    if changes.thread is not None:
        connection.execute(sql.WRITE_THREAD, (number, *changes.thread[:3], *map(int, changes.thread[3:])))
    reach("checkpoint.written")


def _number(connection: sqlite3.Connection, ref: Ref) -> int | None:
    row = connection.execute(sql.CONVERSATION_STATE, ref).fetchone()
    return None if row is None or row[1] is not None else row[0]


def _saved(
    connection: sqlite3.Connection, row: Sequence[Any], thread: Thread, *, has_writes: bool = True
) -> SavedCheckpoint:
    writes = connection.execute(sql.WRITES, (row[0],)) if has_writes else ()
    return SavedCheckpoint(checkpoint_from_row(row), [write_from_row(write) for write in writes], thread)
