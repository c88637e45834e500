"""Sixty turns with tools, subagents, compactions and two kills: nothing lost, nothing doubled, every request valid."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Sequence

import pytest
from langchain_core.messages import BaseMessage

import everthread
from everthread import CompactionPolicy, Conversation, Everthread, Pace, TurnState
from everthread.context import find_violations
from everthread.core.turn_events import Done
from everthread.testing.scripted import Reply, ScriptedModel
from everthread.turn import Agent
from tests.forkserver import ForkServer
from tests.turn.killed_process import LONG
from tests.turn.test_dead_turns import killed
from tests.turn.turns import add, agent_for, only, told

POLICY = CompactionPolicy(max_message_history=40, keep_recent=10)
PACE = Pace(poll_seconds=0.2)
QUESTION = "Question {}: what is {} plus {}, and what became of order A-{}00?"


def script(messages: Sequence[BaseMessage]) -> Reply:
    """Every third turn adds with a tool, every tenth asks a subagent; the answer says the number of its question."""
    asked = next(message.text for message in reversed(messages) if message.type == "human")
    if asked.startswith("Task"):
        return Reply(text=f"done: {asked}")
    number = int(asked.split(":")[0].split()[-1])
    if messages[-1].type != "tool" and number % 10 == 0:
        return Reply(text="I will ask.", calls=[("call_subagent", {"task": f"Task {number}"})])
    if messages[-1].type != "tool" and number % 3 == 0:
        return Reply(calls=[("add", {"a": number, "b": number}), ("add", {"a": number, "b": 1})])
    return Reply(text=f"Answer {number}: order A-{number}00 left the depot on the {number}th. " * 3)


@pytest.mark.timeout(240)
async def test_i16_sixty_turns_with_two_kills_lose_nothing_and_double_nothing(
    forkserver: ForkServer, durable_url: str
) -> None:
    async with everthread.open(durable_url, compaction=POLICY, worker=PACE) as et:
        conv = await et.conversations.create(id="long")
        agent = agent_for(et, tools=[add])
        await turns(conv, agent, range(1, 21))
        await settled(et)
    await asyncio.to_thread(killed, forkserver, durable_url, "long", asked(21), "answer")
    async with everthread.open(durable_url, compaction=POLICY, worker=PACE) as et:
        conv, agent = await et.conversations.get("long"), agent_for(et, tools=[add])
        assert len(await agent.close_dead()) == 1
        await turns(conv, agent, range(22, 41))
        await settled(et)
    await asyncio.to_thread(killed, forkserver, durable_url, "long", asked(41), "tool")
    async with everthread.open(durable_url, compaction=POLICY, worker=PACE) as et:
        conv, agent = await et.conversations.get("long"), agent_for(et, tools=[add])
        assert len(await agent.close_dead()) == 1
        await turns(conv, agent, range(42, 61))
        await settled(et)
        await everything_is_there(et, conv)
        await every_request_was_valid(conv)


async def turns(conv: Conversation, agent: Agent, numbers: range) -> None:
    for number in numbers:
        done = only(await told(conv, asked(number), agent, model=ScriptedModel(script)), Done)
        assert done.text.startswith(f"Answer {number}:")


def asked(number: int) -> str:
    return QUESTION.format(number, number, number, number)


async def settled(et: Everthread) -> None:
    """Until the worker has nothing left to do."""
    while (report := await et.jobs()).waiting + report.running:
        assert not report.dead
        await asyncio.sleep(0.05)


async def everything_is_there(et: Everthread, conv: Conversation) -> None:
    messages = [message async for message in conv.messages()]
    questions = [message.text for message in messages if message.role == "user"]
    assert questions == [asked(number) for number in range(1, 61)]
    answers = [message.text.split(":")[0] for message in messages if message.text.startswith("Answer")]
    assert answers == [f"Answer {number}" for number in range(1, 61) if number not in (21, 41)]
    assert max(Counter(message.id for message in messages).values()) == 1
    assert len([one for one in messages if one.text and LONG.startswith(one.text)]) == 1
    states = Counter(turn.state for turn in await conv.turns(limit=100))
    assert states == {TurnState.COMPLETE: 58, TurnState.INTERRUPTED: 2}
    children = [child async for child in conv.children()]
    results = [
        json.loads(message.text) for message in messages if message.role == "tool" and "context_id" in message.text
    ]
    assert sorted(child.id for child in children) == sorted(result["context_id"] for result in results)
    assert len(children) == 6
    assert len([branch async for branch in conv.branches()]) == 1
    assert (await et.verify()).ok


async def every_request_was_valid(conv: Conversation) -> None:
    assert len([one async for one in conv.compactions()]) >= 2
    manifests = [
        id
        async for message in conv.messages()
        for id in message.payload.get("additional_kwargs", {}).get("everthread", {}).get("manifests", ())
    ]
    assert len(manifests) >= 58
    for id in manifests:
        seen = await conv.seen_context(id)
        assert seen.is_same
        assert find_violations(seen.context.messages) == []
        assert seen.context.tokens <= seen.context.limit
