"""Closing the runs of processes that died: what they had said is kept, and nothing is done a second time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from everthread.core.errors import TurnLost
from everthread.core.nouns import Ref
from everthread.core.turns import MESSAGE_KEY, StoredEvent, Turn, TurnState
from everthread.history.ingest import prepare_all
from everthread.history.turn_events import read_events
from everthread.history.turn_intents import CloseTurn, TakeTurn
from everthread.runtime import Runtime


async def close_run(runtime: Runtime, ref: Ref, turn: Turn, *, holder: str, lease_until: datetime) -> Turn | None:
    """Close one run; None when its holder has given a sign of life, or somebody else closed it.

    It is taken over first: from then on its process, which may only have been slow, can store no more events, and those
    that are read here are all there will be.
    """
    taken = await runtime.write(ref, TakeTurn(turn=turn, holder=holder, lease_until=lease_until))
    if taken is None:
        return None
    texts: dict[str, str] = {}
    if not taken.is_graph_run:
        events = [event async for page in read_events(runtime.store, ref, taken.id) for event in page]
        texts = texts_by_message(events)
    logged = {entry.id for entry in await runtime.store.log.find(ref, ids=list(texts))} if texts else set()
    unlogged = [
        partial_message(id, text, taken.id, TurnState.INTERRUPTED) for id, text in texts.items() if id not in logged
    ]
    answer_id, text = next(reversed(texts.items()), (None, ""))
    try:
        return await runtime.write(
            ref, CloseTurn(turn=taken, messages=prepare_all(unlogged), answer_id=answer_id, text=text)
        )
    except TurnLost:  # somebody else took it in turn
        return None


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
