"""Subagents: a context of their own, and always a result."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from langchain_core.messages import BaseMessage

from everthread import Conversation, Everthread, TurnState
from everthread.core.tools import WHEN_NAMED
from everthread.core.turn_events import Done, ToolCall, ToolResult
from everthread.testing.scripted import Reply, ScriptedModel, Step
from everthread.turn import TurnLimits, run_turn
from tests.turn.turns import add, agent_for, of, only, said, told


def results_in(request: Sequence[BaseMessage]) -> list[dict[str, Any]]:
    return [json.loads(message.text) for message in request if message.type == "tool"]


def subagent(task: str, **given: Any) -> Reply:
    return Reply(calls=[("call_subagent", {"task": task, **given})])


async def child_of(conv: Conversation) -> Conversation:
    (child,) = [child async for child in conv.children()]
    return child


async def test_a_subagent_works_in_a_conversation_of_its_own(et: Everthread, conv: Conversation) -> None:
    steps: list[Step] = [
        subagent("add 7 and 4"),
        Reply(calls=[("add", {"a": 7, "b": 4})]),
        "The sum is 11.",
        "It is 11.",
    ]
    model = ScriptedModel(steps)
    events = await told(conv, "work it out", agent_for(et, tools=[add]), model=model)
    child = await child_of(conv)
    (result,) = results_in(model.requests[3].messages)
    assert result == {"ok": True, "result": "The sum is 11.", "context_id": child.id, "loops": 2}
    assert child.id.startswith("subagent-")
    assert child.parent_id == conv.id
    assert [role for role, _ in await said(child)] == ["user", "assistant", "tool", "assistant"]
    assert [role for role, _ in await said(conv)] == ["user", "assistant", "tool", "assistant"]
    assert only(events, Done).text == "It is 11."
    answer = (await conv.tail(1))[0].payload["additional_kwargs"]["everthread"]
    assert answer["subagents"] == [child.id]
    assert not any("work it out" in message.text for message in model.requests[1].messages)
    (turn,) = await child.turns()
    assert (turn.kind, turn.state) == ("subagent", TurnState.COMPLETE)


async def test_a_subagent_that_fails_gives_a_result(et: Everthread, conv: Conversation) -> None:
    model = ScriptedModel([subagent("fail"), Reply(text="half", error=RuntimeError("broken")), "I see."])
    events = await told(conv, "try", agent_for(et), model=model)
    (result,) = results_in(model.requests[2].messages)
    assert (result["ok"], "failed" in result["result"]) == (False, True)
    assert only(events, Done).text == "I see."
    assert await said(await child_of(conv)) == [("user", "fail"), ("assistant", "half")]


async def test_a_subagent_that_takes_too_long_is_stopped(et: Everthread, conv: Conversation) -> None:
    def script(messages: Sequence[BaseMessage]) -> Step:
        if messages[-1].text == "sleep":
            return Reply(text="late", delay_seconds=60)
        return "Never mind." if results_in(messages) else subagent("sleep")

    model = ScriptedModel(script)  # on a busy machine the subagent is stopped before it asks
    events = await told(conv, "try", agent_for(et, limits=TurnLimits(subagent_seconds=0.1)), model=model)
    (result,) = results_in(model.requests[-1].messages)
    assert (result["ok"], "within 0.1 seconds" in result["result"]) == (False, True)
    assert only(events, Done).state == "complete"
    (turn,) = await (await child_of(conv)).turns()
    assert turn.state is TurnState.CANCELLED


async def test_a_stop_reaches_the_subagents(et: Everthread, conv: Conversation) -> None:
    model = ScriptedModel([subagent("sleep"), Reply(text="late", delay_seconds=60)])
    turn = run_turn(conv, "try", agent=agent_for(et), model=model)
    async for event in turn:
        if isinstance(event, ToolCall):
            break
    await turn.aclose()  # type: ignore[attr-defined]
    children = [child async for child in conv.children()]
    states = [turn.state for child in children for turn in await child.turns()]
    assert all(state.is_final for state in states)


async def test_subagents_are_nested_to_a_depth(et: Everthread, conv: Conversation) -> None:
    def script(messages: Sequence[BaseMessage]) -> Reply:
        answered = results_in(messages)
        return Reply(text=f"depth {json.dumps(answered)}") if answered else subagent("go deeper")

    model = ScriptedModel(script)
    events = await told(conv, "go", agent_for(et, limits=TurnLimits(subagent_depth=2)), model=model)
    assert only(events, Done).state == "complete"
    child = await child_of(conv)
    grandchild = await child_of(child)
    assert [one async for one in grandchild.children()] == []
    assert "call_subagent" not in model.requests[2].tools, "the deepest one is not offered what it may not do"


async def test_a_turn_calls_a_limited_number_of_subagents(et: Everthread, conv: Conversation) -> None:
    def script(messages: Sequence[BaseMessage]) -> Reply:
        if messages[-1].text == "one":
            return Reply(text="done")
        return subagent("one")

    model = ScriptedModel(script)
    agent = agent_for(et, limits=TurnLimits(subagents=2))
    events = await told(conv, "go", agent, model=model, max_loops=4)
    assert len([child async for child in conv.children()]) == 2
    assert [json.loads(one.text)["ok"] for one in of(events, ToolResult)] == [True, True, False, False]


async def test_what_is_said_off_the_record_stays_so_in_subagents(et: Everthread) -> None:
    conv = await et.conversations.create(off_record=True)
    await told(conv, "go", agent_for(et), [subagent("quietly"), "done", "well"])
    assert (await child_of(conv)).off_record


async def test_erasing_a_conversation_erases_its_subagents(et: Everthread, conv: Conversation) -> None:
    await told(conv, "go", agent_for(et), [subagent("quietly"), "done", "well"])
    child = await child_of(conv)
    report = await et.erase(conversation=conv.id)
    assert report.conversations == 2
    assert report.reached["turns"] == 2
    assert child.id not in [one.id for one in (await et.conversations.list()).items]


async def test_a_subagent_gets_the_tools_it_is_given_and_no_others(et: Everthread, conv: Conversation) -> None:
    rare = add.model_copy(update={"tags": [WHEN_NAMED]})
    steps: list[Step] = [
        subagent("add", tools=["add"]),
        "11",
        subagent("add"),
        "?",
        subagent("x", tools=["rm"]),
        "done",
    ]
    model = ScriptedModel(steps)
    await told(conv, "use @add", agent_for(et, tools=[rare]), model=model)
    assert ["add" in request.tools for request in model.requests] == [True, True, True, False, True, True]
    result = results_in(model.requests[5].messages)[-1]
    assert (result["ok"], result["context_id"]) == (False, None)
    assert "no tool is called 'rm'" in result["result"]
