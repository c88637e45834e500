"""Turns and their events in SQLite. Rows are written by intents (`apply`), like the log."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

from everthread.adapters.stores.layout import NEWEST
from everthread.adapters.stores.packed_events import pack, unpack
from everthread.adapters.stores.sqlite import turn_statements as sql
from everthread.adapters.stores.sqlite.engine import SqliteDatabase
from everthread.adapters.stores.turn_rows import STATES, turn_from_row, turn_values, without
from everthread.core.clock import system_clock, to_micros
from everthread.core.errors import NotFound
from everthread.core.log import Decision
from everthread.core.nouns import Ref
from everthread.core.turns import Change, EventBatch, HeldTurn, StoredEvent, Turn, TurnNeeds, TurnQuery


class SqliteTurns:
    """`store.turns` of core/ports.py."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database

    async def get(self, ref: Ref, id: str) -> Turn:
        return await self._database.engine.read(lambda c: read(c, ref, id))

    async def list(self, query: TurnQuery) -> Sequence[Turn]:
        def work(connection: sqlite3.Connection) -> Sequence[Turn]:
            values = {
                "owner": query.owner,
                "conversation": query.conversation,
                "before": NEWEST if query.before is None else query.before,
                "states": json.dumps([STATES.index(state) for state in query.states]),
                "limit": query.limit,
            }
            statement = sql.OF_OWNER if query.conversation is None else sql.OF_CONVERSATION
            return [turn_from_row(row) for row in connection.execute(statement, values)]

        return await self._database.engine.read(work)

    async def now(self) -> datetime:
        return system_clock()

    async def unfinished(self) -> Sequence[tuple[Ref, Turn]]:
        def work(connection: sqlite3.Connection) -> Sequence[tuple[Ref, Turn]]:
            found = [(row[0], turn_from_row(row[1:])) for row in connection.execute(sql.UNFINISHED)]
            return [(Ref(owner, turn.conversation_id), turn) for owner, turn in found]

        return await self._database.engine.read(work)

    async def renew(self, holder: str, until: datetime) -> Sequence[HeldTurn]:
        def work(connection: sqlite3.Connection) -> Sequence[HeldTurn]:
            connection.execute(sql.RENEW, (to_micros(until), holder))
            return [HeldTurn(Ref(*row[:2]), row[2], bool(row[3])) for row in connection.execute(sql.HELD_BY, (holder,))]

        return await self._database.engine.write(work)

    async def add_events(self, holder: str, batches: Sequence[tuple[Ref, EventBatch]]) -> Sequence[str]:
        now = self._database.now()

        def work(connection: sqlite3.Connection) -> Sequence[str]:
            lost = []
            for ref, batch in batches:
                turn = connection.execute(sql.HELD, (*ref, batch.turn_id, holder)).fetchone()
                if turn is None:
                    lost.append(batch.turn_id)
                    continue
                connection.execute(sql.ADD_EVENTS, (*turn, batch.first, batch.last, pack(batch), now))
                if batch.reserved:
                    connection.execute(sql.RESERVE, (batch.reserved, turn[1]))
            return lost

        engine = self._database.engine
        lost = await engine.write(work, is_synced=any(batch.reserved for _, batch in batches))
        for ref, _ in batches:
            engine.signals.publish(ref, is_state=False)
        return lost

    async def events(self, ref: Ref, id: str, *, after: int, limit: int) -> Sequence[StoredEvent]:
        def work(connection: sqlite3.Connection) -> Sequence[StoredEvent]:
            found: list[StoredEvent] = []
            turn = read(connection, ref, id)
            for row in connection.execute(sql.EVENTS, (turn.number, turn.number, after)):
                found += unpack(turn, [row], after)
                if len(found) >= limit:
                    break
            return found

        return await self._database.engine.read(work)

    async def prune_events(self, before: datetime) -> int:
        def work(connection: sqlite3.Connection) -> int:
            return connection.execute(sql.PRUNE_EVENTS, (to_micros(before),)).rowcount

        return await self._database.engine.write(work)

    def subscribe(self, ref: Ref, on_change: Callable[[Change], None]) -> Callable[[], None]:
        return self._database.engine.signals.subscribe(ref, on_change)


def look(connection: sqlite3.Connection, number: int, needs: TurnNeeds) -> list[Turn]:
    """Read the turns that an intent needs."""
    return [turn_from_row(row) for row in connection.execute(sql.SEEN, (number, needs.id))]


def apply(connection: sqlite3.Connection, number: int, decision: Decision[object], now: int) -> None:
    """Write what an intent decided about turns."""
    for turn in decision.turns:
        connection.execute(sql.PUT, (number, *turn_values(turn)))
    for batch in decision.events:
        if batch.replaces_earlier:
            deleted = connection.execute(sql.DELETE_EVENTS_OF_TURN, (number, batch.turn_id)).rowcount
            if batch.earlier and not deleted:
                batch = batch.without_earlier()
        connection.execute(
            sql.PUT_EVENTS, (batch.first, batch.last, pack(batch, decision.turns), now, number, batch.turn_id)
        )


def read(connection: sqlite3.Connection, ref: Ref, id: str) -> Turn:
    row = connection.execute(sql.ONE, (*ref, id)).fetchone()
    if row is None:
        raise NotFound(f"no turn {id!r} in conversation {ref.id!r}")
    return turn_from_row(row)


def forget(connection: sqlite3.Connection, number: int, reached: Counter[str]) -> None:
    """Destroy the turns of a conversation."""
    reached["run_events"] += connection.execute(sql.DELETE_EVENTS_OF, (number,)).rowcount
    reached["turns"] += connection.execute(sql.DELETE_TURNS_OF, (number,)).rowcount


def forget_message(
    connection: sqlite3.Connection, number: int, message: str, texts: Sequence[str], reached: Counter[str]
) -> None:
    """Destroy what turns hold of a message."""
    reached["run_events"] += connection.execute(sql.DELETE_EVENTS_OF, (number,)).rowcount
    for turn in [turn_from_row(row) for row in connection.execute(sql.ALL_OF, (number,))]:
        is_question = turn.question is not None and turn.question_id == message
        cleaned = without(turn, texts) or (turn if is_question else None)
        if cleaned is not None:
            question = None if is_question else cleaned.question
            connection.execute(sql.PUT, (number, *turn_values(replace(cleaned, question=question))))
            reached["turns"] += 1
