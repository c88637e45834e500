"""What the log holds of a graph that checkpoints into it: everything that was said, once, in order."""

from __future__ import annotations

import asyncio
import operator
from dataclasses import make_dataclass
from typing import Annotated, Any, TypedDict

import numpy as np
import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, AnyMessage, HumanMessage, RemoveMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES, add_messages

from everthread import Conversation, Everthread, NotFound
from everthread.core.entries import Kind, Mark, Revision
from everthread.core.ids import new_id
from everthread.core.nouns import Ref
from everthread.langgraph import ArchivingSaver, EverthreadSaver
from tests.checkpoints.graphs import DeltaState, Shout, State, build

THREAD: Any = {"configurable": {"thread_id": "t"}}


async def said(et: Everthread, id: str = "t", **path: Any) -> list[str]:
    conversation = await et.conversations.get(id)
    return [message.text async for message in conversation.messages(**path)]


def ask(text: str, id: str | None = None) -> dict[str, Any]:
    return {"messages": [HumanMessage(text, id=id or text.replace(" ", "-"))]}


async def marks(et: Everthread) -> list[tuple[str, int | None]]:
    entries = await et.store.log.scan(Ref("local", "t"), after=0, limit=1000)
    return [(entry.id, entry.change_kind) for entry in entries if entry.kind == Kind.MARK]


@pytest.mark.parametrize("schema", [State, DeltaState])
async def test_i30_a_run_is_logged_once_and_in_order(et: Everthread, schema: type[Any]) -> None:
    graph = build(EverthreadSaver(et), schema)
    await graph.ainvoke(ask("say 1"), THREAD)
    await graph.ainvoke(ask("tool 2"), THREAD)
    state = await graph.aget_state(THREAD)
    assert await said(et) == [message.text for message in state.values["messages"]]
    assert (await et.verify()).ok


async def test_what_a_graph_removes_stays_in_the_log_with_a_mark(et: Everthread) -> None:
    graph = build(EverthreadSaver(et))
    await graph.ainvoke(ask("say 1"), THREAD)
    before = await said(et)
    await graph.ainvoke(ask("remove-all 2"), THREAD)
    assert (await graph.aget_state(THREAD)).values["messages"] == []
    assert await said(et) == [*before, "remove-all 2"]
    assert [how for _, how in await marks(et)] == [Mark.REMOVED] * 3


@pytest.mark.parametrize("archives", [False, True], ids=["saver", "archive"])
async def test_a_graph_whose_messages_are_in_another_channel_is_warned_of_and_not_called_complete(
    et: Everthread, archives: bool
) -> None:
    name = f"c{new_id().replace('-', '')}"  # it is said once of each name
    builder: StateGraph[Any] = StateGraph(make_dataclass("Chat", [(name, list[AnyMessage])]))
    builder.add_node("answer", lambda state: {name: [*getattr(state, name), AIMessage("yes")]})
    builder.add_edge(START, "answer")
    graph = builder.compile(checkpointer=ArchivingSaver(InMemorySaver(), et) if archives else EverthreadSaver(et))
    with pytest.warns(UserWarning, match=f"messages in '{name}' and none in 'messages', .* call the channel"):
        await graph.ainvoke({name: [HumanMessage("a")]}, THREAD)
    await graph.ainvoke({name: [HumanMessage("b")]}, THREAD)  # a second warning would be an error
    for saver in () if archives else (None, EverthreadSaver(et)):
        history = await et.full_history("t", saver=saver)
        assert (history["archived_count"], history["complete"]) == (0, False)
        assert history["gaps"] == [{"reason": "no_messages", "after": None}]


async def test_nothing_is_missing_where_nothing_was_said(et: Everthread) -> None:
    await et.conversations.create(id="t")
    assert (await et.full_history("t"))["complete"]


async def test_a_summary_is_kept_and_not_shown_as_history(et: Everthread) -> None:
    graph = build(EverthreadSaver(et))
    await graph.ainvoke(ask("say 1"), THREAD)
    await graph.ainvoke(ask("summarise 2"), THREAD)
    state = await graph.aget_state(THREAD)
    assert state.values["messages"][0].text == "quiet summary"
    assert "quiet summary" not in await said(et)
    assert len(await said(et)) == 3


async def test_a_replaced_message_keeps_its_place_and_its_older_revision(et: Everthread) -> None:
    graph = build(EverthreadSaver(et))
    await graph.ainvoke(ask("say 1"), THREAD)
    await graph.aupdate_state(THREAD, ask("quiet other", id="say-1"), as_node="tail")
    assert (await said(et))[0] == "quiet other"
    assert (await said(et, revisions=True))[:2] == ["say 1", "quiet other"]


async def test_two_equal_texts_without_ids_are_two_messages(et: Everthread) -> None:
    graph = build(EverthreadSaver(et))
    await graph.ainvoke(ask("say-nameless 1"), THREAD)
    assert (await said(et))[1:] == ["ok", "ok"]


@pytest.mark.parametrize("schema", [State, DeltaState])
async def test_a_fork_is_a_branch_and_leaves_the_other_as_it_was(et: Everthread, schema: type[Any]) -> None:
    graph = build(EverthreadSaver(et), schema)
    await graph.ainvoke(ask("say 1"), THREAD)
    first = await graph.aget_state(THREAD)
    await graph.ainvoke(ask("say 2"), THREAD)
    main = await said(et)
    await graph.ainvoke(ask("quiet 3"), first.config)
    assert await said(et) == [*main[:2], "quiet 3"]
    assert await said(et, branch="main") == main


@pytest.mark.parametrize("schema", [State, DeltaState])
async def test_an_edit_of_the_past_is_a_sibling_and_the_original_stays(et: Everthread, schema: type[Any]) -> None:
    graph = build(EverthreadSaver(et), schema)
    await graph.ainvoke(ask("say 1"), THREAD)
    main = await said(et)
    older = [state async for state in graph.aget_state_history(THREAD) if state.values.get("messages")][-1]
    await graph.aupdate_state(older.config, ask("quiet edited", id="say-1"), as_node="tail")
    assert await said(et) == ["quiet edited"]
    assert await said(et, branch="main") == main
    entries = await et.store.log.scan(Ref("local", "t"), after=0, limit=100)
    assert [entry.change_kind for entry in entries if entry.id == "say-1"] == [None, Revision.EDIT]
    assert (await et.verify()).ok


@pytest.mark.parametrize("schema", [State, DeltaState])
async def test_an_edit_on_a_fork_is_seen_there_and_nowhere_else(et: Everthread, schema: type[Any]) -> None:
    ours, theirs = build(EverthreadSaver(et), schema), build(InMemorySaver(), schema)
    states = []
    for graph in (ours, theirs):
        for number in range(5):
            await graph.ainvoke(ask(f"say {number}"), THREAD)
        older = [state async for state in graph.aget_state_history(THREAD) if len(state.values["messages"]) == 5][-1]
        forked = await graph.aupdate_state(older.config, ask("quiet edited", id="say-1"), as_node="tail")
        await graph.ainvoke(ask("quiet after"), forked)
        states.append([message.text for message in (await graph.aget_state(THREAD)).values["messages"]])
    assert states[0] == states[1]
    assert "quiet edited" in states[0]
    assert await said(et) == states[0]
    assert "say 1" in await said(et, branch="main")
    assert "quiet edited" not in await said(et, branch="main")


async def test_what_is_first_seen_in_a_subgraph_goes_to_a_child_and_only_that(et: Everthread) -> None:
    graph = build(EverthreadSaver(et))
    await graph.ainvoke(ask("inner 1"), THREAD)
    conversation = await et.conversations.get("t")
    (child,) = [child async for child in conversation.children()]
    assert child.id.startswith("subagent-")
    assert child.metadata["namespace"][0].startswith("inner:")
    assert await said(et, child.id) == ["thinking", "concluded from 2"]
    assert await said(et) == ["inner 1", "thinking", "concluded from 2"]


async def test_other_channels_feed_no_history(et: Everthread) -> None:
    graph = build(EverthreadSaver(et))
    await graph.ainvoke(ask("draft 1"), THREAD)
    assert await said(et) == ["draft 1"]
    assert [m.text for m in (await graph.aget_state(THREAD)).values["draft"]] == ["draft 1", "a draft", "nameless"]


async def test_writes_that_no_checkpoint_names_are_logged_with_the_next_one(et: Everthread) -> None:
    saver = EverthreadSaver(et)
    graph = build(saver)
    await graph.ainvoke(ask("say 1"), THREAD)
    state = await graph.aget_state(THREAD)
    await saver.aput_writes(state.config, [("messages", [AIMessage("lost?", id="x")])], "task")
    assert "lost?" not in await said(et)
    await graph.ainvoke(ask("quiet 2"), THREAD)
    assert (await said(et))[-2:] == ["lost?", "quiet 2"]


async def test_chunks_are_held_and_never_logged(et: Everthread) -> None:
    saver = EverthreadSaver(et)
    graph = build(saver)
    await graph.ainvoke(ask("say 1"), THREAD)
    state = await graph.aget_state(THREAD)
    chunk = AIMessageChunk(content="par", id="c")
    await saver.aput_writes(state.config, [("messages", [chunk])], "task")
    held = await saver.aget_tuple(state.config)
    assert held is not None
    assert held.pending_writes == [("task", "messages", [chunk])]
    await graph.ainvoke(ask("quiet 2"), THREAD)
    assert "par" not in await said(et)


class Plain(TypedDict):
    messages: Annotated[list[AnyMessage], operator.add]


async def test_a_list_of_messages_without_ids_is_logged_once_turn_after_turn(et: Everthread) -> None:
    builder = StateGraph(Plain)
    builder.add_node("echo", lambda state: {"messages": [AIMessage("ok")]})
    builder.add_edge(START, "echo")
    builder.add_edge("echo", END)
    for _ in range(3):  # a saver of its own each time remembers nothing
        graph = builder.compile(checkpointer=EverthreadSaver(et))
        await graph.ainvoke({"messages": [HumanMessage("ok")]}, THREAD)
    assert await said(et) == ["ok"] * 6


async def test_parallel_nodes_are_logged_in_the_order_of_the_list_not_of_completion(et: Everthread) -> None:
    class Wide(TypedDict):
        messages: Annotated[list[AnyMessage], add_messages]

    def speaker(number: int) -> Any:
        async def speak(state: Wide) -> dict[str, Any]:
            await asyncio.sleep((3 - number) * 0.05)
            return {"messages": [AIMessage(f"speaker {number}", id=f"s{number}")]}

        return speak

    builder = StateGraph(Wide)
    for number in range(4):
        builder.add_node(f"n{number}", speaker(number))
        builder.add_edge(START, f"n{number}")
    graph: Any = builder.compile(checkpointer=EverthreadSaver(et))
    await graph.ainvoke(ask("all"), THREAD)
    state = await graph.aget_state(THREAD)
    assert await said(et) == [m.text for m in state.values["messages"]] == ["all", *(f"speaker {n}" for n in range(4))]


async def test_middleware_that_reassigns_calls_on_the_same_object_makes_a_revision(et: Everthread) -> None:
    saver = EverthreadSaver(et)
    graph = build(saver)
    await graph.ainvoke(ask("tool 1"), THREAD)
    await graph.ainvoke(ask("reassign 2"), THREAD, durability="sync")
    again = build(EverthreadSaver(et))
    messages = (await again.aget_state(THREAD)).values["messages"]
    assert messages[1].tool_calls[0]["name"] == "other"
    conversation: Conversation = await et.conversations.get("t")
    assert (await conversation.message(messages[1].id)).revision == 2


async def test_messages_handed_out_are_clones(et: Everthread) -> None:
    graph = build(EverthreadSaver(et))
    await graph.ainvoke(ask("tool 1"), THREAD)
    one = (await graph.aget_state(THREAD)).values["messages"]
    one[1].tool_calls[0]["args"]["at"].append("changed")
    one[0].content = "changed"
    other = (await graph.aget_state(THREAD)).values["messages"]
    assert other[1].tool_calls[0]["args"]["at"] == ["a", 1, None]
    assert other[0].content == "tool 1"


async def test_artifacts_and_classes_of_ones_own_come_back_from_the_store(et: Everthread) -> None:
    graph = build(EverthreadSaver(et, allowed=[Shout]))
    await graph.ainvoke(ask("artifact 1"), THREAD)
    await graph.ainvoke(ask("shout 2"), THREAD)
    fresh = build(EverthreadSaver(et, allowed=[Shout]))
    messages = (await fresh.aget_state(THREAD)).values["messages"]
    assert isinstance(messages[1], ToolMessage)
    assert messages[1].artifact["bytes"] == b"\x00\xff"
    assert messages[3] == Shout(content="quiet HEY", id=messages[3].id, volume=11)


async def test_an_array_in_a_message_comes_back_and_can_take_the_place_of_another_value(et: Everthread) -> None:
    graph = build(EverthreadSaver(et))
    table = ToolMessage("table", tool_call_id="c", id="table", artifact=np.array([1, 2]))
    await graph.aupdate_state(THREAD, {"messages": [table, HumanMessage("hi", id="hi", row=np.array([3, 4]))]})
    messages = (await graph.aget_state(THREAD)).values["messages"]
    assert (messages[0].artifact == table.artifact).all()
    assert (messages[1].row == np.array([3, 4])).all()
    messages[0].artifact = np.array([5, 6])
    await graph.aupdate_state(THREAD, {"messages": messages})
    fresh = (await build(EverthreadSaver(et)).aget_state(THREAD)).values["messages"]
    assert (fresh[0].artifact == np.array([5, 6])).all()


async def test_owners_do_not_see_each_others_threads(et: Everthread) -> None:
    graph = build(EverthreadSaver(et))
    mine: Any = {"configurable": {"thread_id": "t", "everthread_owner": "ann"}}
    await graph.ainvoke(ask("say 1"), mine)
    assert (await graph.aget_state(THREAD)).values == {}
    with pytest.raises(NotFound):
        await et.conversations.get("t")
    assert (await et.conversations.get("t", "ann")).id == "t"


async def test_erasing_a_message_takes_it_out_of_every_state(et: Everthread) -> None:
    saver = EverthreadSaver(et)
    graph = build(saver)
    await graph.ainvoke(ask("say 1"), THREAD)
    await graph.ainvoke({"messages": [HumanMessage("quiet my secret is 4711", id="s")]}, THREAD)
    await et.erase(conversation="t", message="s")
    states = [repr(state) async for state in graph.aget_state_history(THREAD)]
    assert states
    assert not any("secret is 4711" in state for state in states)


async def test_a_removed_message_can_come_back(et: Everthread) -> None:
    graph = build(EverthreadSaver(et))
    await graph.ainvoke(ask("say 1"), THREAD)
    first = (await graph.aget_state(THREAD)).values["messages"][0]
    await graph.aupdate_state(THREAD, {"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES)]}, as_node="tail")
    await graph.aupdate_state(THREAD, {"messages": [first]}, as_node="tail")
    assert [m.text for m in (await graph.aget_state(THREAD)).values["messages"]] == ["say 1"]
    assert (await said(et)).count("say 1") == 1
