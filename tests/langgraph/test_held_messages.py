"""Messages between two transactions: held by a write until a checkpoint names them, or logged in a child whose
checkpoint never came. History shows them, and none is lost or doubled when the run goes on."""

from __future__ import annotations

import asyncio
import time
from typing import Any, TypeVar

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph

from everthread import Everthread
from everthread.adapters.checkpoints.checkpoint_intents import PutCheckpoint
from everthread.adapters.stores.in_memory.log import InMemoryLog
from everthread.core.errors import StoreBusy
from everthread.core.log import Intent
from everthread.core.nouns import Ref
from everthread.langgraph import ArchivingSaver, EverthreadSaver
from everthread.testing import InMemoryStore
from tests.langgraph.captures import children_of, paths_of, texts_in
from tests.langgraph.stores import over
from tests.langgraph.test_archiving_saver import THREAD, echo

R = TypeVar("R")


class Sick(Exception):
    """A node that fails the first time."""


def two_at_once(saver: Any) -> Any:
    """Two nodes of one step, of which the second fails once."""
    failed: list[bool] = []

    def slow(state: MessagesState) -> dict[str, Any]:
        if not failed:
            failed.append(True)
            time.sleep(0.1)  # a step that fails sooner than the other has ended takes that along
            raise Sick
        return {"messages": [AIMessage("from the second", id="b")]}

    builder = StateGraph(MessagesState)
    builder.add_node("first", lambda state: {"messages": [AIMessage("from the first", id="a")]})
    builder.add_node("second", slow)
    builder.add_edge(START, "first")
    builder.add_edge(START, "second")
    return builder.compile(checkpointer=saver)


@pytest.mark.parametrize("kind", ["over the log", "archiving"])
async def test_what_a_write_holds_is_shown_in_the_full_history_before_any_checkpoint_names_it(
    et: Everthread, kind: str
) -> None:
    saver: Any = EverthreadSaver(et) if kind == "over the log" else ArchivingSaver(InMemorySaver(), et)
    graph = two_at_once(saver)
    with pytest.raises(Sick):
        await graph.ainvoke({"messages": ["go"]}, THREAD)
    told = await et.full_history("t", saver=saver)
    assert [message["content"] for message in told["values"]["messages"]] == ["go", "from the first"]
    assert (told["archived_count"], told["merged_count"]) == (1, 2)
    await graph.ainvoke(None, THREAD)
    whole = ["go", "from the first", "from the second"]
    assert await texts_in(await et.conversations.get("t")) == whole
    told = await et.full_history("t", saver=saver)
    assert [message["content"] for message in told["values"]["messages"]] == whole
    assert (told["archived_count"], told["merged_count"]) == (3, 3)


class DiesBetweenLog(InMemoryLog):
    """Has the entries of a child, and fails before the subgraph's checkpoint is there."""

    failures = 0
    asked = 0

    async def write(self, ref: Ref, intent: Intent[R]) -> R:
        if isinstance(intent, PutCheckpoint) and intent.namespace:
            self.asked += 1
            if self.asked > 1 and self.failures < 1:
                self.failures += 1
                raise StoreBusy("somebody else holds the database; nothing was stored: try again")
        return await super().write(ref, intent)


class DiesBetween(InMemoryStore):
    """A store with such a log."""

    log: DiesBetweenLog

    def __init__(self) -> None:
        super().__init__()
        self.log = DiesBetweenLog(self._database, self.turns, self.jobs)


def with_a_subgraph(saver: Any) -> Any:
    """A graph whose inner one has a list of its own."""
    inner = StateGraph(MessagesState)
    inner.add_node("think", lambda state: {"messages": [AIMessage("thinking", id="x")]})
    inner.add_node("conclude", lambda state: {"messages": [AIMessage("concluded", id="y")]})
    inner.add_edge(START, "think")
    inner.add_edge("think", "conclude")
    thinking: Any = inner.compile()

    async def ask(state: MessagesState) -> dict[str, Any]:
        question = HumanMessage("a question of its own", id="q")
        found = await thinking.ainvoke({"messages": [question]})
        return {"messages": [AIMessage(f"it says: {found['messages'][-1].text}", id="z")]}

    builder = StateGraph(MessagesState)
    builder.add_node("ask", ask)
    builder.add_edge(START, "ask")
    return builder.compile(checkpointer=saver)


async def test_a_failure_between_a_childs_entries_and_its_checkpoint_loses_and_doubles_nothing() -> None:
    store = DiesBetween()
    async with over(store) as et:
        graph = with_a_subgraph(EverthreadSaver(et))
        with pytest.raises(StoreBusy):
            await graph.ainvoke({"messages": ["go"]}, THREAD, durability="sync")
        assert store.log.failures == 1
        await graph.ainvoke(None, THREAD, durability="sync")
        conversation = await et.conversations.get("t")
        assert await texts_in(conversation) == ["go", "it says: concluded"]
        (child,) = await children_of(conversation)
        assert child == ["a question of its own", "thinking", "concluded"]
        assert (await et.verify()).problems == ()


class Cut(ArchivingSaver):
    """Comes as far as the question of the second turn."""

    async def aput(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        if metadata["step"] == 3:
            raise Sick
        return await super().aput(config, checkpoint, metadata, new_versions)


class Overtaken(ArchivingSaver):
    """Is told of a checkpoint after the writes that belong to it, as may be: LangGraph awaits neither."""

    async def aput(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        await asyncio.sleep(0.05)
        return await super().aput(config, checkpoint, metadata, new_versions)


@pytest.mark.parametrize("goes_on", ["with the question", "before the question"])
async def test_writes_that_overtake_their_checkpoint_double_nothing_that_a_cut_off_run_left(
    et: Everthread, goes_on: str
) -> None:
    inner = InMemorySaver()
    await echo(ArchivingSaver(inner, et)).ainvoke({"messages": ["one"]}, THREAD)
    answered = await inner.aget_tuple(THREAD)
    assert answered is not None
    with pytest.raises(Sick):
        await echo(Cut(inner, et)).ainvoke({"messages": ["two"]}, THREAD)
    graph = echo(Overtaken(inner, et))
    if goes_on == "with the question":
        await graph.ainvoke(None, THREAD)
        await graph.ainvoke({"messages": ["three"]}, THREAD)
    else:
        await graph.ainvoke({"messages": ["three"]}, answered.config)
    paths = await paths_of(await et.conversations.get("t"))
    assert any(path[:3] == ["one", "re: one", "two"] for path in paths)
    assert all(len(path) == len(set(path)) for path in paths)
    assert any(path[-2:] == ["three", "re: three"] for path in paths)
