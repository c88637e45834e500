"""Turns in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

from everthread.adapters.stores.change_signals import ChangeSignals
from everthread.adapters.stores.in_memory.rows import InMemoryDatabase
from everthread.adapters.stores.turn_rows import without
from everthread.core.clock import system_clock
from everthread.core.errors import NotFound
from everthread.core.log import Decision
from everthread.core.nouns import Ref
from everthread.core.turns import Change, EventBatch, HeldTurn, StoredEvent, Turn, TurnNeeds, TurnQuery


class InMemoryTurns:
    """`store.turns` of core/ports.py: the turns of all conversations, in the order they came."""

    def __init__(self, database: InMemoryDatabase) -> None:
        self._database = database
        self._turns: dict[tuple[Ref, str], Turn] = {}
        self._events: dict[tuple[Ref, str], dict[int, tuple[EventBatch, datetime]]] = {}
        self._given = 0
        self._signals = ChangeSignals()

    def look(self, ref: Ref, needs: TurnNeeds) -> Sequence[Turn]:
        """Read the turns that an intent needs."""
        mine = (turn for (whose, _), turn in self._turns.items() if whose == ref)
        return [turn for turn in mine if not turn.state.is_final or turn.id == needs.id]

    def apply(self, ref: Ref, decision: Decision[object], now: datetime) -> None:
        """Write what an intent decided."""
        for turn in decision.turns:
            known = self._turns.get((ref, turn.id))
            if known is None:
                self._given += 1
            self._turns[ref, turn.id] = replace(turn, number=known.number if known else self._given)
        for batch in decision.events:
            if batch.replaces_earlier and not self._events.pop((ref, batch.turn_id), None) and batch.earlier:
                batch = batch.without_earlier()
            self._put(ref, batch, now)
        if decision.turns:
            self._signals.publish(ref, is_state=True)

    def _put(self, ref: Ref, batch: EventBatch, now: datetime) -> None:
        self._events.setdefault((ref, batch.turn_id), {}).setdefault(batch.first, (batch, now))

    async def get(self, ref: Ref, id: str) -> Turn:
        try:
            return self._turns[ref, id]
        except KeyError:
            raise NotFound(f"no turn {id!r} in conversation {ref.id!r}") from None

    async def list(self, query: TurnQuery) -> Sequence[Turn]:
        found = [
            turn
            for (ref, _), turn in reversed(self._turns.items())
            if ref.owner == query.owner
            and query.conversation in (None, ref.id)
            and (not query.states or turn.state in query.states)
            and (query.before is None or turn.number < query.before)
        ]
        return found[: query.limit]

    async def now(self) -> datetime:
        return system_clock()

    async def unfinished(self) -> Sequence[tuple[Ref, Turn]]:
        return [(ref, turn) for (ref, _), turn in self._turns.items() if not turn.state.is_final]

    async def renew(self, holder: str, until: datetime) -> Sequence[HeldTurn]:
        held = [(key, turn) for key, turn in self._turns.items() if turn.holder == holder and not turn.state.is_final]
        self._turns.update({key: replace(turn, lease_until=until) for key, turn in held})
        return [HeldTurn(*key, turn.is_asked_to_stop) for key, turn in held]

    async def add_events(self, holder: str, batches: Sequence[tuple[Ref, EventBatch]]) -> Sequence[str]:
        lost = []
        for ref, batch in batches:
            turn = self._turns.get((ref, batch.turn_id))
            if turn is None or turn.holder != holder:
                lost.append(batch.turn_id)
                continue
            self._put(ref, batch, self._database.clock())
            self._turns[ref, turn.id] = replace(turn, reserved_events=max(turn.reserved_events, batch.reserved))
            self._signals.publish(ref, is_state=False)
        return lost

    async def events(self, ref: Ref, id: str, *, after: int, limit: int) -> Sequence[StoredEvent]:
        await self.get(ref, id)
        found: list[StoredEvent] = []
        for _, (batch, _) in sorted(self._events.get((ref, id), {}).items()):
            found += [event for event in batch.events if event.number > after]
            if len(found) >= limit:
                break
        return found

    async def prune_events(self, before: datetime) -> int:
        old = [(key, first) for key, kept in self._events.items() for first, (_, at) in kept.items() if at < before]
        for key, first in old:
            del self._events[key][first]
        return len(old)

    def subscribe(self, ref: Ref, on_change: Callable[[Change], None]) -> Callable[[], None]:
        return self._signals.subscribe(ref, on_change)

    def forget(self, ref: Ref, message: str | None, texts: Sequence[str], reached: Counter[str]) -> None:
        """Destroy the turns of a conversation, or what they hold of a message."""
        for key in [key for key in self._events if key[0] == ref]:
            reached["run_events"] += len(self._events.pop(key))
        for key in [key for key in self._turns if key[0] == ref]:
            turn = self._turns[key]
            is_question = turn.question is not None and turn.question_id == message
            cleaned = without(turn, texts) or (turn if is_question else None)
            if message is None:
                del self._turns[key]
            elif cleaned is not None:
                self._turns[key] = replace(cleaned, question=None if is_question else cleaned.question)
            reached["turns"] += message is None or cleaned is not None
