"""The end of threads, and copies of them: what goes, what stays, what begins anew."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import HumanMessage

from everthread import Conflict, Everthread, Invalid
from everthread.core.nouns import Ref
from everthread.langgraph import EverthreadSaver
from tests.checkpoints.graphs import DeltaState, State, build
from tests.checkpoints.test_history import THREAD, ask, said


async def checkpoints(saver: EverthreadSaver, thread: str = "t") -> int:
    return len([found async for found in saver.alist({"configurable": {"thread_id": thread}})])


async def test_delete_thread_keeps_the_log_and_a_later_put_begins_anew(et: Everthread) -> None:
    saver = EverthreadSaver(et)
    graph = build(saver)
    await graph.ainvoke(ask("say 1"), THREAD)
    before = await said(et)
    await saver.adelete_thread("t")
    assert await checkpoints(saver) == 0
    assert await said(et) == before
    await graph.ainvoke(ask("quiet 2"), THREAD)
    assert await said(et) == ["quiet 2"]
    assert await said(et, branch="main") == before
    assert (await et.verify()).ok


async def test_the_same_messages_again_after_a_deletion_are_messages_of_the_new_epoch(et: Everthread) -> None:
    saver = EverthreadSaver(et)
    await build(saver).ainvoke(ask("say 1"), THREAD)
    first = await said(et)
    await saver.adelete_thread("t")
    await build(saver).ainvoke(ask("say 1"), THREAD)
    assert await said(et) == first
    assert await said(et, branch="main") == first
    conversation = await et.conversations.get("t")
    assert (await conversation.message("say-1")).seq > 2


async def test_delete_thread_can_erase_and_the_thread_can_be_used_again(et: Everthread) -> None:
    saver = EverthreadSaver(et, on_delete="erase")
    graph = build(saver)
    for turn in range(3):
        await graph.ainvoke(ask(f"say secret {turn}"), THREAD)
        assert len((await graph.aget_state(THREAD)).values["messages"]) == 2
        assert await checkpoints(saver) == 4
        await saver.adelete_thread("t")
        assert (await graph.aget_state(THREAD)).values == {}
    assert [message async for message in _all_messages(et)] == []


async def _all_messages(et: Everthread) -> Any:
    for conversation in (await et.conversations.list()).items:
        async for message in conversation.messages():
            yield message


async def test_what_waits_in_writes_is_logged_before_a_thread_is_deleted(et: Everthread) -> None:
    saver = EverthreadSaver(et)
    graph = build(saver)
    await graph.ainvoke(ask("say 1"), THREAD)
    state = await graph.aget_state(THREAD)
    await saver.aput_writes(state.config, [("messages", [HumanMessage("waiting", id="w")])], "task")
    await saver.adelete_thread("t")
    assert (await said(et))[-1] == "waiting"


@pytest.mark.parametrize("schema", [State, DeltaState])
async def test_a_pruned_thread_goes_on_as_if_nothing_had_happened(et: Everthread, schema: type[Any]) -> None:
    saver = EverthreadSaver(et)
    graph = build(saver, schema)
    for turn in range(5):
        await graph.ainvoke(ask(f"say {turn}"), THREAD)
    before = (await graph.aget_state(THREAD)).values
    await saver.aprune(["t"])
    assert await checkpoints(saver) == 1
    assert (await build(EverthreadSaver(et), schema).aget_state(THREAD)).values == before
    await graph.ainvoke(ask("say more"), THREAD)
    assert (await graph.aget_state(THREAD)).values["messages"][:-2] == before["messages"]


async def test_hidden_checkpoints_go_when_nothing_needs_them(et: Everthread) -> None:
    saver = EverthreadSaver(et)
    graph = build(saver, DeltaState)
    await graph.ainvoke(ask("say 1"), THREAD)
    await saver.aprune(["t"])
    hidden = len((await et.store.checkpoints.all(Ref("local", "t"))).all) - 1
    assert hidden > 0
    await saver.aprune(["t"], strategy="delete")
    left = await et.store.checkpoints.all(Ref("local", "t"))
    assert (list(left.all), list(left.digests), list(left.writes)) == ([], [], [])
    assert len(await said(et)) == 2


async def test_deleting_a_run_keeps_what_a_delta_channel_needs(et: Everthread) -> None:
    saver = EverthreadSaver(et)
    graph = build(saver, DeltaState)
    for number in (1, 2):
        config: Any = {"configurable": {"thread_id": "t"}, "metadata": {"run_id": f"run-{number}"}}
        await graph.ainvoke(ask(f"say {number}"), config)
    before = (await graph.aget_state(THREAD)).values["messages"]
    await saver.adelete_for_runs(["run-1"])
    runs = {found.metadata.get("run_id") async for found in saver.alist(THREAD)}
    assert runs == {"run-2"}
    assert (await graph.aget_state(THREAD)).values["messages"] == before


@pytest.mark.parametrize("schema", [State, DeltaState])
async def test_a_copy_has_a_log_and_states_of_its_own(et: Everthread, schema: type[Any]) -> None:
    saver = EverthreadSaver(et)
    graph = build(saver, schema)
    for turn in ("say 1", "inner 2", "draft 3", "remove 4"):
        await graph.ainvoke(ask(turn), THREAD)
    copy: Any = {"configurable": {"thread_id": "copy"}}
    await saver.acopy_thread("t", "copy")
    originals = [state.values async for state in graph.aget_state_history(THREAD)]
    assert [state.values async for state in graph.aget_state_history(copy)] == originals
    assert await said(et, "copy") == await said(et)
    await et.erase(conversation="t")
    assert [state.values async for state in graph.aget_state_history(copy)] == originals
    with pytest.raises(Conflict):
        await saver.acopy_thread("copy", "copy")


async def test_a_copy_leaves_behind_what_was_erased(et: Everthread) -> None:
    saver = EverthreadSaver(et)
    graph = build(saver)
    await graph.ainvoke(ask("say 1"), THREAD)
    await graph.ainvoke(ask("say 2"), THREAD)
    await et.erase(conversation="t", message="say-1")
    await saver.acopy_thread("t", "copy")
    copied = (await graph.aget_state({"configurable": {"thread_id": "copy"}})).values["messages"]
    assert copied == (await graph.aget_state(THREAD)).values["messages"]
    assert len(copied) == 3


@pytest.mark.parametrize("key", ["source'); DROP TABLE entries; --", "a\x00b", "", 7])
async def test_a_filter_key_that_is_none_is_refused(et: Everthread, key: Any) -> None:
    saver = EverthreadSaver(et)
    with pytest.raises(Invalid):
        _ = [found async for found in saver.alist(None, filter={key: 1})]


async def test_a_call_that_blocks_inside_its_own_loop_is_refused(et: Everthread) -> None:
    saver = EverthreadSaver(et)
    with pytest.raises(Conflict):
        saver.get_tuple(THREAD)
