"""Closing the runs of processes that died: what they had said is kept, and nothing is done a second time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from everthread.core.clock import Clock
from everthread.core.nouns import Ref
from everthread.core.ports import Store
from everthread.core.turns import EVENT_RETENTION_DAYS, MESSAGE_KEY, StoredEvent, Turn, TurnState
from everthread.history.ingest import prepare_all
from everthread.history.turn_intents import CloseTurn
from everthread.runs.leases import is_dead
from everthread.runtime import Runtime

_EVENTS_PER_READ = 10_000


async def close_dead_runs(runtime: Runtime, clock: Clock) -> list[Turn]:
    """Mark the runs of dead processes, whoever owns them, as interrupted, and return them. Old events are pruned."""
    closed = []
    for ref, turn in await runtime.store.turns.unfinished():
        if is_dead(turn, clock()):
            closed.append(await close_run(runtime, ref, turn))
    await runtime.store.turns.prune_events(clock() - timedelta(days=EVENT_RETENTION_DAYS))
    return [turn for turn in closed if turn is not None]


async def close_run(runtime: Runtime, ref: Ref, turn: Turn) -> Turn | None:
    """Close one run; None when its holder has given a sign of life meanwhile."""
    messages = prepare_all(await _unlogged_messages(runtime.store, ref, turn))
    return await runtime.write(ref, CloseTurn(turn=turn, messages=messages))


async def _unlogged_messages(store: Store, ref: Ref, turn: Turn) -> list[dict[str, Any]]:
    """What the run was saying when it died: the texts in its events that no message of the log has."""
    if turn.state is not TurnState.RUNNING:
        return []
    events: list[StoredEvent] = []
    while page := await store.turns.events(
        ref, turn.id, after=events[-1].number if events else 0, limit=_EVENTS_PER_READ
    ):
        events += page
    texts = texts_by_message(events)
    logged = {entry.id for entry in await store.log.find(ref, ids=list(texts))} if texts else set()
    return [partial_message(id, text, turn.id, TurnState.INTERRUPTED) for id, text in texts.items() if id not in logged]


def texts_by_message(events: Sequence[StoredEvent]) -> dict[str, str]:
    """The text of each message joined from its tokens, in the order the messages began."""
    pieces: dict[str, list[str]] = {}
    for event in events:
        if event.kind == "token":
            pieces.setdefault(event.body["message_id"], []).append(event.body["text"])
    return {id: "".join(texts) for id, texts in pieces.items()}


def partial_message(id: str, text: str, turn_id: str, state: TurnState) -> dict[str, Any]:
    """As much as there is of an answer, marked as such."""
    about = {"turn_id": turn_id, "state": state.value}
    return {"type": "ai", "id": id, "content": text, "additional_kwargs": {MESSAGE_KEY: about}}
