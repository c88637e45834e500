"""The events of a run for a reader that comes later: live where the run is in this process, else from the store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress

from everthread.conversation import Conversation
from everthread.core.errors import NotFound
from everthread.core.nouns import Ref
from everthread.core.turn_events import Done, TurnEvent
from everthread.runs.event_log import BATCH_EVENTS
from everthread.runs.leases import POLL_SECONDS, Leases, LiveRun


async def follow(
    conversation: Conversation, run_id: str, *, leases: Leases, after: int = 0
) -> AsyncIterator[TurnEvent]:
    """Every event after a number, to the run's end."""
    if (live := _live_run(conversation, run_id, leases)) is not None:
        async for event in live.listen(after):
            yield event
        return
    async for batch in _stored_batches(conversation, run_id, after):
        for event in batch:
            yield event


def follow_batches(
    conversation: Conversation, run_id: str, *, leases: Leases, after: int = 0, pause_seconds: float = 0.0
) -> AsyncIterator[Sequence[TurnEvent]]:
    """The same as emitted, in batches of whatever is ready, with a pause between two batches of a live run."""
    live = _live_run(conversation, run_id, leases)
    return _stored_batches(conversation, run_id, after) if live is None else live.batches(after, pause_seconds)


def _live_run(conversation: Conversation, run_id: str, leases: Leases) -> LiveRun | None:
    live = leases.live.get(run_id)
    # An id alone would let one owner listen to another's run.
    return live if live is not None and Ref(conversation.owner, conversation.id) == live.ref else None


async def _stored_batches(conversation: Conversation, run_id: str, after: int) -> AsyncIterator[Sequence[TurnEvent]]:
    """The events of a run that has ended, or runs in another process: polled until its row is final."""
    while True:
        turn = await conversation.turn(run_id)  # before its events: those of a final row are complete
        batch: list[TurnEvent] = []
        async for event in conversation.turn_events(run_id, after=after):
            batch.append(event)
            if len(batch) == BATCH_EVENTS:
                yield batch
                after, batch = batch[-1].number, []
        if batch:
            yield batch
            after = batch[-1].number
        if turn.state.is_final:
            break
        await asyncio.sleep(POLL_SECONDS)
    if not after:  # its events were pruned, or went with an erase: what is left is the answer
        text = ""
        with suppress(NotFound):
            text = (await conversation.message(turn.answer_id)).text
        yield [Done(number=1, state=turn.state.value, answer_id=turn.answer_id, text=text, usage=turn.usage)]
