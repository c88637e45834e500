"""Any checkpointer with an archive before it: the log has all that was said, each once, in order."""

from __future__ import annotations

import asyncio
import operator
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypedDict

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, MessagesState, StateGraph

import everthread
from benchmarks.scenarios import (
    SCENES,
    Rig,
    Truth,
    deepagents_with_summaries,
    summaries_over_many_turns,
    texts_in_state,
)
from everthread import Everthread, Invalid
from everthread.core.errors import Conflict, StoreBusy
from everthread.core.nouns import Ref
from everthread.langgraph import ArchivingSaver, EverthreadSaver, open_sync
from tests.langgraph.captures import archiving, children_of, listening, paths_of, texts_in
from tests.langgraph.stores import Faulty, over

NEED_MIDDLEWARE = {'durability="exit" with summaries', "deepagents, tool result of 180 kB"}
SEEN = [name for name in SCENES if name not in NEED_MIDDLEWARE]
THREAD: Any = {"configurable": {"thread_id": "t"}}


@pytest.fixture
async def memory() -> AsyncIterator[Everthread]:
    async with everthread.open("memory://") as opened_one:
        yield opened_one


def echo(saver: BaseCheckpointSaver[Any]) -> Any:
    """A graph that answers each question."""

    def answer(state: MessagesState) -> dict[str, Any]:
        return {"messages": [AIMessage(f"re: {state['messages'][-1].text}")]}

    builder = StateGraph(MessagesState)
    builder.add_node("answer", answer)
    builder.add_edge(START, "answer")
    return builder.compile(checkpointer=saver)


# -- what is captured ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scene", SEEN)
async def test_the_log_has_all_that_was_said_once_and_in_order(et: Everthread, scene: str) -> None:
    truth = await SCENES[scene](archiving(et))
    conversation = await et.conversations.get("scene")
    assert await texts_in(conversation) == truth.paths[-1]
    paths = await paths_of(conversation)
    assert [path for path in truth.paths if path not in paths] == []
    assert await children_of(conversation) == truth.subagents
    assert (await et.verify()).problems == ()


@pytest.mark.parametrize("scene", [name for name in SEEN if "again" not in name])
async def test_a_stream_that_is_archived_too_doubles_nothing(memory: Everthread, scene: str) -> None:
    truth = await SCENES[scene](listening(memory, archiving(memory)))
    conversation = await memory.conversations.get("scene")
    assert await texts_in(conversation) == truth.paths[-1]
    assert await children_of(conversation) == truth.subagents


async def test_a_summary_of_langchain_is_kept_and_is_no_history(memory: Everthread) -> None:
    rig = archiving(memory)
    await summaries_over_many_turns(rig)
    listed = (await rig.agent.aget_state(rig.config)).values["messages"]
    (summary,) = [message for message in listed if message.additional_kwargs.get("lc_source")]
    conversation = await memory.conversations.get("scene")
    kept = await conversation.message(summary.id)
    assert kept.is_summary
    assert kept.text == summary.text
    assert "lc_source" in kept.payload["additional_kwargs"]


async def test_a_summary_event_of_deepagents_is_kept_with_what_it_stands_for(memory: Everthread) -> None:
    rig = archiving(memory)
    await deepagents_with_summaries(rig)
    event = (await rig.agent.aget_state(rig.config)).values["_summarization_event"]
    entries = await memory.store.log.scan(Ref("local", "scene"), after=0, limit=1000)
    summaries = [entry for entry in entries if entry.kind == 1]
    assert summaries
    kept = await (await memory.conversations.get("scene")).message(summaries[-1].id)
    assert kept.text == event["summary_message"].text
    assert kept.payload["additional_kwargs"]["cutoff_index"] == event["cutoff_index"]


@pytest.mark.parametrize(
    ("play", "framework"), [(summaries_over_many_turns, "langchain"), (deepagents_with_summaries, "deepagents")]
)
async def test_a_framework_s_summary_is_told_as_its_compaction(
    et: Everthread, play: Callable[[Rig], Awaitable[Truth]], framework: str
) -> None:
    await play(archiving(et))
    conversation = await et.conversations.get("scene")
    made = [one async for one in conversation.compactions()]
    assert made
    assert {(one.trigger, one.strategy, one.is_live) for one in made} == {("framework", framework, False)}
    newest = made[-1]
    assert newest.summary == (await conversation.message(newest.id)).text
    assert 0 < newest.first_seq < newest.last_seq
    assert newest.original_count > 1
    assert newest.tokens_after > 0
    told = await conversation.compaction_diff(newest.id)
    assert told.originals[-1].seq == newest.last_seq
    assert await conversation.summary() is None
    with pytest.raises(Conflict, match=framework):
        await conversation.undo_compaction(newest.id)
    await et.erase(conversation="scene", message=newest.id)
    assert newest.id not in {one.id async for one in conversation.compactions()}


async def test_removed_messages_are_marked_and_still_shown(et: Everthread) -> None:
    rig = archiving(et)
    truth = await SCENES["update_state with RemoveMessage"](rig)
    left = set(await texts_in_state(rig))
    conversation = await et.conversations.get("scene")
    said = [message async for message in conversation.messages()]
    assert [message.text for message in said] == truth.paths[0]
    assert {message.text for message in said if message.is_removed} == set(truth.paths[0]) - left
    assert (await et.verify()).ok


class Plain(TypedDict):
    messages: Annotated[list[Any], operator.add]


async def test_dicts_and_messages_without_ids_are_taken_by_the_put_that_names_them(et: Everthread) -> None:
    given: list[Any] = [{"role": "user", "content": "hi"}, HumanMessage("hi"), AIMessageChunk(content="part")]

    def answer(state: Plain) -> dict[str, Any]:
        return {"messages": [AIMessage("hello"), AIMessage("hello")]}

    builder = StateGraph(Plain)
    builder.add_node("answer", answer)
    builder.add_edge(START, "answer")
    graph = builder.compile(checkpointer=ArchivingSaver(InMemorySaver(), et))
    await graph.ainvoke({"messages": given[:2]}, THREAD)
    conversation = await et.conversations.get("t")
    assert await texts_in(conversation) == ["hi", "hi", "hello", "hello"]
    await graph.ainvoke({"messages": given[2:]}, THREAD)
    assert "part" not in await texts_in(conversation)


async def test_a_message_that_is_edited_in_place_after_it_was_read_is_a_revision(et: Everthread) -> None:
    def edit(state: MessagesState) -> dict[str, Any]:
        if len(state["messages"]) > 2:
            state["messages"][0].content = "edited"
        return {"messages": [AIMessage("done")]}

    builder = StateGraph(MessagesState)
    builder.add_node("edit", edit)
    builder.add_edge(START, "edit")
    graph: Any = builder.compile(checkpointer=ArchivingSaver(InMemorySaver(), et))
    for text in ("first", "second"):
        await graph.ainvoke({"messages": [text]}, THREAD, durability="sync")
    conversation = await et.conversations.get("t")
    assert await texts_in(conversation) == ["edited", "done", "second", "done"]
    told = [message.text async for message in conversation.messages(revisions=True)]
    assert told[:2] == ["first", "edited"]


async def test_another_owner_is_named_by_the_call(memory: Everthread) -> None:
    graph = echo(ArchivingSaver(InMemorySaver(), memory, owner="anna"))
    await graph.ainvoke({"messages": ["hi"]}, THREAD)
    await graph.ainvoke({"messages": ["ho"]}, {"configurable": {"thread_id": "t", "everthread_owner": "ben"}})
    assert await texts_in(await memory.conversations.get("t", "anna")) == ["hi", "re: hi"]
    assert (await texts_in(await memory.conversations.get("t", "ben")))[-1] == "re: ho"


# -- a saver like the one it wraps -----------------------------------------------------------------------------------


async def test_it_passes_what_the_wrapped_saver_passes_of_the_conformance_suite(memory: Everthread) -> None:
    async def passed(make: Any) -> dict[str, int]:
        @checkpointer_test(name="one")
        async def one() -> AsyncGenerator[BaseCheckpointSaver[Any], None]:
            yield make()

        report = await validate(one)
        return {name: result.tests_passed for name, result in report.results.items() if not result.failures}

    bare = await passed(InMemorySaver)
    archived = await passed(lambda: ArchivingSaver(InMemorySaver(), memory))
    assert {name: archived.get(name) for name in bare if bare[name]} == {n: count for n, count in bare.items() if count}
    assert sum(bare.values()) > 40


def test_a_program_that_is_not_async_is_archived_too(tmp_path: Path) -> None:
    with (
        open_sync(f"sqlite:///{tmp_path / 'et.db'}") as et,
        SqliteSaver.from_conn_string(str(tmp_path / "checkpoints.db")) as inner,
    ):
        graph = echo(ArchivingSaver(inner, et))
        graph.invoke({"messages": ["one"]}, THREAD)
        graph.invoke({"messages": ["two"]}, THREAD)
        assert [m.text for m in graph.get_state(THREAD).values["messages"]] == ["one", "re: one", "two", "re: two"]
    assert asyncio.run(read_back(f"sqlite:///{tmp_path / 'et.db'}")) == ["one", "re: one", "two", "re: two"]


async def read_back(url: str, thread: str = "t") -> list[str]:
    async with everthread.open(url) as et:
        return await texts_in(await et.conversations.get(thread))


async def test_a_thread_that_is_deleted_and_begun_anew_keeps_both_stories(et: Everthread) -> None:
    saver = ArchivingSaver(InMemorySaver(), et)
    graph = echo(saver)
    await graph.ainvoke({"messages": ["before"]}, THREAD)
    await saver.adelete_thread("t")
    assert await saver.aget_tuple(THREAD) is None
    await graph.ainvoke({"messages": ["after"]}, THREAD)
    conversation = await et.conversations.get("t")
    assert await texts_in(conversation) == ["after", "re: after"]
    assert ["before", "re: before"] in await paths_of(conversation)


def test_a_saver_over_the_log_is_not_wrapped_again(tmp_path: Path) -> None:
    with open_sync("memory://") as et:
        with EverthreadSaver.from_url("memory://") as saver, pytest.raises(Invalid, match="already"):
            ArchivingSaver(saver, et)
        with pytest.raises(Invalid, match="on_failure"):
            ArchivingSaver(InMemorySaver(), et, on_failure="ignore")  # type: ignore[arg-type]


async def test_a_blocking_call_from_the_loop_of_the_database_is_refused(memory: Everthread) -> None:
    graph = echo(ArchivingSaver(InMemorySaver(), memory))
    with pytest.raises(Conflict, match=r"async verb.*open_sync"):
        graph.invoke({"messages": ["hi"]}, THREAD)


# -- when the archive fails ------------------------------------------------------------------------------------------


async def test_a_failing_archive_fails_the_write_and_nothing_is_forwarded() -> None:
    store = Faulty()
    async with over(store) as et:
        inner = InMemorySaver()
        graph = echo(ArchivingSaver(inner, et))
        store.is_down = True
        with pytest.raises(StoreBusy):
            await graph.ainvoke({"messages": ["hi"]}, THREAD)
        assert inner.get_tuple(THREAD) is None


async def test_what_waits_in_the_spool_is_archived_in_its_order_before_the_next(tmp_path: Path) -> None:
    store = Faulty()
    async with over(store) as et:
        saver = ArchivingSaver(InMemorySaver(), et, on_failure="spool", spool=tmp_path / "spool")
        graph = echo(saver)
        await graph.ainvoke({"messages": ["one"]}, THREAD)
        store.is_down = True
        await graph.ainvoke({"messages": ["two"]}, THREAD)
        waiting = list((tmp_path / "spool").iterdir())
        assert waiting
        store.is_down = False
        assert await texts_in(await et.conversations.get("t")) == ["one", "re: one"]
        await graph.ainvoke({"messages": ["three"]}, THREAD)
        conversation = await et.conversations.get("t")
        assert await texts_in(conversation) == ["one", "re: one", "two", "re: two", "three", "re: three"]
        assert list((tmp_path / "spool").iterdir()) == []


async def test_a_spool_is_taken_up_by_another_process(tmp_path: Path) -> None:
    store = Faulty()
    async with over(store) as et:
        store.is_down = True
        graph = echo(ArchivingSaver(InMemorySaver(), et, on_failure="spool", spool=tmp_path))
        await graph.ainvoke({"messages": ["one"]}, THREAD)
        store.is_down = False
        later = ArchivingSaver(InMemorySaver(), et, on_failure="spool", spool=tmp_path)
        await later.catch_up()
        assert await texts_in(await et.conversations.get("t")) == ["one", "re: one"]


# -- what is stored runs nothing -------------------------------------------------------------------------------------


@dataclass
class Trap:
    """Tells when it is built."""

    built: ClassVar[int] = 0
    word: str = ""

    def __post_init__(self) -> None:
        Trap.built += 1


async def test_i25_a_spool_that_names_a_class_builds_nothing_of_it(et: Everthread, tmp_path: Path) -> None:
    saver = ArchivingSaver(InMemorySaver(), et, on_failure="spool", spool=tmp_path)
    kind, body = JsonPlusSerializer().dumps_typed(
        ["WritesRecord", ["local", "t", "", "c"], [["messages", Trap("x")]], "a", ""]
    )
    (tmp_path / "1.record").write_bytes(kind.encode() + b"\n" + body)
    Trap.built = 0
    with pytest.raises(Invalid, match="Trap"):
        await saver.catch_up()
    (tmp_path / "1.record").write_bytes(b"pickle\ncos\nsystem\n(S'true'\ntR.")
    with pytest.raises(Invalid, match="pickle"):
        await saver.catch_up()
    assert Trap.built == 0
