"""What the engine does besides running: pruning, giving up, and being told by others."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from langchain_core.tools import tool

from everthread import Conversation, Everthread, TurnState
from everthread.core.clock import system_clock
from everthread.core.nouns import Ref
from everthread.runs.engine import RunEngine
from everthread.testing.scripted import Reply, ScriptedModel
from everthread.turn import begin_turn
from tests.turn.turns import agent_for, said, told


async def test_a_server_prunes_events_that_are_older_than_they_are_kept(et: Everthread, conv: Conversation) -> None:
    await told(conv, "long ago", agent_for(et))
    (turn,) = await conv.turns()
    today = RunEngine(et.runtime, system_clock, heartbeat_seconds=0.01)
    later = RunEngine(et.runtime, lambda: system_clock() + timedelta(days=30), heartbeat_seconds=0.01)
    today.open()
    await asyncio.sleep(0.1)
    await today.close(0)
    assert [event.kind async for event in conv.turn_events(turn.id)][-1] == "done"
    later.open()
    async with asyncio.timeout(20):
        while [event async for event in conv.turn_events(turn.id)]:  # noqa: ASYNC110 - it is done in another task
            await asyncio.sleep(0.01)
    await later.close(0)
    assert await said(conv) == [("user", "long ago"), ("assistant", "long ago")], "the messages stay"


async def test_what_runs_when_the_database_is_closed_is_interrupted_with_what_it_said(
    et: Everthread, conv: Conversation
) -> None:
    model = ScriptedModel([Reply(text="one two three four", pace_seconds=0.2)])
    agent = agent_for(et)
    live = await begin_turn(conv, "count", agent=agent, model=model)
    async for event in live.event_log.listen():
        if event.kind == "token":
            break
    await et.runs.close(0)
    turn = await conv.turn(live.id)
    assert turn.state is TurnState.INTERRUPTED
    assert [event.kind async for event in conv.turn_events(turn.id)][-1] == "done"
    assert (await said(conv))[1][1].startswith("one")


async def test_a_cancellation_from_inside_is_a_failure_and_no_stop(et: Everthread, conv: Conversation) -> None:
    """A client library may give up on itself with a CancelledError; nobody has stopped the turn."""

    @tool
    async def give_up() -> str:
        """Give up."""
        raise asyncio.CancelledError

    model = ScriptedModel([Reply(calls=[("give_up", {})]), "never"])
    agent = agent_for(et, tools=[give_up])
    live = await begin_turn(conv, "go", agent=agent, model=model)
    turn = await agent.runs.wait_for_end(Ref(conv.owner, conv.id), live.id)
    assert turn.state is TurnState.FAILED
