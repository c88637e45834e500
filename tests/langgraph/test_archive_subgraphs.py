"""Subgraphs and subagents: what is first said inside goes to a child, and the thread is complete without it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, interrupt

import everthread
from everthread import Conversation, Everthread
from everthread.langgraph import archive_stream
from everthread.testing import Reply, ScriptedModel
from tests.langgraph.agents import look_up, said_by

CONFIG: Any = {"configurable": {"thread_id": "t"}}


@pytest.fixture
async def memory() -> AsyncIterator[Everthread]:
    async with everthread.open("memory://") as opened:
        yield opened


async def events(*found: Any) -> AsyncIterator[Any]:
    for event in found:
        yield event


async def run(et: Everthread, graph: Any, given: Any, thread_id: str = "t") -> None:
    stream = graph.astream(given, CONFIG, stream_mode="values", subgraphs=True)
    async for _ in archive_stream(et, stream, thread_id):
        pass


async def texts(conversation: Conversation) -> list[str]:
    return [message.text async for message in conversation.messages()]


async def children(et: Everthread, thread_id: str = "t") -> list[Conversation]:
    """The children of a thread, oldest first."""
    conversation = await et.conversations.get(thread_id)
    return [child async for child in conversation.children()][::-1]


def one_node(name: str, act: Any, **compile_options: Any) -> Any:
    graph = StateGraph(MessagesState)
    graph.add_node(name, act)
    graph.add_edge(START, name)
    return graph.compile(**compile_options)


def says(text: str) -> Any:
    return lambda state: {"messages": [AIMessage(text)]}


def asks(text: str) -> Any:
    return {"messages": [HumanMessage(text)]}


# -- a subgraph that works on the parent's list ----------------------------------------------------------------------


async def test_what_a_subgraph_says_is_in_a_child_and_in_the_threads_own_history(et: Everthread) -> None:
    graph = one_node("inner", one_node("talk", says("from inside")), checkpointer=InMemorySaver())
    await run(et, graph, asks("hi"))
    assert await texts(await et.conversations.get("t")) == ["hi", "from inside"]
    (child,) = await children(et)
    assert await texts(child) == ["from inside"]
    assert child.id.startswith("subagent-")
    assert child.parent_id == "t"
    assert child.metadata["namespace"][0].startswith("inner:")


async def test_a_subgraph_that_adds_nothing_makes_no_child(memory: Everthread) -> None:
    graph = one_node("inner", one_node("rest", lambda state: {}), checkpointer=InMemorySaver())
    await run(memory, graph, asks("hi"))
    assert await children(memory) == []


async def test_nothing_handed_down_is_copied_to_a_child_of_a_child(memory: Everthread) -> None:
    innermost = one_node("talk", says("from the innermost"))
    outer = StateGraph(MessagesState)
    outer.add_node("talk", says("from the outer"))
    outer.add_node("inner", innermost)
    outer.add_edge(START, "talk")
    outer.add_edge("talk", "inner")
    graph = one_node("outer", outer.compile(), checkpointer=InMemorySaver())
    await run(memory, graph, asks("hi"))
    found = {len(child.metadata["namespace"]): await texts(child) for child in await children(memory)}
    assert found == {1: ["from the outer", "from the innermost"], 2: ["from the innermost"]}
    assert await texts(await memory.conversations.get("t")) == ["hi", "from the outer", "from the innermost"]


async def test_what_was_handed_down_is_known_from_the_log_when_the_threads_event_is_missing(memory: Everthread) -> None:
    handed, own = HumanMessage("hi", id="m1"), AIMessage("inside", id="m2")
    async for _ in archive_stream(memory, events(((), {"messages": [handed]})), "t"):
        pass
    async for _ in archive_stream(memory, events((("inner:1",), {"messages": [handed, own]})), "t"):
        pass
    (child,) = await children(memory)
    assert await texts(child) == ["inside"]


async def test_a_threads_conversation_is_made_even_when_a_subgraph_speaks_first(memory: Everthread) -> None:
    async for _ in archive_stream(memory, events((("inner:1",), {"messages": [AIMessage("first", id="m1")]})), "t"):
        pass
    assert await texts(await memory.conversations.get("t")) == []
    (child,) = await children(memory)
    assert await texts(child) == ["first"]


# -- a subagent behind a tool ----------------------------------------------------------------------------------------


def research_answer(messages: Sequence[BaseMessage]) -> Reply | str:
    if isinstance(messages[-1], ToolMessage):
        return f"report on {messages[0].text}"
    return Reply(text="searching", calls=[("look_up", {"word": messages[-1].text})])


def delegating_agent(*tasks: str) -> Any:
    """An agent that hands each task to a subagent, all at once, as deepagents' `task` tool does."""
    subagent = create_agent(ScriptedModel(research_answer), [look_up])

    @tool
    async def delegate(task: str) -> str:
        """Have somebody look into it."""
        done = await subagent.ainvoke({"messages": [HumanMessage(task)]})
        return str(done["messages"][-1].text)

    model = ScriptedModel([Reply(calls=[("delegate", {"task": task}) for task in tasks]), "all done"])
    return create_agent(model, [delegate], checkpointer=InMemorySaver())


async def test_each_subagent_has_a_child_with_all_it_said(et: Everthread) -> None:
    await run(et, delegating_agent("trains", "weather"), asks("plan my trip"))
    found = sorted([await texts(child) for child in await children(et)])
    assert found == [[task, "searching", f"known about {task}", f"report on {task}"] for task in ("trains", "weather")]


async def test_what_subagents_say_among_themselves_is_not_in_the_threads_history(et: Everthread) -> None:
    await run(et, delegating_agent("trains", "weather"), asks("plan my trip"))
    said = await texts(await et.conversations.get("t"))
    assert said == ["plan my trip", "", "report on trains", "report on weather", "all done"]


async def test_two_calls_of_one_subgraph_in_one_node_are_two_children(memory: Everthread) -> None:
    inner = one_node("talk", says("done"))

    async def twice(state: Any) -> Any:
        for task in ("task A", "task B"):
            await inner.ainvoke(asks(task))
        return {"messages": [AIMessage("both done")]}

    await run(memory, one_node("twice", twice, checkpointer=InMemorySaver()), asks("go"))
    assert [await texts(child) for child in await children(memory)] == [["task A", "done"], ["task B", "done"]]


async def test_a_new_list_under_an_old_namespace_is_another_child(memory: Everthread) -> None:
    first = [HumanMessage("task A", id="a1"), AIMessage("done A", id="a2")]
    second = [HumanMessage("task B", id="b1")]
    stream = events(*((("inner:1",), {"messages": messages}) for messages in (first[:1], first, second)))
    async for _ in archive_stream(memory, stream, "t"):
        pass
    assert [await texts(child) for child in await children(memory)] == [["task A", "done A"], ["task B"]]


# -- the same child again --------------------------------------------------------------------------------------------


async def test_a_subgraph_resumed_after_an_interrupt_goes_on_in_its_child(et: Everthread) -> None:
    inner = StateGraph(MessagesState)
    inner.add_node("propose", says("shall I?"))
    inner.add_node("confirm", lambda state: {"messages": [HumanMessage(interrupt("yes or no"))]})
    inner.add_edge(START, "propose")
    inner.add_edge("propose", "confirm")
    graph = one_node("inner", inner.compile(), checkpointer=InMemorySaver())
    await run(et, graph, asks("delete it"))
    await run(et, graph, Command(resume="yes"))
    (child,) = await children(et)
    assert await texts(child) == ["shall I?", "yes"]
    assert await texts(await et.conversations.get("t")) == ["delete it", "shall I?", "yes"]


async def test_a_subgraph_with_a_memory_of_its_own_has_one_child_over_many_turns(et: Everthread) -> None:
    count = iter(range(10))
    inner = one_node("talk", lambda state: {"messages": [AIMessage(f"answer {next(count)}")]}, checkpointer=True)
    graph = one_node("inner", inner, checkpointer=InMemorySaver())
    for number in range(3):
        await run(et, graph, asks(f"question {number}"))
    (child,) = await children(et)
    assert await texts(child) == ["answer 0", "answer 1", "answer 2"]
    assert len(await texts(await et.conversations.get("t"))) == 6


async def test_a_child_whose_list_begins_with_a_summary_is_found_again(memory: Everthread) -> None:
    messages: list[BaseMessage] = [AIMessage(f"step {number}", id=f"m{number}") for number in range(4)]
    summary = HumanMessage("in short", id="s1", additional_kwargs={"lc_source": "summarization"})
    for found in (messages[:3], [summary, *messages[2:]]):
        async for _ in archive_stream(memory, events((("inner",), {"messages": found})), "t"):
            pass
    (child,) = await children(memory)
    assert [(message.id, message.text) async for message in child.messages()] == said_by(messages)


async def test_two_threads_with_the_same_namespace_have_children_of_their_own(memory: Everthread) -> None:
    async def listen(thread_id: str) -> None:
        state = {"messages": [AIMessage(f"in {thread_id}", id="m1")]}
        async for _ in archive_stream(memory, events((("inner",), state)), thread_id):
            pass

    await asyncio.gather(listen("a"), listen("b"))
    for thread_id in ("a", "b"):
        (child,) = await children(memory, thread_id)
        assert await texts(child) == [f"in {thread_id}"]
