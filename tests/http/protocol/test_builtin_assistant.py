"""The assistant `everthread`: our own agent, asked through LangGraph's client."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import UnprocessableEntityError

from everthread.core.nouns import Ref
from everthread.core.turn_events import Done, StateChanged, Thinking, Token, TurnEvent
from everthread.core.turns import BUILTIN_MARK, Turn, TurnState
from everthread.http.protocol.builtin_assistant import BuiltinAssistant, turn_encoder
from everthread.http.turn_service import TurnService
from everthread.settings import Settings
from everthread.testing.scripted import Reply, ScriptedModel
from everthread.turn.run import begin_turn
from tests.http.protocol.rig import Server, commanded, says, serving, told_by

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
    state: Any = (await client.threads.get_state("t"))["values"]
    assert state["messages"] == values["messages"]
    assert (state["context_id"], state["thread_id"]) == ("main", "t")
    run = (await client.runs.list("t"))[0]
    assert run["status"] == "success"
    conversation = await server.et.conversations.get("t")
    assert (await conversation.turn(run["run_id"])).is_complete
    half = int(told[len(told) // 2].id or 0)
    rest = [part async for part in client.runs.join_stream("t", run["run_id"], last_event_id=str(half))]
    assert rest == [part for part in told if int(part.id or 0) > half]


@pytest.mark.parametrize("input", [None, {}, {"messages": []}])
async def test_a_run_without_messages_says_so_and_leaves_nothing(server: Server, input: dict[str, Any] | None) -> None:
    body = {"assistant_id": "everthread", "input": input}
    async with server.http() as http:
        refused = await http.post("/runs/wait", json=body)
        assert (refused.status_code, refused.json()["code"]) == (422, "invalid")
        assert "must not be empty" in refused.json()["detail"]
        assert not (await server.et.conversations.list()).items
        await http.post("/threads", json={"thread_id": "t"})
        assert (await http.post("/threads/t/runs/wait", json=body)).status_code == 422


async def test_a_run_of_our_own_agent_without_a_thread_leaves_none_behind(
    server: Server, client: LangGraphClient
) -> None:
    answer: Any = await client.runs.wait(None, "everthread", input=says("hello there"))
    assert "hello there" in answer["messages"][-1]["content"]
    assert [part.event async for part in client.runs.stream(None, "everthread", input=says("hello"))][-1] == "end"
    while (await server.et.conversations.list()).items:  # noqa: ASYNC110 - hidden after the end, for which nobody waits
        await asyncio.sleep(0.01)
    hidden = (await server.et.conversations.list(include_deleted=True)).items
    assert [one.off_record for one in hidden] == [True, True]
    await client.runs.wait(None, "everthread", input=says("hello"), on_completion="keep")
    assert len(await client.threads.search()) == 1


async def test_i18_whoever_joins_our_own_run_again_while_it_runs_gets_exactly_the_rest(server: Server) -> None:
    turns = TurnService(server.et, Settings(database="memory://"))
    assistant = BuiltinAssistant(server.et, turns)
    conversation = await server.et.conversations.create(id="t")
    model = ScriptedModel([Reply(text=ANSWER, pace_seconds=0.001)])
    metadata = {BUILTIN_MARK: True, "kwargs": {"stream_mode": ["messages-tuple"]}}
    live = await begin_turn(conversation, "go on", agent=turns.agent, model=model, metadata=metadata)
    ref, turn = Ref(conversation.owner, conversation.id), await conversation.turn(live.id)
    pieces: list[str] = []
    after = 0
    while after < len(ANSWER) // 8:  # broken off after each handful, and once more joined from the last event on
        async for told in assistant.follow(ref, turn, after):
            after = told[-1].number
            pieces += [json.loads(one.data)[0]["content"] for one in told if one.kind == "messages"]
            break
    rest = [one async for told in assistant.follow(ref, turn, after) for one in told]
    pieces += [json.loads(one.data)[0]["content"] for one in rest if one.kind == "messages"]
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


async def test_our_own_agent_is_told_in_the_second_version_too(server: Server) -> None:
    async with server.http() as http:
        begun = await commanded(http, "run.start", assistant_id="everthread", input=says("hello there, how are you"))
        told = await told_by(http, "completed", channels=["values", "updates", "messages", "lifecycle"])
        assert [event["seq"] for event in told] == list(range(1, len(told) + 1))
        said = [event["params"]["data"] for event in told if event["method"] == "messages"]
        pieces = [one["delta"]["text"] for one in said if one["event"] == "content-block-delta"]
        assert "".join(pieces) == "hello there, how are you"
        assert [one["event"] for one in (*said[:2], *said[-2:])] == [
            "message-start", "content-block-start", "content-block-finish", "message-finish",
        ]  # fmt: skip
        (values,) = [event["params"]["data"] for event in told if event["method"] == "values"]
        assert values["messages"][-1]["id"] == said[0]["id"]
        assert {"route", "plan"} <= {
            name for event in told if event["method"] == "updates" for name in event["params"]["data"]
        }
        half = len(told) // 2
        rest = await told_by(http, "completed", since=half, channels=["values", "updates", "messages", "lifecycle"])
        assert rest == told[half:]
        assert (await (await server.et.conversations.get("t")).turn(begun["result"]["run_id"])).is_complete


async def test_langgraphs_own_client_streams_a_thread_of_our_own_agent(server: Server) -> None:
    async with server.sdk() as client, client.threads.stream("t", assistant_id="everthread") as thread:
        await thread.run.start(input=says("hi"))
        output: Any = await thread.output
    assert [message["type"] for message in output["messages"]] == ["human", "ai"]


def test_reasoning_is_a_block_of_its_own_and_a_message_ends_before_the_next_begins() -> None:
    encoder = turn_encoder(_turn(version=2))
    events: list[TurnEvent] = [
        Thinking(1, "let me", "m"),
        Thinking(2, " see", "m"),
        Token(3, "so", "m"),
        Token(4, "next", "m.2"),
        StateChanged(number=5, node="plan"),
        Done(number=6, state="complete", answer_id="m.2", text="next"),
    ]
    told = [frame for event in events for frame in encoder.frames(event)]
    said = [frame.data for frame in told if frame.event == "2/messages"]
    assert [(one["event"], one.get("index")) for one in said] == [
        ("message-start", None),
        ("content-block-start", 0), ("content-block-delta", 0), ("content-block-delta", 0), ("content-block-finish", 0),
        ("content-block-start", 1), ("content-block-delta", 1), ("content-block-finish", 1),
        ("message-finish", None),
        ("message-start", None),
        ("content-block-start", 0), ("content-block-delta", 0), ("content-block-finish", 0),
        ("message-finish", None),
    ]  # fmt: skip
    assert said[4]["content"] == {"type": "reasoning", "reasoning": "let me see"}
    assert [frame.event for frame in told if frame.event != "2/messages"] == ["2/updates"]


def _turn(version: int) -> Turn:
    return Turn(
        id="r",
        conversation_id="t",
        state=TurnState.RUNNING,
        question_id="q",
        answer_id="m",
        received_at=datetime(2026, 1, 1, tzinfo=UTC),
        metadata={"kwargs": {"version": version}},
    )
