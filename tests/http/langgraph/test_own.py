"""The assistant `everthread`: our own agent, asked through LangGraph's client."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import UnprocessableEntityError

from tests.http.langgraph.rig import Server, says, serving


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
