"""A message belongs to the conversation that first logged it, in whatever order LangGraph hands checkpoints over."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Literal

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, interrupt

import everthread
from everthread import Conversation, Everthread
from everthread.core.errors import StoreError
from everthread.langgraph import ArchivingSaver, EverthreadSaver, open_sync, run_sync

CONFIG: Any = {"configurable": {"thread_id": "t"}}
Durability = Literal["sync", "async", "exit"]
DURABILITIES: tuple[Durability, ...] = ("sync", "async", "exit")
RUNS = 4
"""The order in which checkpoints arrive varies."""
Saver = Callable[[Everthread], BaseCheckpointSaver[Any]]


def archiving(et: Everthread) -> BaseCheckpointSaver[Any]:
    return ArchivingSaver(InMemorySaver(), et)


SAVERS = pytest.mark.parametrize("saver", [EverthreadSaver, archiving])
DURABLE = pytest.mark.parametrize("durability", DURABILITIES)


def says(text: str) -> Any:
    return lambda state: {"messages": [AIMessage(text)]}


def asks(state: Any) -> Any:
    return {"messages": [AIMessage(f"heard {interrupt('well?')}")]}


def in_a_row(*acts: tuple[str, Any]) -> Any:
    graph = StateGraph(MessagesState)
    for name, act in acts:
        graph.add_node(name, act)
    for before, after in zip([START, *(name for name, _ in acts)], [name for name, _ in acts], strict=False):
        graph.add_edge(before, after)
    return graph


def around(inner: Any) -> Any:
    """A graph that says two things, then hands all of them to a subgraph."""
    return in_a_row(("plan", says("planned")), ("look", says("found " + "much " * 500)), ("inner", inner))


GIVEN = ["hi", "planned", "found " + "much " * 500]
START_STATE: Any = {"messages": [HumanMessage("hi")]}


async def texts(conversation: Conversation) -> list[str]:
    return [message.text async for message in conversation.messages()]


async def logs(et: Everthread) -> list[list[str]]:
    """What the thread says, then what each of its children says, the longest namespace last."""
    thread = await et.conversations.get("t")
    children = sorted([child async for child in thread.children()], key=lambda child: len(child.metadata["namespace"]))
    return [await texts(thread), *[await texts(child) for child in children]]


async def play(url: str, saver: Saver, graph: Any, inputs: Sequence[Any], durability: Durability) -> list[list[str]]:
    async with everthread.open(url, worker=False) as et:
        compiled = graph.compile(checkpointer=saver(et))
        for given in inputs:
            await compiled.ainvoke(given, CONFIG, durability=durability)
        found = await logs(et)
        report = await et.verify()
        assert report.ok
    return found


def play_sync(url: str, saver: Saver, graph: Any, inputs: Sequence[Any], durability: Durability) -> list[list[str]]:
    with open_sync(url) as et:
        compiled = graph.compile(checkpointer=saver(et))
        for given in inputs:
            compiled.invoke(given, CONFIG, durability=durability)
        return run_sync(et, logs(et))


@DURABLE
@SAVERS
async def test_what_a_subgraph_was_handed_is_not_copied_to_its_child(
    url: str, saver: Saver, durability: Durability
) -> None:
    found = await play(url, saver, around(in_a_row(("talk", says("inside"))).compile()), [START_STATE], durability)
    # With "exit", LangGraph saves a subgraph that ends as its graph's answer only.
    assert found == [[*GIVEN, "inside"], *([] if durability == "exit" else [["inside"]])]


@DURABLE
@SAVERS
def test_the_same_for_a_program_without_asyncio(url: str, saver: Saver, durability: Durability) -> None:
    found = play_sync(url, saver, around(in_a_row(("talk", says("inside"))).compile()), [START_STATE], durability)
    assert found == [[*GIVEN, "inside"], *([] if durability == "exit" else [["inside"]])]


def asking() -> Any:
    return around(in_a_row(("talk", says("inside")), ("ask", asks)).compile())


@DURABLE
@SAVERS
def test_a_subgraph_that_asks_has_its_own_words_in_its_child(url: str, saver: Saver, durability: Durability) -> None:
    found = play_sync(url, saver, asking(), [START_STATE, Command(resume="yes")], durability)
    own = ["inside"] if durability == "exit" else ["inside", "heard yes"]
    assert found == [[*GIVEN, "inside", "heard yes"], own]


@DURABLE
@SAVERS
async def test_at_the_question_nothing_is_missing_and_nothing_doubled(
    url: str, saver: Saver, durability: Durability
) -> None:
    assert await play(url, saver, asking(), [START_STATE], durability) == [GIVEN, ["inside"]]


@pytest.mark.parametrize("durability", ["sync", "async"])
@SAVERS
async def test_nothing_is_doubled_by_a_subgraph_in_a_subgraph(url: str, saver: Saver, durability: Durability) -> None:
    outer = in_a_row(("talk", says("outer")), ("innermost", in_a_row(("say", says("innermost"))).compile()))
    found = await play(url, saver, around(outer.compile()), [START_STATE], durability)
    assert found[0] == [*GIVEN, "outer", "innermost"]
    assert [text for child in found[1:] for text in child] == ["outer", "innermost"]


@SAVERS
def test_a_subgraph_in_a_subgraph_that_asks_at_exit(url: str, saver: Saver) -> None:
    outer = in_a_row(
        ("talk", says("outer")), ("innermost", in_a_row(("say", says("innermost")), ("ask", asks)).compile())
    )
    found = play_sync(url, saver, around(outer.compile()), [START_STATE], "exit")
    assert found == [GIVEN, ["outer"], ["innermost"]]


@DURABLE
@SAVERS
def test_a_subgraph_with_a_memory_of_its_own(url: str, saver: Saver, durability: Durability) -> None:
    inner = in_a_row(("talk", lambda state: {"messages": [AIMessage(f"answer {len(state['messages'])}")]}))
    graph = in_a_row(("inner", inner.compile(checkpointer=True)))
    found = play_sync(url, saver, graph, [{"messages": [HumanMessage(text)]} for text in "abc"], durability)
    # With "exit", the thread's checkpoint has the answer already when the subgraph's can be logged.
    own = [] if durability == "exit" else [["answer 1", "answer 3", "answer 5"]]
    assert found == [["a", "answer 1", "b", "answer 3", "c", "answer 5"], *own]


@pytest.mark.parametrize("durability", ["async", "exit"])
async def test_the_checkpoint_of_a_subgraph_is_the_same_as_with_langgraphs_own(
    url: str, durability: Durability
) -> None:
    async def states(saver: BaseCheckpointSaver[Any]) -> list[list[list[Any]]]:
        graph = asking().compile(checkpointer=saver)
        found: list[list[list[Any]]] = []
        inputs: list[Any] = [START_STATE, Command(resume="yes")]
        for given in inputs:
            await graph.ainvoke(given, CONFIG, durability=durability)
            state = await graph.aget_state(CONFIG, subgraphs=True)
            inner = [task.state.values["messages"] for task in state.tasks if task.state]
            found.append([[message.text for message in said] for said in [state.values["messages"], *inner]])
        return found

    async with everthread.open(url, worker=False) as et:
        assert await states(EverthreadSaver(et)) == await states(InMemorySaver())


class FailingOnce(EverthreadSaver):
    """Cannot store the checkpoint that a subgraph is started from, once."""

    fails = True

    async def aput(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        if self.fails and metadata["step"] == 2 and not metadata["parents"]:
            self.fails = False
            await asyncio.sleep(0.2)  # the subgraph's come first
            raise StoreError("the disk is full")
        return await super().aput(config, checkpoint, metadata, new_versions)


async def test_words_of_a_subgraph_are_logged_later_if_the_checkpoint_it_was_started_from_is_lost(url: str) -> None:
    async with everthread.open(url, worker=False) as et:
        graph = asking().compile(checkpointer=FailingOnce(et))
        with pytest.raises(StoreError):
            await graph.ainvoke(START_STATE, CONFIG)
        await graph.ainvoke(None, CONFIG)
        found = await logs(et)
        assert found[0] == GIVEN
        assert "inside" in found[1]
        assert not {"hi", "planned"} & {text for child in found[1:] for text in child}


async def test_it_does_not_depend_on_the_order(tmp_path: Any) -> None:
    for number in range(RUNS):
        for saver in (EverthreadSaver, archiving):
            url = f"sqlite:///{tmp_path}/{number}-{saver.__name__}.db"
            found = await asyncio.to_thread(
                play_sync, url, saver, asking(), [START_STATE, Command(resume="y")], "async"
            )
            assert found == [[*GIVEN, "inside", "heard y"], ["inside", "heard y"]]
