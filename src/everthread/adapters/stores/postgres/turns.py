"""Turns and their events in PostgreSQL. Rows are written by intents (`apply`), like the log."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

from everthread.adapters.stores.layout import NEWEST
from everthread.adapters.stores.packed_events import pack, unpack
from everthread.adapters.stores.postgres import turn_statements as sql
from everthread.adapters.stores.postgres.pool import Connection, PostgresDatabase
from everthread.adapters.stores.postgres.statements import ConversationKey
from everthread.adapters.stores.turn_rows import STATES, turn_from_row, turn_values, without
from everthread.core.clock import to_micros
from everthread.core.errors import NotFound
from everthread.core.log import Decision
from everthread.core.nouns import Ref
from everthread.core.turns import Change, EventBatch, HeldTurn, StoredEvent, Turn, TurnNeeds, TurnQuery


class PostgresTurns:
    """`store.turns` of core/ports.py."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database

    async def get(self, ref: Ref, id: str) -> Turn:
        return await self._database.pool.read(lambda c: read(c, ref, id))

    async def list(self, query: TurnQuery) -> Sequence[Turn]:
        async def work(connection: Connection) -> Sequence[Turn]:
            before = NEWEST if query.before is None else query.before
            states = [STATES.index(state) for state in query.states]
            rows = await connection.fetch(sql.LISTED, query.owner, query.conversation, before, states, query.limit)
            return [turn_from_row(row) for row in rows]

        return await self._database.pool.read(work)

    async def now(self) -> datetime:
        moment: datetime = await self._database.pool.read(lambda c: c.fetchval(sql.NOW))
        return moment

    async def unfinished(self) -> Sequence[tuple[Ref, Turn]]:
        async def work(connection: Connection) -> Sequence[tuple[Ref, Turn]]:
            found = [(row[0], turn_from_row(tuple(row)[1:])) for row in await connection.fetch(sql.UNFINISHED)]
            return [(Ref(owner, turn.conversation_id), turn) for owner, turn in found]

        return await self._database.pool.read(work)

    async def renew(self, holder: str, until: datetime) -> Sequence[HeldTurn]:
        async def work(connection: Connection) -> Sequence[HeldTurn]:
            await connection.execute(sql.RENEW, to_micros(until), holder)
            rows = await connection.fetch(sql.HELD_BY, holder)
            return [HeldTurn(Ref(row[0], row[1]), row[2], bool(row[3])) for row in rows]

        return await self._database.pool.write(work)

    async def add_events(self, holder: str, batches: Sequence[tuple[Ref, EventBatch]]) -> Sequence[str]:
        now = self._database.now()
        rows = [(*ref, batch.turn_id, batch.first, batch.last, pack(batch)) for ref, batch in batches]
        reserved = [(holder, batch.turn_id, batch.reserved) for _, batch in batches if batch.reserved]
        signals = self._database.pool.signals

        async def work(connection: Connection) -> Sequence[str]:
            if not reserved:
                await connection.execute(sql.UNSYNCED)
            held = await connection.fetch(sql.ADD_EVENTS, holder, *map(list, zip(*rows, strict=True)), now)
            for values in reserved:
                await connection.execute(sql.RESERVE, *values)
            await connection.execute(sql.NOTIFY, signals.payloads([ref for ref, _ in batches], is_state=False))
            known = {row[0] for row in held}
            return [batch.turn_id for _, batch in batches if batch.turn_id not in known]

        lost = await self._database.pool.write(work)
        for ref, _ in batches:
            signals.publish(ref, is_state=False)
        return lost

    async def events(self, ref: Ref, id: str, *, after: int, limit: int) -> Sequence[StoredEvent]:
        async def work(connection: Connection) -> Sequence[StoredEvent]:
            turn = await read(connection, ref, id)
            rows = await connection.fetch(sql.EVENTS, ref.owner, turn.number, after, limit)
            return unpack(turn, rows, after)

        return await self._database.pool.read(work)

    async def prune_events(self, before: datetime) -> int:
        async def work(connection: Connection) -> int:
            status = await connection.execute(sql.PRUNE_EVENTS, to_micros(before))
            return int(status.rpartition(" ")[2])

        return await self._database.pool.write(work)

    def subscribe(self, ref: Ref, on_change: Callable[[Change], None]) -> Callable[[], None]:
        return self._database.pool.signals.subscribe(ref, on_change)


async def look(connection: Connection, key: ConversationKey, needs: TurnNeeds) -> list[Turn]:
    """Read the turns that an intent needs."""
    return [turn_from_row(row) for row in await connection.fetch(sql.SEEN, *key, needs.id)]


async def apply(connection: Connection, key: ConversationKey, decision: Decision[object], now: int) -> None:
    """Write what an intent decided about turns."""
    for turn in decision.turns:
        await connection.execute(sql.PUT, *key, *turn_values(turn))
    for batch in decision.events:
        if batch.replaces_earlier:
            status = await connection.execute(sql.DELETE_EVENTS_OF_TURN, *key, batch.turn_id)
            if batch.earlier and status == "DELETE 0":
                batch = batch.without_earlier()
        values = (batch.first, batch.last, pack(batch, decision.turns), now)
        await connection.execute(sql.PUT_EVENTS, *key, batch.turn_id, *values)


async def read(connection: Connection, ref: Ref, id: str) -> Turn:
    row = await connection.fetchrow(sql.ONE, *ref, id)
    if row is None:
        raise NotFound(f"no turn {id!r} in conversation {ref.id!r}")
    return turn_from_row(row)


async def forget(connection: Connection, owner: str, numbers: Sequence[int], reached: dict[str, int]) -> None:
    """Destroy the turns of conversations."""
    await _forget_events(connection, owner, numbers, reached)
    status = await connection.execute(sql.DELETE_TURNS_OF, owner, numbers)
    reached["turns"] = int(status.rpartition(" ")[2])


async def _forget_events(connection: Connection, owner: str, numbers: Sequence[int], reached: dict[str, int]) -> None:
    await connection.execute(sql.LOCK_TURNS_OF, owner, numbers)
    status = await connection.execute(sql.DELETE_EVENTS_OF, owner, numbers)
    reached["run_events"] = int(status.rpartition(" ")[2])


async def forget_message(
    connection: Connection,
    owner: str,
    numbers: Sequence[int],
    message: str,
    texts: Sequence[str],
    reached: dict[str, int],
) -> None:
    """Destroy what turns hold of a message."""
    await _forget_events(connection, owner, numbers, reached)
    reached["turns"] = 0
    for row in await connection.fetch(sql.ALL_OF, owner, numbers):
        turn = turn_from_row(tuple(row)[1:])
        is_question = turn.question is not None and turn.question_id == message
        cleaned = without(turn, texts) or (turn if is_question else None)
        if cleaned is not None:
            question = None if is_question else cleaned.question
            await connection.execute(sql.PUT, owner, row[0], *turn_values(replace(cleaned, question=question)))
            reached["turns"] += 1
