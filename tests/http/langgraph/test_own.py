"""The assistant `everthread`: our own agent, asked through LangGraph's client."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import UnprocessableEntityError

from everthread.core.nouns import Ref
from everthread.http.langgraph.own import OWN, Own
from everthread.http.talking import Talk
from everthread.settings import Settings
from everthread.testing.scripted import Reply, ScriptedModel
from everthread.turn.run import begin_turn
from tests.http.langgraph.rig import Server, says, serving

ANSWER = "It never ends and never forgets. " * 20


@pytest.fixture
async def server(url: str) -> AsyncIterator[Server]:
    async with serving(url, model="scripted:echo") as running:
        yield running


async def test_our_own_agent_answers_and_its_run_is_a_turn(server: Server, client: LangGraphClient) -> None:
    await client.threads.create(thread_id="t")
    modes: Any = ["messages-tuple", "values", "updates"]
    told = [part async for part in client.runs.stream("t", "everthread", input=says("hello there"), stream_mode=modes)]
    assert told[0].event == "metadata"
    assert [part.event for part in told[-2:]] == ["values", "end"]
    pieces = "".join(str(part.data[0]["content"]) for part in told if part.event == "messages")
    values: Any = told[-2].data
    assert [message["type"] for message in values["messages"]] == ["human", "ai"]
    assert values["messages"][-1]["content"] == pieces
    assert (await client.threads.get_state("t"))["values"] == values
    run = (await client.runs.list("t"))[0]
    assert run["status"] == "success"
    conversation = await server.et.conversations.get("t")
    assert (await conversation.turn(run["run_id"])).is_complete
    half = int(told[len(told) // 2].id or 0)
    rest = [part async for part in client.runs.join_stream("t", run["run_id"], last_event_id=str(half))]
    assert rest == [part for part in told if int(part.id or 0) > half]


async def test_i18_whoever_joins_our_own_run_again_while_it_runs_gets_exactly_the_rest(server: Server) -> None:
    talk = Talk(server.et, Settings(database="memory://"))
    own = Own(server.et, talk)
    conversation = await server.et.conversations.create(id="t")
    model = ScriptedModel([Reply(text=ANSWER, pace_seconds=0.001)])
    metadata = {OWN: True, "kwargs": {"stream_mode": ["messages-tuple"]}}
    live = await begin_turn(conversation, "go on", agent=talk.agent, model=model, metadata=metadata)
    ref, turn = Ref(conversation.owner, conversation.id), await conversation.turn(live.id)
    pieces: list[str] = []
    after = 0
    while after < len(ANSWER) // 8:  # broken off after each handful, and once more joined from the last event on
        async for told in own.follow(ref, turn, after):
            after = told[-1].number
            pieces += [json.loads(one.shown)[0]["content"] for one in told if one.kind == "messages"]
            break
    rest = [one async for told in own.follow(ref, turn, after) for one in told]
    pieces += [json.loads(one.shown)[0]["content"] for one in rest if one.kind == "messages"]
    assert "".join(pieces) == ANSWER


async def test_our_own_agent_refuses_what_it_cannot_do(client: LangGraphClient) -> None:
    await client.threads.create(thread_id="t")
    with pytest.raises(UnprocessableEntityError):
        await client.runs.create("t", "everthread", input={"messages": [], "step": 1})
    with pytest.raises(UnprocessableEntityError):
        await client.runs.create("t", "everthread", input=says("x"), context={"base_url": "http://elsewhere"})
    with pytest.raises(UnprocessableEntityError):
        await client.runs.create("t", "everthread", command={"resume": 1})
    drawn: Any = await client.assistants.get_graph("everthread")
    assert {"route", "plan", "tools"} <= {node["id"] for node in drawn["nodes"]}
