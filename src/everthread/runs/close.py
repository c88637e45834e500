"""Closing the runs of processes that died: what they had said is kept, and nothing is done a second time."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

from everthread.core.errors import TurnLost
from everthread.core.nouns import Ref
from everthread.core.turns import MESSAGE_KEY, StoredEvent, Turn, TurnState
from everthread.history.ingest import prepare_all
from everthread.history.turn_events import read_events
from everthread.history.turn_intents import CloseTurn, TakeTurn
from everthread.runs.delta_codec import DeltaCodec, MissingBase
from everthread.runtime import Runtime

_STATE_KINDS = ("values", "2/values")
"""The events of version 1 and 2 of the protocol that hold the whole state of a graph."""


async def close_run(runtime: Runtime, ref: Ref, turn: Turn, *, holder: str, lease_until: datetime) -> Turn | None:
    """Close one run; None when its holder has given a sign of life, or somebody else closed it.

    It is taken over first: from then on its process, which may only have been slow, can store no more events, and those
    that are read here are all there will be.
    """
    taken = await runtime.write(ref, TakeTurn(turn=turn, holder=holder, lease_until=lease_until))
    if taken is None:
        return None
    events = [event async for page in read_events(runtime.store, ref, taken.id) for event in page]
    texts = {} if taken.is_graph_run else texts_by_message(events)
    messages = {id: partial_message(id, text, taken.id, TurnState.INTERRUPTED) for id, text in texts.items()}
    if taken.is_graph_run:
        messages = messages_in_state(events)
    logged = {entry.id for entry in await runtime.store.log.find(ref, ids=list(messages))} if messages else set()
    unlogged = [message for id, message in messages.items() if id not in logged]
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


def messages_in_state(events: Sequence[StoredEvent]) -> dict[str, dict[str, Any]]:
    """The messages in the newest state that a graph streamed, by id. A graph writes its checkpoints in the background,
    so a client may have seen a message that was in none yet when the process died."""
    codec = DeltaCodec()
    state: Any = None
    for event in events:
        with suppress(MissingBase):
            data = codec.decode(event.kind, event.body)
            if event.kind in _STATE_KINDS:
                state = data
    messages = state.get("messages") if isinstance(state, dict) else None
    return {
        message["id"]: message
        for message in (messages if isinstance(messages, list) else ())
        if isinstance(message, dict) and isinstance(message.get("id"), str) and isinstance(message.get("type"), str)
    }


def partial_message(id: str, text: str, turn_id: str, state: TurnState) -> dict[str, Any]:
    """As much as there is of an answer, marked as such."""
    about = {"turn_id": turn_id, "state": state.value}
    return {"type": "ai", "id": id, "content": text, "additional_kwargs": {MESSAGE_KEY: about}}
