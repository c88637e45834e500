"""Closing the runs of processes that died: what they had said is kept, and nothing is done a second time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

from everthread.core.errors import Invalid, TurnLost
from everthread.core.nouns import Message, Ref
from everthread.core.turns import MESSAGE_KEY, StoredEvent, Turn, TurnState, input_messages
from everthread.history.ingest import Prepared, prepare_all
from everthread.history.turn_events import read_events
from everthread.history.turn_intents import CloseTurn, TakeTurn
from everthread.runtime import Runtime


async def close_run(
    runtime: Runtime,
    ref: Ref,
    turn: Turn,
    *,
    holder: str,
    lease_until: datetime,
    before_closing: Callable[[Ref, Turn], Awaitable[None]] | None = None,
) -> Turn | None:
    """Close one run; None when its holder has given a sign of life, or somebody else closed it.

    It is taken over first: from then on its process, which may only have been slow, can store no more events, and those
    that are read here are all there will be.
    """
    taken = await runtime.write(ref, TakeTurn(turn=turn, holder=holder, lease_until=lease_until))
    if taken is None:
        return None
    if before_closing is not None:
        await before_closing(ref, taken)
    if taken.is_graph_run:
        kept = CloseTurn(turn=taken, messages=await unlogged_input(runtime, ref, taken))
    else:
        kept = await _close_agent_turn(runtime, ref, taken)
    try:
        return await runtime.write(ref, kept)
    except TurnLost:  # another process took it over meanwhile
        return None


async def _close_agent_turn(runtime: Runtime, ref: Ref, turn: Turn) -> CloseTurn:
    """The intent that logs what was streamed and is not in the log yet. Of a message that calls tools the log may
    have more than the stream; the rest of it is streamed now."""
    events = [event async for page in read_events(runtime.store, ref, turn.id) for event in page]
    texts = texts_by_message(events)
    logged = {entry.id: entry for entry in await runtime.store.log.find(ref, ids=list(texts))} if texts else {}
    unlogged = [
        partial_message(id, text, turn.id, TurnState.INTERRUPTED) for id, text in texts.items() if id not in logged
    ]
    unstreamed = {}
    for id, entry in logged.items():
        whole, streamed = Message(entry).text, texts[id]
        if whole != streamed and whole.startswith(streamed):
            unstreamed[id] = whole.removeprefix(streamed)
            texts[id] = whole
    answer_id, text = next(reversed(texts.items()), (None, ""))
    return CloseTurn(turn=turn, messages=prepare_all(unlogged), unstreamed=unstreamed, answer_id=answer_id, text=text)


async def unlogged_input(runtime: Runtime, ref: Ref, turn: Turn) -> Sequence[Prepared]:
    """The messages of a graph's input that are not in the log, because no checkpoint brought them there."""
    given = {message["id"]: message for message in input_messages(turn)}
    logged = {entry.id for entry in await runtime.store.log.find(ref, ids=list(given))} if given else set()
    unlogged: list[Prepared] = []
    for id, message in given.items():
        with suppress(Invalid):  # then no checkpoint could have brought it there either
            unlogged += [] if id in logged else prepare_all([message])
    return unlogged


def texts_by_message(events: Sequence[StoredEvent]) -> dict[str, str]:
    """The text of each message joined from its tokens, in the order the messages began."""
    pieces: dict[str, list[str]] = {}
    for event in events:
        if event.kind == "token":
            pieces.setdefault(event.body["message_id"], []).append(event.body["text"])
    return {id: "".join(texts) for id, texts in pieces.items()}


def partial_message(id: str, text: str, turn_id: str, state: TurnState) -> dict[str, Any]:
    """The beginning of an answer, marked as incomplete."""
    about = {"turn_id": turn_id, "state": state.value}
    return {"type": "ai", "id": id, "content": text, "additional_kwargs": {MESSAGE_KEY: about}}
