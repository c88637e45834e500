"""Turns whose process was killed: closed at the next start, with what they had said, and never run again."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

import everthread
from everthread import Everthread, TurnState
from everthread.core.clock import system_clock
from everthread.core.errors import TurnRunning
from everthread.core.ids import LOCAL
from everthread.core.nouns import Ref
from everthread.core.turn_events import Done, Token, to_stored
from everthread.core.turns import RESERVED_EVENTS, EventBatch, Turn
from everthread.history.ingest import prepare_all
from everthread.history.turn_intents import AppendToTurn, BeginTurn
from everthread.runs.engine import LiveRun, RunEngine
from everthread.runs.event_log import TurnCodec
from everthread.runs.holder import holder_is_dead, holder_name
from everthread.testing.scripted import Reply, ScriptedModel
from everthread.turn import Agent, begin_turn
from tests.forkserver import ROOT, ForkServer
from tests.turn.killed_process import LONG
from tests.turn.turns import agent_for, only, said, told


def killed(forkserver: ForkServer, url: str, conversation: str, question: str, where: str) -> None:
    """Run a turn in a process of its own, and kill it."""
    command = ("-m", "tests.turn.killed_process", url, conversation, question, where)
    needs = ["tests.turn.killed_process"]
    with forkserver.talking_program(*command, folder=ROOT, env=os.environ, needs=needs) as (_, written):
        assert written.readline() == "now\n"


async def opened_and_killed(forkserver: ForkServer, url: str, where: str) -> str:
    async with everthread.open(url, worker=False) as et:
        conv = await et.conversations.create()
    await asyncio.to_thread(killed, forkserver, url, conv.id, "tell me", where)
    return conv.id


async def test_i16_killed_in_mid_answer_the_text_until_there_is_kept(forkserver: ForkServer, durable_url: str) -> None:
    id = await opened_and_killed(forkserver, durable_url, "answer")
    async with everthread.open(durable_url, worker=False) as et:
        conv = await et.conversations.get(id)
        (turn,) = await conv.turns()
        assert turn.state is TurnState.RUNNING
        assert await said(conv) == [("user", "tell me")]
        agent = agent_for(et)
        assert [closed.id for closed in await agent.close_dead()] == [turn.id]
        assert await agent.close_dead() == []
        turn = await conv.turn(turn.id)
        assert (turn.state, turn.error) == (TurnState.INTERRUPTED, "the process that ran this turn died")
        (_, (role, text)) = await said(conv)
        assert role == "assistant"
        assert len(text) > 20
        assert LONG.startswith(text)
        assert (await conv.tail(1))[0].id == turn.answer_id
        await told(conv, "go on", agent)
        assert [role for role, _ in await said(conv)] == ["user", "assistant", "user", "assistant"]
        assert (await et.verify()).ok


async def test_i16_killed_in_mid_tool_the_call_is_kept_and_the_next_request_is_valid(
    forkserver: ForkServer, durable_url: str
) -> None:
    id = await opened_and_killed(forkserver, durable_url, "tool")
    async with everthread.open(durable_url, worker=False) as et:
        conv = await et.conversations.get(id)
        agent = agent_for(et)
        await agent.close_dead()
        assert await said(conv) == [("user", "tell me"), ("assistant", "I will look.")]
        model = ScriptedModel(["Where were we?"])
        await told(conv, "go on", agent, model=model)
        kinds = [message.type for message in model.requests[0].messages]
        assert kinds == ["system", "human", "ai", "tool", "human"], "the call that nobody answered has a result"
        assert "interrupted" in model.requests[0].messages[3].text


async def test_a_turn_that_waits_behind_a_dead_one_closes_it(forkserver: ForkServer, durable_url: str) -> None:
    id = await opened_and_killed(forkserver, durable_url, "answer")
    async with everthread.open(durable_url, worker=False) as et:
        conv = await et.conversations.get(id)
        async with asyncio.timeout(60):
            events = await told(conv, "go on", agent_for(et))
        assert only(events, Done).state == "complete"
        assert [turn.state for turn in await conv.turns()] == [TurnState.COMPLETE, TurnState.INTERRUPTED]


async def test_i16_a_process_that_only_slept_loses_its_turn_and_writes_nothing_more(url: str) -> None:
    async with everthread.open(url, worker=False) as et:
        conv = await et.conversations.create()
        agent = agent_for(et)
        other = as_in_another_process(agent)
        live = await begin_turn(conv, "go", agent=agent, model=ScriptedModel([Reply(text=LONG, pace_seconds=0.002)]))
        async for event in live.event_log.listen():
            if isinstance(event, Token):
                break
        await expire(et)
        assert [turn.id for turn in await other.close_dead()] == [live.id]
        live.stop()
        await live.wait()
        assert (await conv.turn(live.id)).state is TurnState.INTERRUPTED
        before = await said(conv)
        await told(conv, "next", other)
        assert (await said(conv))[: len(before)] == before


async def test_i40_a_server_closes_what_dies_beside_it(et: Everthread) -> None:
    conv = await et.conversations.create()
    agent = agent_for(et)
    other = as_in_another_process(agent)
    other.runs.open()
    live = await begin_turn(conv, "go", agent=agent, model=ScriptedModel([Reply(text="late", delay_seconds=60)]))
    for _ in range(500):
        await expire(et)
        if (await conv.turn(live.id)).state.is_final:
            break
        await asyncio.sleep(0.02)
    assert (await conv.turn(live.id)).state is TurnState.INTERRUPTED
    events = [event async for event in live.event_log.listen()]
    assert only(events, Done).state == "interrupted", "its readers here get the end that the other one wrote"
    await other.runs.close(0)
    live.stop()
    await live.wait()


async def test_what_the_log_has_of_a_message_and_its_stream_has_not_is_streamed_at_the_end(et: Everthread) -> None:
    """A message that calls tools is logged when it is whole, which may be before its last tokens are stored."""
    conv = await et.conversations.create()
    ref = Ref(LOCAL, conv.id)
    turn = Turn(
        id="dead",
        conversation_id=conv.id,
        state=TurnState.RECEIVED,
        question_id="q",
        answer_id="a",
        received_at=datetime.now(UTC),
        holder="gone",
        lease_until=datetime.now(UTC) - timedelta(seconds=1),
    )
    question = prepare_all([{"role": "user", "content": "go", "id": "q"}])
    await et.runtime.write(ref, BeginTurn(turn=turn, messages=question))
    said_in_time = [to_stored(Token(2, "I will", "first"))]
    await et.store.turns.add_events("gone", [(ref, EventBatch(turn_id="dead", events=said_in_time))])
    whole = prepare_all([{"type": "ai", "content": "I will look.", "id": "first", "tool_calls": []}])
    await et.runtime.write(ref, AppendToTurn(turn_id="dead", holder="gone", messages=whole))
    agent = agent_for(et)
    await agent.close_dead()
    events = [event async for batch in et.runs.follow(ref, "dead", TurnCodec, after=2) for event in batch]
    first = RESERVED_EVENTS + 1
    assert events == [
        Token(first, " look.", "first"),
        Done(number=first + 1, state="interrupted", answer_id="first", text="I will look.", usage={}),
    ]


async def test_whoever_follows_a_turn_whose_process_dies_gets_its_end(forkserver: ForkServer, durable_url: str) -> None:
    """Also in a program that runs nothing itself, with no server beside it."""
    id = await opened_and_killed(forkserver, durable_url, "answer")
    async with everthread.open(durable_url, worker=False) as et, asyncio.timeout(60):
        (turn,) = await (await et.conversations.get(id)).turns()
        follower = et.runs.follow(Ref(LOCAL, id), turn.id, TurnCodec)
        events = [event async for batch in follower for event in batch]
        assert only(events, Done).state == "interrupted"


def as_in_another_process(agent: Agent) -> Agent:
    return replace(agent, runs=RunEngine(agent.et.runtime, system_clock, heartbeat_seconds=0.02))


async def expire(et: Everthread) -> None:
    """As if every process had been silent for longer than its lease."""
    for _, turn in await et.store.turns.unfinished():
        await et.store.turns.renew(turn.holder, datetime.now(UTC) - timedelta(seconds=1))


async def test_who_is_dead_is_told_by_the_process_and_else_by_the_lease(et: Everthread) -> None:
    conv = await et.conversations.create()
    agent = agent_for(et)
    live = await begin_turn(conv, "go", agent=agent, model=ScriptedModel([Reply(text="x", delay_seconds=5)]))
    turn, now = await conv.turn(live.id), datetime.now(UTC)
    live.stop()
    await live.wait()
    machine, pid, born, nonce = turn.holder.split("|")
    assert not holder_is_dead(turn, now)
    assert holder_is_dead(turn, now + timedelta(hours=1))
    assert holder_is_dead(replace(turn, holder=f"{machine}|{2**22 + 1}|{born}|{nonce}"), now), "no such process"
    assert holder_is_dead(replace(turn, holder=f"{machine}|{pid}|1{born}|{nonce}"), now), "another one by that number"
    assert not holder_is_dead(replace(turn, holder=f"elsewhere|{2**22 + 1}|{born}|{nonce}"), now), (
        "cannot be looked for"
    )


@pytest.mark.parametrize(("own", "others"), [(-1, 0), (0, 1)])
async def test_a_clock_that_is_wrong_by_an_hour_makes_nobody_dead(et: Everthread, own: int, others: int) -> None:
    """Leases go by the clock of the database: machines do not agree on the time."""

    def agent_an_hour_off(hours: int) -> Agent:
        return replace(agent_for(et), runs=RunEngine(et.runtime, lambda: system_clock() + timedelta(hours=hours), 0.02))

    conv = await et.conversations.create()
    agent = agent_an_hour_off(own)
    live = await begin_turn(conv, "go", agent=agent, model=ScriptedModel([Reply(text="x", delay_seconds=5)]))
    assert await agent_an_hour_off(others).close_dead() == []
    async with asyncio.timeout(20):
        begun_with = (await conv.turn(live.id)).lease_until
        while (await conv.turn(live.id)).lease_until == begun_with:  # noqa: ASYNC110 - renewed by another task
            await asyncio.sleep(0.02)
    assert await agent_an_hour_off(others).close_dead() == []
    live.stop()
    await live.wait()


@pytest.mark.parametrize("count", [1, 3])
def test_two_engines_of_one_process_have_names_of_their_own(count: int) -> None:
    names = {holder_name() for _ in range(count)}
    assert len(names) == count


async def test_a_turn_that_is_begun_twice_at_once_runs_once(et: Everthread) -> None:
    conv = await et.conversations.create()
    agent = agent_for(et)
    model = ScriptedModel([Reply(text="one"), Reply(text="two")])
    begun = await asyncio.gather(
        *(begin_turn(conv, "go", agent=agent, model=model, turn_id="same") for _ in range(5)), return_exceptions=True
    )
    live = {one for one in begun if isinstance(one, LiveRun)}
    assert len(live) == 1
    assert all(isinstance(one, LiveRun | TurnRunning) for one in begun)
    await live.pop().wait()
    assert await said(conv) == [("user", "go"), ("assistant", "one")]
