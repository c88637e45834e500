"""What a turn tells, for whoever comes later: live where it runs in this process, else from its stored events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress

from everthread.conversation import Conversation
from everthread.core.errors import NotFound
from everthread.core.nouns import Ref
from everthread.core.turn_events import Done, TurnEvent
from everthread.core.turns import Turn
from everthread.turn.agent import Agent
from everthread.turn.live import LiveTurn
from everthread.turn.presence import POLL_SECONDS
from everthread.turn.telling import MOST_EVENTS


async def follow(conversation: Conversation, turn_id: str, *, agent: Agent, after: int = 0) -> AsyncIterator[TurnEvent]:
    """What a turn tells, from the event after a number on: live where it runs here, else as it is stored."""
    if (live := _live(conversation, turn_id, agent)) is not None:
        async for event in live.listen(after):
            yield event
        return
    async for batch in _as_stored(conversation, turn_id, after):
        for event in batch:
            yield event


def follow_batches(
    conversation: Conversation, turn_id: str, *, agent: Agent, after: int = 0, pause_seconds: float = 0.0
) -> AsyncIterator[Sequence[TurnEvent]]:
    """The same, every event as it was told: as many at a time as lie ready, and the next after a pause."""
    live = _live(conversation, turn_id, agent)
    return _as_stored(conversation, turn_id, after) if live is None else live.batches(after, pause_seconds)


def _live(conversation: Conversation, turn_id: str, agent: Agent) -> LiveTurn | None:
    live = agent.presence.live.get(turn_id)
    return live if live is not None and Ref(conversation.owner, conversation.id) == live.ref else None


async def _as_stored(conversation: Conversation, turn_id: str, after: int) -> AsyncIterator[Sequence[TurnEvent]]:
    """What a turn told that runs elsewhere, or has ended."""
    while True:
        turn = await conversation.turn(turn_id)
        async for batch in _batched(conversation.turn_events(turn_id, after=after)):
            yield batch
            after = batch[-1].number
        if turn.state.is_final:
            break
        await asyncio.sleep(POLL_SECONDS)
    if not after:  # its events are pruned, or went with an erase
        yield [await _snapshot(conversation, turn)]


async def _batched(events: AsyncIterator[TurnEvent]) -> AsyncIterator[Sequence[TurnEvent]]:
    batch: list[TurnEvent] = []
    async for event in events:
        batch.append(event)
        if len(batch) == MOST_EVENTS:
            yield batch
            batch = []
    if batch:
        yield batch


async def _snapshot(conversation: Conversation, turn: Turn) -> Done:
    """What is left to tell of a turn whose events are gone."""
    text = ""
    with suppress(NotFound):
        text = (await conversation.message(turn.answer_id)).text
    return Done(number=1, state=turn.state.value, answer_id=turn.answer_id, text=text, usage=turn.usage)
