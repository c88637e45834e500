"""Checkpoints over a connection: shown to intents, written as decided, read for their users."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from everthread.adapters.stores.layout import (
    checkpoint_from_row,
    thread_from_row,
    write_from_row,
)
from everthread.adapters.stores.postgres import statements as sql
from everthread.adapters.stores.postgres.pool import Connection, PostgresDatabase, Row
from everthread.adapters.stores.postgres.statements import ConversationKey
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
from everthread.core.failpoints import reach
from everthread.core.nouns import Ref


async def look(connection: Connection, key: ConversationKey, needs: CheckpointNeeds) -> CheckpointsSeen:
    """Read what an intent about checkpoints needs."""
    if needs.everything:
        rows = await connection.fetch(sql.CHECKPOINTS, *key)
        writes = [write_from_row(tuple(row)) for row in await connection.fetch(sql.ALL_WRITES, *key)]
        return CheckpointsSeen(
            thread=await _thread(connection, key),
            held=[write for write in writes if write.is_held],
            all=[checkpoint_from_row(row) for row in rows],
            writes=writes,
            digests=[row[0] for row in await connection.fetch(sql.DIGESTS, *key)],
            chunks={row[0]: row[1] for row in await connection.fetch(sql.CHUNKS, *key)},
        )
    parent = await _one(connection, key, needs.namespace, needs.parent_id)
    return CheckpointsSeen(
        thread=await _thread(connection, key),
        own=await _one(connection, key, needs.namespace, needs.id),
        parent=parent,
        held=() if parent is None else await _held_writes(connection, key, parent),
    )


async def _thread(connection: Connection, key: ConversationKey) -> Thread:
    return thread_from_row(await connection.fetchrow(sql.THREAD, *key))


async def _one(connection: Connection, key: ConversationKey, namespace: str, id: str | None) -> StoredCheckpoint | None:
    row = None if id is None else await connection.fetchrow(sql.CHECKPOINT, *key, namespace, id)
    return None if row is None else checkpoint_from_row(tuple(row))


async def _held_writes(connection: Connection, key: ConversationKey, on: StoredCheckpoint) -> list[StoredWrite]:
    return [write_from_row(tuple(row)) for row in await connection.fetch(sql.HELD_WRITES, *key, on.number)]


async def apply(connection: Connection, key: ConversationKey, changes: CheckpointChanges) -> None:
    """Write what was decided."""
    if changes.drop:
        await connection.execute(sql.DELETE_CHECKPOINTS, *key, list(changes.drop))
        await connection.execute(sql.DELETE_WRITES, *key, list(changes.drop))
    if changes.drop_blobs:
        await connection.execute(sql.DELETE_BLOBS, *key, list(changes.drop_blobs))
    if changes.blobs:
        await connection.executemany(sql.KEEP_BLOB, [(*key, *blob) for blob in changes.blobs.items()])
    for row in changes.put:
        await connection.execute(sql.PUT_CHECKPOINT, *key, *row)
    if changes.writes:
        await connection.executemany(sql.KEEP_WRITE, _write_rows(key, changes.writes))
    if changes.settled:
        await connection.executemany(sql.SETTLE_WRITE, _write_rows(key, changes.settled))
    if changes.drop_unshared_blobs:
        await connection.execute(sql.DELETE_UNSHARED_BLOBS, *key, list(changes.drop_unshared_blobs))
    if changes.thread is not None:
        await connection.execute(sql.WRITE_THREAD, *key, *changes.thread[:3], *map(int, changes.thread[3:]))
    reach("checkpoint.written")


def _write_rows(key: ConversationKey, writes: Iterable[StoredWrite]) -> list[Row]:
    return [(*key, *write[:7], int(write.is_held)) for write in writes]


async def read(connection: Connection, ref: Ref, namespace: str, id: str | None) -> SavedCheckpoint | None:
    """Return one checkpoint, or the newest; None when the conversation or the checkpoint does not exist."""
    key = await _key(connection, ref)
    if key is None:
        return None
    if id is None:
        row = await connection.fetchrow(sql.NEWEST_CHECKPOINT, *key, namespace)
    else:
        row = await connection.fetchrow(sql.CHECKPOINT, *key, namespace, id)
    if row is None:
        return None
    return (await _saved(connection, key.owner, [(key.number, *row)]))[0]


async def _key(connection: Connection, ref: Ref) -> ConversationKey | None:
    row = await connection.fetchrow(sql.CONVERSATION_STATE, *ref)
    return None if row is None or row[1] is not None else ConversationKey(ref.owner, row[0])


async def _saved(connection: Connection, owner: str, rows: Sequence[Row]) -> list[SavedCheckpoint]:
    """Checkpoints, each after its conversation's number, with their threads and writes."""
    threads = {number: await _thread(connection, ConversationKey(owner, number)) for number in {row[0] for row in rows}}
    writes: dict[tuple[int, int], list[StoredWrite]] = {(row[0], row[1]): [] for row in rows}
    places = ([conversation for conversation, _ in writes], [number for _, number in writes])
    for row in await connection.fetch(sql.WRITES, owner, *places):
        writes[row[0], row[1]].append(write_from_row(tuple(row)[1:]))
    return [
        SavedCheckpoint(checkpoint_from_row(tuple(row)[1:]), writes[row[0], row[1]], threads[row[0]]) for row in rows
    ]


async def read_all(connection: Connection, ref: Ref) -> CheckpointsSeen:
    """Everything about a conversation's checkpoints."""
    key = await _key(connection, ref)
    if key is None:
        return CheckpointsSeen(thread=Thread())
    return await look(connection, key, CheckpointNeeds(everything=True))


async def list_some(connection: Connection, query: CheckpointQuery) -> list[ListedCheckpoint]:
    """One page."""
    rows = await connection.fetch(
        sql.LIST_CHECKPOINTS,
        query.owner,
        query.conversation,
        query.namespace,
        query.id,
        query.before,
        *(query.after or (None, None, None)),
        query.limit,
    )
    saved = await _saved(connection, query.owner, [tuple(row)[1:] for row in rows])
    return [ListedCheckpoint(row[0], one) for row, one in zip(rows, saved, strict=True)]


async def ancestors(connection: Connection, ref: Ref, namespace: str, id: str, limit: int) -> list[SavedCheckpoint]:
    """Return a checkpoint and its ancestors."""
    key = await _key(connection, ref)
    if key is None:
        return []
    rows = await connection.fetch(sql.ANCESTORS, *key, namespace, id, limit)
    return await _saved(connection, key.owner, [(key.number, *row) for row in rows])


async def blobs(connection: Connection, ref: Ref, digests: Sequence[bytes]) -> Mapping[bytes, bytes]:
    """Bytes by digest."""
    key = await _key(connection, ref)
    rows = [] if key is None else await connection.fetch(sql.BLOBS, *key, list(digests))
    return {row[0]: row[1] for row in rows}


async def with_checkpoints(connection: Connection, owner: str | None, run_ids: Sequence[str] | None) -> list[Ref]:
    """Conversations with checkpoints of these runs, or with held messages."""
    if run_ids is None:
        return [Ref(*row) for row in await connection.fetch(sql.WITH_HELD, owner)]
    return [Ref(*row) for row in await connection.fetch(sql.OF_RUNS, list(run_ids), owner)]


class PostgresCheckpoints:
    """`store.checkpoints` of core/ports.py."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database

    async def get(self, ref: Ref, namespace: str, id: str | None) -> SavedCheckpoint | None:
        return await self._database.pool.read(lambda c: read(c, ref, namespace, id))

    async def list(self, query: CheckpointQuery) -> Sequence[ListedCheckpoint]:
        return await self._database.pool.read(lambda c: list_some(c, query))

    async def all(self, ref: Ref) -> CheckpointsSeen:
        return await self._database.pool.read(lambda c: read_all(c, ref))

    async def ancestors(self, ref: Ref, namespace: str, id: str, *, limit: int) -> Sequence[SavedCheckpoint]:
        return await self._database.pool.read(lambda c: ancestors(c, ref, namespace, id, limit))

    async def blobs(self, ref: Ref, digests: Sequence[bytes]) -> Mapping[bytes, bytes]:
        return await self._database.pool.read(lambda c: blobs(c, ref, digests))

    async def conversations(self, owner: str | None, *, run_ids: Sequence[str] | None) -> Sequence[Ref]:
        return await self._database.pool.read(lambda c: with_checkpoints(c, owner, run_ids))
