"""Checkpoints over a connection: shown to intents, written as decided, read for their users."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from everthread.adapters.stores.layout import (
    SEQ_MASK,
    checkpoint_from_row,
    checkpoint_values,
    entry_key,
    thread_from_row,
    write_from_row,
    write_values,
)
from everthread.adapters.stores.postgres import statements as sql
from everthread.adapters.stores.postgres.pool import Connection, PostgresDatabase, Row
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


async def look(connection: Connection, number: int, needs: CheckpointNeeds) -> CheckpointsSeen:
    """What an intent about checkpoints asks for."""
    if needs.everything:
        rows = await connection.fetch(sql.CHECKPOINTS, *_span(number))
        writes = [write_from_row(tuple(row)) for row in await connection.fetch(sql.ALL_WRITES, *_span(number))]
        return CheckpointsSeen(
            thread=await _thread(connection, number),
            held=[write for write in writes if write.is_held],
            all=[checkpoint_from_row(row) for row in rows],
            writes=writes,
            digests=[row[0] for row in await connection.fetch(sql.DIGESTS, number)],
            chunks={row[0]: row[1] for row in await connection.fetch(sql.CHUNKS, number)},
        )
    parent = await _one(connection, number, needs.namespace, needs.parent_id)
    return CheckpointsSeen(
        thread=await _thread(connection, number),
        own=await _one(connection, number, needs.namespace, needs.id),
        parent=parent,
        held=() if parent is None else await _held(connection, _around(number, parent)),
    )


def _span(number: int) -> tuple[int, int]:
    return entry_key(number, 0), entry_key(number, SEQ_MASK)


def _around(number: int, row: StoredCheckpoint) -> tuple[int, int]:
    return entry_key(number, row.number) - 1, entry_key(number, row.number)


async def _thread(connection: Connection, number: int) -> Thread:
    return thread_from_row(await connection.fetchrow(sql.THREAD, number))


async def _one(connection: Connection, number: int, namespace: str, id: str | None) -> StoredCheckpoint | None:
    row = None if id is None else await connection.fetchrow(sql.CHECKPOINT, number, namespace, id)
    return None if row is None else checkpoint_from_row(tuple(row))


async def _held(connection: Connection, span: tuple[int, int]) -> list[StoredWrite]:
    return [write_from_row(tuple(row)) for row in await connection.fetch(sql.HELD_WRITES, *span)]


async def apply(connection: Connection, number: int, changes: CheckpointChanges) -> None:
    """Write what was decided."""
    if changes.drop:
        keys = [entry_key(number, dropped) for dropped in changes.drop]
        await connection.execute(sql.DELETE_CHECKPOINTS, keys)
        await connection.execute(sql.DELETE_WRITES, keys)
    if changes.drop_blobs:
        await connection.execute(sql.DELETE_BLOBS, number, list(changes.drop_blobs))
    if changes.blobs:
        await connection.executemany(sql.KEEP_BLOB, [(number, *blob) for blob in changes.blobs.items()])
    for row in changes.put:
        await connection.execute(sql.PUT_CHECKPOINT, *checkpoint_values(number, row))
    if changes.writes:
        await connection.executemany(sql.KEEP_WRITE, [write_values(number, write) for write in changes.writes])
    if changes.settled:
        await connection.executemany(sql.SETTLE_WRITE, [write_values(number, write) for write in changes.settled])
    if changes.thread is not None:
        await connection.execute(sql.WRITE_THREAD, number, *changes.thread[:3], *map(int, changes.thread[3:]))
    reach("checkpoint.written")


async def read(connection: Connection, ref: Ref, namespace: str, id: str | None) -> SavedCheckpoint | None:
    """One checkpoint, or the newest; None when the conversation or the checkpoint is not there."""
    number = await _number(connection, ref)
    if number is None:
        return None
    if id is None:
        row = await connection.fetchrow(sql.NEWEST_CHECKPOINT, number, namespace)
    else:
        row = await connection.fetchrow(sql.CHECKPOINT, number, namespace, id)
    if row is None:
        return None
    return (await _saved(connection, [row], {number: await _thread(connection, number)}))[0]


async def _number(connection: Connection, ref: Ref) -> int | None:
    row = await connection.fetchrow(sql.CONVERSATION_STATE, *ref)
    return None if row is None or row[1] is not None else row[0]


async def _saved(connection: Connection, rows: Sequence[Row], threads: Mapping[int, Thread]) -> list[SavedCheckpoint]:
    """Checkpoints with their writes, in one more round trip."""
    by_key: dict[int, list[StoredWrite]] = {row[0]: [] for row in rows}
    for write in await connection.fetch(sql.WRITES, list(by_key)):
        by_key[write[0]].append(write_from_row(tuple(write)))
    return [SavedCheckpoint(checkpoint_from_row(tuple(row)), by_key[row[0]], threads[row[0] >> 32]) for row in rows]


async def read_all(connection: Connection, ref: Ref) -> CheckpointsSeen:
    """Everything about a conversation's checkpoints."""
    number = await _number(connection, ref)
    if number is None:
        return CheckpointsSeen(thread=Thread())
    return await look(connection, number, CheckpointNeeds(everything=True))


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
    threads = {number: await _thread(connection, number) for number in {row[1] >> 32 for row in rows}}
    saved = await _saved(connection, [tuple(row)[1:] for row in rows], threads)
    return [ListedCheckpoint(row[0], one) for row, one in zip(rows, saved, strict=True)]


async def ancestors(connection: Connection, ref: Ref, namespace: str, id: str, limit: int) -> list[SavedCheckpoint]:
    """A checkpoint and those it was made from."""
    number = await _number(connection, ref)
    if number is None:
        return []
    rows = await connection.fetch(sql.ANCESTORS, number, namespace, id, limit)
    return await _saved(connection, rows, {number: await _thread(connection, number)})


async def blobs(connection: Connection, ref: Ref, digests: Sequence[bytes]) -> Mapping[bytes, bytes]:
    """Bytes by digest."""
    rows = await connection.fetch(sql.BLOBS, await _number(connection, ref), list(digests))
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
