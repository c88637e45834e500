"""Closing the turns of processes that died: what they had told is kept, and nothing is done a second time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from typing import Any

from everthread.core.clock import Clock
from everthread.core.nouns import Ref
from everthread.core.ports import Store
from everthread.core.turns import DAYS_OF_EVENTS, KeptEvent, Turn, TurnState
from everthread.history import turning
from everthread.history.ingest import prepare_all
from everthread.turn.presence import is_dead
from everthread.turn.results import KEY

_PAGE = 10_000


async def close_dead(store: Store, clock: Clock, *, first_look: int = 0) -> list[Turn]:
    """Every turn whose process died, of whichever owner, becomes interrupted; gives them. Old events go, too."""
    closed = []
    for ref, turn in await store.unfinished_turns():
        if is_dead(turn, clock()):
            closed.append(await close(store, ref, turn, first_look=first_look))
    await store.prune_events(clock() - timedelta(days=DAYS_OF_EVENTS))
    return [turn for turn in closed if turn is not None]


async def close(store: Store, ref: Ref, turn: Turn, *, first_look: int = 0) -> Turn | None:
    """One of them; None when it gave a sign of life meanwhile."""
    partial = prepare_all(await _unfinished(store, ref, turn))
    return await store.write(ref, turning.CloseTurn(turn=turn, messages=partial, first_look=first_look))


async def _unfinished(store: Store, ref: Ref, turn: Turn) -> list[dict[str, Any]]:
    """What it was saying when it died: texts it told that are in no message of the log."""
    if turn.state is not TurnState.RUNNING:
        return []
    told = texts_by_message([event async for event in _all_events(store, ref, turn.id)])
    logged = {entry.id for entry in await store.find(ref, ids=list(told))} if told else set()
    return [partial_message(id, text, turn.id, TurnState.INTERRUPTED) for id, text in told.items() if id not in logged]


async def _all_events(store: Store, ref: Ref, id: str) -> AsyncIterator[KeptEvent]:
    after = 0
    while page := await store.turn_events(ref, id, after=after, limit=_PAGE):
        for event in page:
            yield event
        after = page[-1].number


def texts_by_message(events: Sequence[KeptEvent]) -> dict[str, str]:
    """The pieces of each message put together, in the order the messages were begun."""
    pieces: dict[str, list[str]] = {}
    for event in events:
        if event.kind == "token":
            pieces.setdefault(event.body["message_id"], []).append(event.body["text"])
    return {id: "".join(texts) for id, texts in pieces.items()}


def partial_message(id: str, text: str, turn_id: str, state: TurnState) -> dict[str, Any]:
    """What there is of an answer, marked as such."""
    kept = {"turn_id": turn_id, "state": state.value}
    return {"type": "ai", "id": id, "content": text, "additional_kwargs": {KEY: kept}}
