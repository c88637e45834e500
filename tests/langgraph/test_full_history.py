"""`et.full_history`: the log and the checkpoint as one history, which says where it is from and what it lacks."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

import everthread
from benchmarks.scenarios import SCENES, Rig, a_large_tool_result, summaries_over_many_turns
from everthread import Everthread, Invalid, NotFound
from everthread.history.full_history import in_order_of_calls, only_in
from everthread.langgraph import ArchivingSaver, EverthreadSaver
from tests.langgraph.captures import archiving, children_of, listening
from tests.langgraph.test_archiving_saver import NEED_MIDDLEWARE, THREAD, echo


@pytest.fixture
async def memory() -> AsyncIterator[Everthread]:
    async with everthread.open("memory://") as opened:
        yield opened


def texts(history: Any) -> list[str]:
    return [message["content"] for message in history["values"]["messages"]]


@pytest.mark.parametrize("scene", [name for name in SCENES if name not in NEED_MIDDLEWARE])
async def test_i30_full_history_is_log_and_checkpoint_each_message_once_in_order(et: Everthread, scene: str) -> None:
    rig = archiving(et)
    truth = await SCENES[scene](rig)
    history = await et.full_history("scene", saver=rig.saver)
    assert texts(history) == truth.paths[-1]
    assert history["source"] == "archive"
    assert history["complete"]
    assert history["archived_count"] == history["merged_count"] == len(truth.paths[-1])


async def test_i30_what_only_the_checkpoint_has_stands_where_its_list_has_it(et: Everthread) -> None:
    inner = InMemorySaver()
    before, after = echo(inner), echo(ArchivingSaver(inner, et))
    await after.ainvoke({"messages": ["one"]}, THREAD)
    await before.ainvoke({"messages": ["two"]}, THREAD)
    history = await et.full_history("t", saver=inner)
    assert texts(history) == ["one", "re: one", "two", "re: two"]
    assert (history["source"], history["archived_count"], history["checkpoint_count"]) == ("merged", 2, 4)
    assert history["merged_count"] == 4
    await after.ainvoke({"messages": ["three"]}, THREAD)
    history = await et.full_history("t", saver=inner)
    assert texts(history) == ["one", "re: one", "two", "re: two", "three", "re: three"]
    assert history["source"] == "archive"
    assert (await et.full_history("t", merge_checkpoint=False, saver=inner))["checkpoint_count"] == 0


@pytest.mark.parametrize("scene", [name for name in SCENES if "again" not in name and "180 kB" not in name])
async def test_a_stream_alone_captures_all_once_and_in_order(memory: Everthread, scene: str) -> None:
    rig = listening(memory, Rig(InMemorySaver()))
    truth = await SCENES[scene](rig)
    history = await memory.full_history("scene", saver=rig.saver)
    assert (texts(history), history["source"], history["complete"]) == (truth.paths[-1], "archive", True)
    assert await children_of(await memory.conversations.get("scene")) == truth.subagents


async def test_a_thread_from_before_the_archive_is_its_checkpoint_and_says_so(memory: Everthread) -> None:
    rig = Rig(InMemorySaver())
    truth = await summaries_over_many_turns(rig)
    history = await memory.full_history("scene", saver=rig.saver)
    assert texts(history) == truth.paths[0][-len(texts(history)) :]
    assert history["source"] == "checkpoint"
    assert not history["complete"]
    assert history["gaps"] == [{"reason": "not_archived", "after": None}]


async def test_an_archive_that_began_late_says_so(memory: Everthread) -> None:
    inner = InMemorySaver()
    await echo(inner).ainvoke({"messages": ["one"]}, THREAD)
    await echo(ArchivingSaver(inner, memory)).ainvoke({"messages": ["two"]}, THREAD)
    history = await memory.full_history("t", saver=inner)
    assert texts(history) == ["one", "re: one", "two", "re: two"]
    assert history["gaps"] == [{"reason": "archive_began_late", "after": None}]
    assert not history["complete"]


async def test_a_summary_that_the_archive_never_saw_is_a_gap(memory: Everthread) -> None:
    inner = InMemorySaver()
    graph = echo(ArchivingSaver(inner, memory))
    await graph.ainvoke({"messages": ["one"]}, THREAD)
    summary = HumanMessage("in short", additional_kwargs={"lc_source": "summarization"}, id="s")
    await echo(inner).aupdate_state(THREAD, {"messages": [summary]})
    history = await memory.full_history("t", saver=inner)
    assert "in short" not in texts(history)
    assert [gap["reason"] for gap in history["gaps"]] == ["summarised_unseen"]


async def test_the_answer_has_the_shape_of_a_state(memory: Everthread) -> None:
    saver = ArchivingSaver(InMemorySaver(), memory)
    graph = echo(saver)
    await graph.ainvoke({"messages": ["one"]}, THREAD)
    history = await memory.full_history("t", saver=saver)
    state = await graph.aget_state(THREAD)
    assert history["checkpoint"] is not None
    assert history["checkpoint"]["checkpoint_id"] == state.config["configurable"]["checkpoint_id"]
    assert history["created_at"] == state.created_at
    assert history["metadata"]["step"] == state.metadata["step"]
    assert {"values", "next", "tasks", "parent_checkpoint"} <= set(history)
    assert [message["type"] for message in history["values"]["messages"]] == ["human", "ai"]


async def test_pages_join_to_the_whole_whatever_their_size(et: Everthread) -> None:
    inner = InMemorySaver()
    graph = echo(ArchivingSaver(inner, et))
    for number in range(6):
        await graph.ainvoke({"messages": [f"q{number}"]}, THREAD)
    await echo(inner).ainvoke({"messages": ["unseen"]}, THREAD)
    whole = texts(await et.full_history("t", saver=inner))
    assert len(whole) == 14
    for size in (1, 2, 5, 13, 14, 100):
        joined: list[str] = []
        cursor = None
        while True:
            page = await et.full_history("t", saver=inner, limit=size, cursor=cursor)
            joined += texts(page)
            assert len(texts(page)) <= size
            assert page["merged_count"] == 14
            cursor = page["next_cursor"]
            if cursor is None:
                break
        assert joined == whole


async def test_what_was_deleted_or_erased_does_not_come_back_from_the_checkpoint(memory: Everthread) -> None:
    inner = InMemorySaver()
    graph = echo(ArchivingSaver(inner, memory))
    for text in ("one", "two"):
        await graph.ainvoke({"messages": [HumanMessage(text, id=text)]}, THREAD)
    await (await memory.conversations.get("t")).delete_message("one")
    await memory.erase(conversation="t", message="two")
    assert texts(await memory.full_history("t", saver=inner)) == ["re: one", "re: two"]


async def test_an_everthread_saver_needs_no_merging(memory: Everthread) -> None:
    saver = EverthreadSaver(memory)
    await echo(saver).ainvoke({"messages": ["one"]}, THREAD)
    history = await memory.full_history("t", saver=saver)
    assert (texts(history), history["source"], history["complete"]) == (["one", "re: one"], "archive", True)


async def test_deepagents_state_is_rebuilt_where_there_is_no_archive(memory: Everthread) -> None:
    rig = Rig(InMemorySaver())
    await a_large_tool_result(rig)
    state = await rig.agent.aget_state(rig.config)
    history = await memory.full_history("scene", saver=rig.saver)
    assert texts(history) == [message.text for message in state.values["messages"]]


async def test_an_unknown_thread_and_another_owners_are_not_found(memory: Everthread) -> None:
    await echo(ArchivingSaver(InMemorySaver(), memory, owner="anna")).ainvoke({"messages": ["one"]}, THREAD)
    for owner in ("local", "ben"):
        with pytest.raises(NotFound):
            await memory.full_history("t", owner)
    assert texts(await memory.full_history("t", "anna")) == ["one", "re: one"]


@pytest.mark.parametrize("wrong", [{"cursor": "x"}, {"cursor": "1"}, {"limit": 0}, {"limit": -1}])
async def test_a_foreign_cursor_and_a_bad_limit_are_refused(memory: Everthread, wrong: Any) -> None:
    await memory.conversations.create(id="t")
    with pytest.raises(Invalid):
        await memory.full_history("t", **wrong)


# -- the pure parts --------------------------------------------------------------------------------------------------


@given(st.lists(st.sampled_from("abcdefgh"), unique=True), st.sets(st.sampled_from("abcdefgh")))
def test_what_only_a_list_has_is_placed_in_the_lists_order(listed: list[str], known: set[str]) -> None:
    seqs = {id: place for place, id in enumerate(listed, 1) if id in known}
    only = only_in([{"type": "human", "content": id, "id": id} for id in listed], seqs)
    places = {(seq, 0): id for id, seq in seqs.items()} | {tuple(one.position): one.payload["id"] for one in only}
    assert [places[place] for place in sorted(places)] == listed


@given(st.permutations(["a", "b", "c"]), st.permutations(["x", "y"]))
def test_results_stand_in_the_order_of_their_calls(first: list[str], second: list[str]) -> None:
    def turn(ids: str, results: list[str]) -> list[dict[str, Any]]:
        calls = [{"id": id, "name": "f", "args": {}} for id in ids]
        said = AIMessage("", tool_calls=calls).model_dump()
        return [said, *({"type": "tool", "content": id, "tool_call_id": id} for id in results)]

    ordered = in_order_of_calls([*turn("abc", first), *turn("xy", second)])
    assert [one["content"] for one in ordered] == ["", "a", "b", "c", "", "x", "y"]
