"""A graph's stream through `archive_stream`: the log is what was really said, each once, in order."""

from __future__ import annotations

import asyncio
import operator
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, TypedDict

import pytest
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph

import everthread
from everthread import Everthread, Invalid
from everthread.adapters.stores.in_memory.log import InMemoryLog
from everthread.core.clock import system_clock
from everthread.core.log import Intent
from everthread.core.nouns import Ref
from everthread.history.intents import Append
from everthread.langchain import to_langchain
from everthread.langgraph import archive_stream
from everthread.runtime import Runtime
from everthread.testing import InMemoryStore, Reply, ScriptedModel
from tests.langgraph.agents import Talk, last_answer, said_by, said_in


@pytest.fixture
async def memory() -> AsyncIterator[Everthread]:
    async with everthread.open("memory://") as opened:
        yield opened


async def events(*states: Any) -> AsyncIterator[Any]:
    for state in states:
        yield state


async def drain(stream: Any) -> list[Any]:
    return [event async for event in stream]


# -- a destructive summariser ----------------------------------------------------------------------------------------


async def test_the_log_has_every_message_once_and_in_order_whatever_the_middleware_removes(et: Everthread) -> None:
    talk = Talk(et)
    for number in range(15):
        await talk.ask(f"question {number}")
    conversation = await talk.conversation()
    assert len(talk.recorder.messages) == 15 * 5
    assert len(await talk.checkpoint()) < 20
    assert await said_in(conversation) == said_by(talk.recorder.messages)
    assert (await et.verify()).ok


async def test_a_summary_inside_one_long_run_loses_nothing(et: Everthread) -> None:
    steps = [Reply(text=f"step {number}", calls=[("look_up", {"word": str(number)})]) for number in range(40)]
    talk = Talk(et, model=ScriptedModel([*steps, "done"]))
    await talk.ask("forty steps, please")
    assert len(talk.recorder.messages) == 1 + 2 * 40 + 1
    assert len(await talk.checkpoint()) < 20
    assert await said_in(await talk.conversation()) == said_by(talk.recorder.messages)


async def test_a_summary_is_kept_but_is_no_history(memory: Everthread) -> None:
    talk = Talk(memory)
    for number in range(8):
        await talk.ask(f"question {number}")
    (summary,) = [message for message in await talk.checkpoint() if "lc_source" in message.additional_kwargs]
    conversation = await talk.conversation()
    assert summary.id is not None
    assert (await conversation.message(summary.id)).is_summary
    assert summary.id not in {id for id, _ in await said_in(conversation)}


async def test_messages_come_back_equal_to_what_the_graph_had(memory: Everthread) -> None:
    talk = Talk(memory, trigger=1000)
    await talk.ask("one")
    await talk.ask("two")
    kept = [message async for message in (await talk.conversation()).messages()]
    assert to_langchain(kept) == await talk.checkpoint()


# -- failures --------------------------------------------------------------------------------------------------------


async def test_what_was_said_before_the_model_failed_is_in_the_log(et: Everthread) -> None:
    model = ScriptedModel([Reply(text="let me see", calls=[("look_up", {"word": "x"})]), TimeoutError("too slow")])
    talk = Talk(et, model=model)
    with pytest.raises(TimeoutError):
        await talk.ask("will this work?")
    assert len(talk.recorder.messages) == 3
    assert await said_in(await talk.conversation()) == said_by(talk.recorder.messages)


async def test_a_log_that_fails_fails_the_stream_before_the_event_is_seen(memory: Everthread) -> None:
    closed: list[bool] = []

    async def graph() -> AsyncIterator[Any]:
        try:
            yield {"messages": [HumanMessage("fine", id="m1")]}
            yield {"messages": [HumanMessage("fine", id="m1"), HumanMessage("not fine", id="x" * 129)]}
        finally:
            closed.append(True)

    stream = archive_stream(memory, graph(), "t")
    assert await anext(stream)
    with pytest.raises(Invalid):
        await anext(stream)
    assert closed


async def test_who_stops_listening_stops_the_graph(memory: Everthread) -> None:
    closed: list[bool] = []

    async def graph() -> AsyncIterator[Any]:
        try:
            while True:
                yield {"messages": [HumanMessage("fine", id="m1")]}
        finally:
            closed.append(True)

    stream = archive_stream(memory, graph(), "t")
    await anext(stream)
    await stream.aclose()
    assert closed


@pytest.mark.parametrize("mode", ["updates", "messages", ["updates", "custom"]], ids=str)
async def test_a_stream_that_archives_nothing_says_so(memory: Everthread, mode: Any) -> None:
    talk = Talk(memory)
    stream = talk.agent.astream({"messages": [HumanMessage("hi")]}, talk.config, stream_mode=mode)
    with pytest.raises(Invalid, match="values"):
        await drain(archive_stream(memory, stream, "t"))


async def test_a_stream_without_events_is_no_failure(memory: Everthread) -> None:
    assert await drain(archive_stream(memory, events(), "t")) == []


async def test_a_channel_that_holds_no_messages_is_refused(memory: Everthread) -> None:
    with pytest.raises(Invalid, match="channel"):
        await drain(archive_stream(memory, events({"messages": 7}), "t"))
    with pytest.raises(Invalid, match=r"messages\[0\]"):
        await drain(archive_stream(memory, events({"messages": [7]}), "t"))


# -- events ----------------------------------------------------------------------------------------------------------


async def test_every_event_is_passed_on_as_the_same_object(memory: Everthread) -> None:
    talk = Talk(memory)
    bare: list[Any] = []

    async def recorded() -> AsyncIterator[Any]:
        async for event in talk.bare_stream(HumanMessage("hi")):
            bare.append(event)
            yield event

    passed = await drain(archive_stream(memory, recorded(), "t"))
    assert len(passed) >= 4
    assert [id(event) for event in passed] == [id(event) for event in bare]


@pytest.mark.parametrize(
    "options",
    [
        {"stream_mode": "values"},
        {"stream_mode": "values", "subgraphs": True},
        {"stream_mode": ["values"]},
        {"stream_mode": ["updates", "values", "messages"]},
        {"stream_mode": ["messages", "values"], "subgraphs": True},
        {"stream_mode": "values", "version": "v2"},
        {"stream_mode": ["values", "updates"], "subgraphs": True, "version": "v2"},
    ],
    ids=str,
)
async def test_every_form_of_a_stream_is_understood(memory: Everthread, options: dict[str, Any]) -> None:
    talk = Talk(memory)
    stream = talk.agent.astream({"messages": [HumanMessage("hi")]}, talk.config, **options)
    await drain(archive_stream(memory, stream, "talk"))
    assert await said_in(await talk.conversation()) == said_by(await talk.checkpoint())


@dataclass
class ObjectState:
    messages: list[BaseMessage] = field(default_factory=list)


async def test_a_state_may_be_an_object(memory: Everthread) -> None:
    await drain(archive_stream(memory, events(ObjectState([HumanMessage("hi", id="m1")])), "t"))
    assert await said_in(await memory.conversations.get("t")) == [("m1", "hi")]


async def test_a_state_without_messages_is_passed_over(memory: Everthread) -> None:
    await drain(archive_stream(memory, events({}, {"other": 1}, {"messages": [HumanMessage("hi", id="m1")]}), "t"))
    assert await said_in(await memory.conversations.get("t")) == [("m1", "hi")]


async def test_no_other_channel_is_history(memory: Everthread) -> None:
    state = {"messages": [HumanMessage("hi", id="m1")], "scratch": [HumanMessage("draft", id="m2")]}
    await drain(archive_stream(memory, events(state), "t"))
    assert await said_in(await memory.conversations.get("t")) == [("m1", "hi")]


# -- again, and changed ----------------------------------------------------------------------------------------------


async def test_the_same_run_twice_logs_nothing_twice(et: Everthread) -> None:
    talk = Talk(et)
    recorded = await drain(talk.bare_stream(HumanMessage("hi")))
    for _ in range(2):
        await drain(archive_stream(et, events(*recorded), "talk"))
    assert await said_in(await talk.conversation()) == said_by(await talk.checkpoint())
    assert (await et.verify()).entries == len(await talk.checkpoint())


async def test_a_message_edited_between_two_runs_is_a_revision_in_its_place(et: Everthread) -> None:
    talk = Talk(et)
    await talk.ask("one")
    answer = last_answer(await talk.checkpoint())
    await talk.agent.aupdate_state(talk.config, {"messages": [AIMessage("corrected", id=answer.id)]})
    await talk.ask("two")
    conversation = await talk.conversation()
    assert await said_in(conversation) == said_by(await talk.checkpoint())
    kept = await conversation.message(str(answer.id))
    assert (kept.text, kept.revision) == ("corrected", 2)
    revisions = [message.text async for message in conversation.messages(revisions=True) if message.id == answer.id]
    assert revisions == [answer.text, "corrected"]


class Redacting(AgentMiddleware[Any, Any, Any]):
    """Changes a call of the newest message in place, as some middleware does."""

    async def aafter_model(self, state: Any, runtime: Any) -> None:
        for call in state["messages"][-1].tool_calls:
            call["args"]["word"] = "redacted"


async def test_a_message_edited_in_place_is_a_revision(memory: Everthread) -> None:
    model = ScriptedModel([Reply(calls=[("look_up", {"word": "secret"})]), "done"])
    talk = Talk(memory, model=model, middleware=[Redacting()])
    await talk.ask("one")
    kept = [message async for message in (await talk.conversation()).messages(revisions=True)]
    words = [message.payload["tool_calls"][0]["args"]["word"] for message in kept if message.payload.get("tool_calls")]
    assert words == ["secret", "redacted"]


async def test_an_answer_removed_and_made_again_leaves_both_in_the_log(memory: Everthread) -> None:
    talk = Talk(memory)
    await talk.ask("one")
    first = last_answer(await talk.checkpoint())
    await talk.agent.aupdate_state(talk.config, {"messages": [RemoveMessage(id=str(first.id))]}, as_node="tools")
    await talk.listen(archive_stream(memory, talk.agent.astream(None, talk.config, stream_mode="values"), "talk"))
    second = last_answer(await talk.checkpoint())
    said = await said_in(await talk.conversation())
    assert second.id != first.id
    assert said[-2:] == said_by([first, second])


async def test_an_erased_message_stays_erased_and_the_talk_goes_on(et: Everthread) -> None:
    talk = Talk(et)
    await talk.ask("my password is in here")
    erased = str(talk.recorder.messages[0].id)
    await et.erase(conversation=talk.thread_id, message=erased)
    await talk.ask("two")
    assert await said_in(await talk.conversation()) == said_by(talk.recorder.messages[1:])
    assert erased not in {hit.id for hit in await et.search("password")}


async def test_a_deleted_message_stays_deleted(memory: Everthread) -> None:
    talk = Talk(memory)
    await talk.ask("one")
    conversation = await talk.conversation()
    await conversation.delete_message(str(talk.recorder.messages[0].id))
    await talk.ask("two")
    assert await said_in(conversation) == said_by(talk.recorder.messages[1:])


class CountingLog(InMemoryLog):
    """Counts the messages it is asked to write."""

    asked: int = 0

    async def write(self, ref: Ref, intent: Intent[Any]) -> Any:
        inner = getattr(intent, "intent", intent)
        self.asked += len(inner.messages) if isinstance(inner, Append) else 0
        return await super().write(ref, intent)


class CountingStore(InMemoryStore):
    """A store with such a log."""

    log: CountingLog

    def __init__(self) -> None:
        super().__init__()
        self.log = CountingLog(self._database, self.turns, self.jobs)


async def test_an_event_costs_a_write_only_for_what_is_new() -> None:
    store = CountingStore()
    async with Everthread(Runtime(store=store, clock=system_clock)) as et:
        talk = Talk(et, trigger=1000)
        for number in range(5):
            await talk.ask(f"question {number}")
    assert store.log.asked == len(talk.recorder.messages) == 25


# -- who is who ------------------------------------------------------------------------------------------------------


async def test_two_threads_at_once_stay_apart(et: Everthread) -> None:
    talks = [Talk(et, f"talk-{number}") for number in range(3)]

    async def hold(talk: Talk) -> None:
        for number in range(4):
            await talk.ask(f"{talk.thread_id} asks {number}")

    await asyncio.gather(*map(hold, talks))
    for talk in talks:
        assert await said_in(await talk.conversation()) == said_by(talk.recorder.messages)


async def test_two_listeners_of_one_thread_log_each_message_once(memory: Everthread) -> None:
    talk = Talk(memory)
    recorded = await drain(talk.bare_stream(HumanMessage("hi")))
    await asyncio.gather(*(drain(archive_stream(memory, events(*recorded), "talk")) for _ in range(3)))
    assert await said_in(await talk.conversation()) == said_by(await talk.checkpoint())


async def test_owners_do_not_meet(memory: Everthread) -> None:
    for owner in ("ada", "bob"):
        state = {"messages": [HumanMessage(f"I am {owner}", id="m1")]}
        await drain(archive_stream(memory, events(state), "1", owner=owner))
    for owner in ("ada", "bob"):
        assert await said_in(await memory.conversations.get("1", owner)) == [("m1", f"I am {owner}")]


class PlainState(TypedDict):
    messages: Annotated[list[Any], operator.add]


def plain_graph(*answers: Any) -> Any:
    """A graph whose list has no reducer that gives ids."""
    said = iter(answers)
    graph = StateGraph(PlainState)
    graph.add_node("answer", lambda state: {"messages": [next(said)]})
    graph.add_edge(START, "answer")
    return graph.compile(checkpointer=InMemorySaver())


@pytest.mark.parametrize(
    "shape",
    [HumanMessage, lambda text: {"role": "user", "content": text}, lambda text: ("user", text)],
    ids=["messages", "dicts", "shorthand"],
)
async def test_messages_without_ids_are_logged_once_over_many_runs(memory: Everthread, shape: Any) -> None:
    graph = plain_graph(*(shape("ok") for _ in range(3)))
    for _ in range(3):
        stream = graph.astream(
            {"messages": [shape("go on")]}, {"configurable": {"thread_id": "t"}}, stream_mode="values"
        )
        await drain(archive_stream(memory, stream, "t"))
    said = await said_in(await memory.conversations.get("t"))
    assert [text for _, text in said] == ["go on", "ok"] * 3
    assert len({id for id, _ in said}) == 6


async def test_a_message_without_an_id_keeps_its_given_one_when_it_moves_or_gets_its_own(memory: Everthread) -> None:
    first, second = HumanMessage("one"), HumanMessage("two")

    async def graph() -> AsyncIterator[Any]:
        yield {"messages": [first, second]}
        yield {"messages": [second]}
        second.id = "late"
        yield {"messages": [second, AIMessage("three", id="m3")]}

    await drain(archive_stream(memory, graph(), "t"))
    assert [text for _, text in await said_in(await memory.conversations.get("t"))] == ["one", "two", "three"]


async def test_an_id_that_stands_twice_in_a_list_is_one_message(memory: Everthread) -> None:
    twice = [HumanMessage("draft", id="m1"), AIMessage("hm", id="m2"), HumanMessage("final", id="m1")]
    await drain(archive_stream(memory, events({"messages": twice}, {"messages": twice}), "t"))
    conversation = await memory.conversations.get("t")
    assert await said_in(conversation) == [("m1", "final"), ("m2", "hm")]
    assert (await conversation.message("m1")).revision == 1


@pytest.mark.parametrize(
    "payload",
    [
        {"type": "human", "data": {"content": "hi", "id": "m1"}},
        {"lc": 1, "type": "constructor", "id": ["langchain", "HumanMessage"], "kwargs": {"content": "hi", "id": "m1"}},
        {"role": "user", "content": "hi", "id": "m1"},
    ],
    ids=["type and data", "lc", "openai"],
)
async def test_dicts_of_every_shape_are_known_by_their_id(memory: Everthread, payload: dict[str, Any]) -> None:
    await drain(archive_stream(memory, events({"messages": [payload]}, {"messages": [dict(payload)]}), "t"))
    assert await said_in(await memory.conversations.get("t")) == [("m1", "hi")]


@pytest.mark.parametrize(
    "payload",
    [
        {"type": "human", "data": {"content": "hi"}},
        {"lc": 1, "type": "constructor", "id": ["HumanMessage"], "kwargs": {"content": "hi"}},
    ],
    ids=["type and data", "lc"],
)
async def test_a_given_id_stands_where_the_shape_keeps_it(memory: Everthread, payload: dict[str, Any]) -> None:
    await drain(archive_stream(memory, events({"messages": [payload]}), "t"))
    (kept,) = await (await memory.conversations.get("t")).tail(5)
    assert to_langchain(kept) == HumanMessage("hi", id=kept.id)
    assert kept.id.startswith("made-")


async def test_an_instruction_to_remove_is_not_something_said(memory: Everthread) -> None:
    await drain(
        archive_stream(memory, events({"messages": [HumanMessage("hi", id="m1"), RemoveMessage(id="m0")]}), "t")
    )
    assert await said_in(await memory.conversations.get("t")) == [("m1", "hi")]


async def test_an_artifact_that_is_no_json_does_not_stop_the_run(memory: Everthread) -> None:
    original = ToolMessage("a picture", tool_call_id="c", id="m1", artifact={"png": b"\x89PNG"})
    await drain(archive_stream(memory, events({"messages": [original]}, {"messages": [original]}), "t"))
    (kept,) = await (await memory.conversations.get("t")).tail(5)
    assert to_langchain(kept) == original
    assert kept.revision == 1


def counting_words(messages: Sequence[BaseMessage]) -> str:
    return f"{len(messages)} messages"


async def test_a_graph_that_is_handed_the_log_logs_nothing_twice(memory: Everthread) -> None:
    conversation = await memory.conversations.create(id="t")
    await conversation.append([{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}])
    past = to_langchain([message async for message in conversation.messages()], with_ids=True)
    graph = StateGraph(MessagesState)
    model = ScriptedModel(counting_words)
    graph.add_node("answer", lambda state: {"messages": [model.invoke(state["messages"])]})
    graph.add_edge(START, "answer")
    compiled: Any = graph.compile()
    stream = compiled.astream({"messages": past}, stream_mode="values")
    await drain(archive_stream(memory, stream, "t"))
    assert [text for _, text in await said_in(conversation)] == ["hi", "hello", "2 messages"]


@pytest.mark.parametrize("stream", [iter(()), [], None], ids=["iterator", "list", "nothing"])
async def test_a_stream_that_is_not_async_is_told_what_is(memory: Everthread, stream: Any) -> None:
    with pytest.raises(Invalid, match=r"agent\.astream.*open_sync"):
        [event async for event in archive_stream(memory, stream, "t")]
