"""`EverthreadMiddleware`: what an agent says is in the log as it is made, and may be what its model sees."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from deepagents import create_deep_agent
from langchain.agents import create_agent
from langchain_core.messages import BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

import everthread
from benchmarks.scenarios import LARGE, SCENES, Rig, a_large_tool_result, deepagents_with_subagents, texts_in_state
from everthread import Budget, Everthread, Invalid
from everthread.adapters.checkpoints.checkpoint_intents import PutCheckpoint
from everthread.adapters.stores.in_memory.log import InMemoryLog
from everthread.context.tokens import count_tokens
from everthread.core.entries import Revision
from everthread.core.log import Intent
from everthread.core.nouns import Ref
from everthread.langchain import DEEPAGENTS_SLOT, EverthreadMiddleware
from everthread.langgraph import ArchivingSaver, EverthreadSaver, open_sync
from everthread.testing import Reply, ScriptedModel
from tests.langgraph.captures import archiving, children_of, listening, texts_in
from tests.langgraph.test_archiving_saver import read_back
from tests.langgraph.test_full_history import texts

THREAD: Any = {"configurable": {"thread_id": "t"}}
LINEAR = [name for name in SCENES if "again" not in name]


@pytest.fixture
async def memory() -> AsyncIterator[Everthread]:
    async with everthread.open("memory://") as opened_one:
        yield opened_one


@tool
def look_up(word: str) -> str:
    """What is known about a word."""
    return f"known about {word}"


def looks_up(messages: Sequence[BaseMessage]) -> Reply:
    newest = messages[-1]
    if isinstance(newest, ToolMessage):
        return Reply(text=f"so {newest.text}")
    return Reply(text="let me see", calls=[("look_up", {"word": newest.text})])


def _all_three(et: Everthread) -> Rig:
    return listening(et, archiving(et, [EverthreadMiddleware(et)]))


def _saver_and_middleware(et: Everthread) -> Rig:
    return archiving(et, [EverthreadMiddleware(et)])


def _saver_and_stream(et: Everthread) -> Rig:
    return listening(et, archiving(et))


def _own_saver_and_middleware(et: Everthread) -> Rig:
    return Rig(EverthreadSaver(et), [EverthreadMiddleware(et)])


# -- capturing -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scene", LINEAR)
async def test_the_middleware_alone_captures_all_once_and_in_order(memory: Everthread, scene: str) -> None:
    rig = Rig(InMemorySaver(), [EverthreadMiddleware(memory)])
    truth = await SCENES[scene](rig)
    history = await memory.full_history("scene", saver=rig.saver)
    assert texts(history) == truth.paths[-1]
    assert (history["source"], history["complete"]) == ("archive", True)
    assert await children_of(await memory.conversations.get("scene")) == truth.subagents


@pytest.mark.parametrize("scene", SCENES)
async def test_i30_saver_middleware_and_stream_together_capture_each_message_once(et: Everthread, scene: str) -> None:
    rig = listening(et, archiving(et, [EverthreadMiddleware(et)]))
    truth = await SCENES[scene](rig)
    history = await et.full_history("scene", saver=rig.saver)
    assert texts(history) == truth.paths[-1]
    assert (history["source"], history["complete"]) == ("archive", True)
    assert await children_of(await et.conversations.get("scene")) == truth.subagents
    assert (await et.verify()).problems == ()


@pytest.mark.parametrize("made", [_all_three, _saver_and_middleware, _saver_and_stream, _own_saver_and_middleware])
async def test_an_answer_made_again_stands_in_its_place_while_its_checkpoint_is_on_its_way(
    memory: Everthread, monkeypatch: pytest.MonkeyPatch, made: Callable[[Everthread], Rig]
) -> None:
    plain = InMemoryLog.write

    async def slow(self: InMemoryLog, ref: Ref, intent: Intent[Any]) -> Any:
        await asyncio.sleep(0.03 if isinstance(intent, PutCheckpoint) else 0)
        return await plain(self, ref, intent)

    monkeypatch.setattr(InMemoryLog, "write", slow)
    rig = made(memory)
    truth = await SCENES["answer made again from an earlier checkpoint"](rig)
    history = await memory.full_history("scene", saver=rig.saver)
    assert texts(history) == truth.paths[-1]


@pytest.mark.parametrize("scene", SCENES)
async def test_an_everthread_saver_with_the_middleware_captures_all(memory: Everthread, scene: str) -> None:
    rig = Rig(EverthreadSaver(memory), [EverthreadMiddleware(memory)])
    truth = await SCENES[scene](rig)
    history = await memory.full_history("scene", saver=rig.saver)
    assert texts(history) == truth.paths[-1]


async def test_history_shows_the_original_and_the_state_its_stub(et: Everthread) -> None:
    rig = Rig(EverthreadSaver(et), [EverthreadMiddleware(et)])
    await a_large_tool_result(rig)
    (stub,) = [text for text in await texts_in_state(rig) if "large_tool_results" in text]
    original = (await texts_in(await et.conversations.get("scene")))[2]
    assert len(stub) < 5_000 < LARGE / 2 < len(original)
    entries = await et.store.log.scan(Ref("local", "scene"), after=0, limit=100)
    assert [entry.change_kind for entry in entries if entry.change_kind is not None] == [Revision.STUB]
    await rig.say("and now?")
    entries = await et.store.log.scan(Ref("local", "scene"), after=0, limit=100)
    stubs = [entry.id for entry in entries if entry.change_kind == Revision.STUB]
    assert len(stubs) == len(set(stubs)) == 2


async def test_a_question_is_kept_although_the_model_never_answers(memory: Everthread) -> None:
    model = ScriptedModel([RuntimeError("down")])
    agent: Any = create_agent(model, [], middleware=[EverthreadMiddleware(memory)], checkpointer=InMemorySaver())
    with pytest.raises(RuntimeError, match="down"):
        await agent.ainvoke({"messages": ["are you there?"]}, THREAD, durability="exit")
    assert await texts_in(await memory.conversations.get("t")) == ["are you there?"]


async def test_every_message_that_passes_has_an_id(memory: Everthread) -> None:
    agent: Any = create_agent(ScriptedModel(looks_up), [look_up], middleware=[EverthreadMiddleware(memory)])
    result = await agent.ainvoke({"messages": ["rain"]}, THREAD)
    assert all(message.id for message in result["messages"])
    logged = [message.id async for message in (await memory.conversations.get("t")).messages()]
    assert logged == [message.id for message in result["messages"]]


async def test_without_a_thread_id_nothing_goes_on_unlogged(memory: Everthread) -> None:
    agent: Any = create_agent(ScriptedModel(looks_up), [look_up], middleware=[EverthreadMiddleware(memory)])
    with pytest.raises(Invalid, match="thread_id"):
        await agent.ainvoke({"messages": ["rain"]})


def test_agents_that_are_not_async_are_captured_too(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'et.db'}"
    with open_sync(url) as et:
        middleware = [EverthreadMiddleware(et, compact=True)]
        agent: Any = create_agent(ScriptedModel(looks_up), [look_up], middleware=middleware)
        agent.invoke({"messages": ["rain"]}, THREAD)
        deep: Any = create_deep_agent(
            ScriptedModel(looks_up),
            [look_up],
            middleware=middleware,
            checkpointer=ArchivingSaver(InMemorySaver(), et),
        )
        deep.invoke({"messages": [{"role": "user", "content": "snow"}]}, {"configurable": {"thread_id": "deep"}})
    assert asyncio.run(read_back(url)) == ["rain", "let me see", "known about rain", "so known about rain"]
    assert asyncio.run(read_back(url, "deep")) == ["snow", "let me see", "known about snow", "so known about snow"]


# -- what the model sees ---------------------------------------------------------------------------------------------


async def test_the_model_is_sent_what_fits_and_the_state_keeps_all(memory: Everthread) -> None:
    model = ScriptedModel(lambda messages: f"answer {len(messages)} " + "and so on " * 40)
    budget = Budget(window=3_000, output_reserve=500)
    middleware = EverthreadMiddleware(memory, compact=True, budget=budget, history_tools=False)
    agent: Any = create_agent(
        model, [], system_prompt="Be kind.", middleware=[middleware], checkpointer=InMemorySaver()
    )
    for number in range(30):
        await agent.ainvoke({"messages": [f"question {number} " + "in many words " * 20]}, THREAD)
    assert len((await agent.aget_state(THREAD)).values["messages"]) == 60
    conversation = await memory.conversations.get("t")
    assert len(await texts_in(conversation)) == 60
    sent = model.requests[-1].messages
    assert sent[0].text == "Be kind."
    assert [message.type for message in sent].count("system") == 1
    assert sent[-1].text.startswith("question 29 ")
    assert len(sent) < 30
    assert sum(count_tokens(message.text) for message in sent) <= budget.limit
    assert [one async for one in conversation.compactions()]


async def test_recall_brings_back_what_the_question_asks_for(memory: Everthread) -> None:
    model = ScriptedModel(lambda messages: "noted")
    middleware = EverthreadMiddleware(memory, recall=True, budget=Budget(window=2_000, output_reserve=200))
    agent: Any = create_agent(model, [], middleware=[middleware], checkpointer=InMemorySaver())
    await agent.ainvoke({"messages": ["The locker code is zebra4711."]}, THREAD)
    for number in range(40):
        await agent.ainvoke({"messages": [f"remark {number} " + "about the weather " * 20]}, THREAD)
    await agent.ainvoke({"messages": ["What is the locker code?"]}, THREAD)
    sent = model.requests[-1].messages
    assert sent[0].text != "The locker code is zebra4711."
    assert any("zebra4711" in message.text for message in sent)


async def test_a_summary_model_that_fails_does_not_stop_the_run() -> None:
    async with everthread.open("memory://", summariser=ScriptedModel(lambda messages: RuntimeError("down"))) as et:
        middleware = EverthreadMiddleware(et, compact=True, budget=Budget(window=1_500, output_reserve=200))
        agent: Any = create_agent(ScriptedModel(lambda m: "yes " * 100), [], middleware=[middleware])
        messages: list[Any] = []
        for number in range(12):
            messages.append(HumanMessage(f"question {number} " + "at length " * 50))
            messages = (await agent.ainvoke({"messages": messages}, THREAD))["messages"]
        assert len(messages) == 24


async def test_it_takes_deepagents_slot_and_reaches_its_default_subagent(memory: Everthread) -> None:
    def answer(messages: Sequence[BaseMessage]) -> Reply:
        if isinstance(messages[-1], ToolMessage):
            return Reply(text=f"done: {messages[-1].text}")
        if "inner task" in messages[-1].text:
            return Reply(text="working inside", calls=[("look_up", {"word": "inside"})])
        task = {"description": "inner task", "subagent_type": "general-purpose"}
        return Reply(text="delegating", calls=[("task", task)])

    middleware = EverthreadMiddleware(memory, compact=True, name=DEEPAGENTS_SLOT)
    agent: Any = create_deep_agent(
        ScriptedModel(answer), [look_up], middleware=[middleware], checkpointer=InMemorySaver()
    )
    assert not any("summarization_event" in channel for channel in agent.channels)
    await agent.ainvoke({"messages": ["a question"]}, THREAD)
    conversation = await memory.conversations.get("t")
    (child,) = await children_of(conversation)
    assert child[:3] == ["inner task", "working inside", "known about inside"]
    assert (await texts_in(conversation))[:2] == ["a question", "delegating"]


async def test_subagents_with_the_middleware_are_captured_without_a_saver_that_archives(memory: Everthread) -> None:
    truth = await deepagents_with_subagents(Rig(InMemorySaver(), [EverthreadMiddleware(memory)]))
    conversation = await memory.conversations.get("scene")
    assert await children_of(conversation) == truth.subagents
    assert [child.parent_id async for child in conversation.children()] == ["scene"] * len(truth.subagents)


# -- tools -----------------------------------------------------------------------------------------------------------


async def test_an_agent_searches_and_opens_its_own_past(memory: Everthread) -> None:
    replies = iter(
        [
            Reply(text="noted"),
            Reply(calls=[("history_search", {"query": "zebra"})]),
            Reply(calls=[("history_open", {"seq": 1})]),
            Reply(calls=[("compress_context", {})]),
            Reply(text="It is a zebra."),
        ]
    )
    agent: Any = create_agent(
        ScriptedModel(lambda messages: next(replies)),
        [],
        middleware=[EverthreadMiddleware(memory)],
        checkpointer=InMemorySaver(),
    )
    await agent.ainvoke({"messages": ["My favourite is the zebra."]}, THREAD)
    result = await agent.ainvoke({"messages": ["What is my favourite?"]}, THREAD)
    answers = {m.name: m.text for m in result["messages"] if isinstance(m, ToolMessage)}
    assert set(answers) == {"history_search", "history_open", "compress_context"}
    assert "zebra" in answers["history_search"]
    assert "My favourite is the zebra." in answers["history_open"]
    assert "Nothing was changed" in answers["compress_context"]


async def test_the_tools_can_be_left_out(memory: Everthread) -> None:
    assert [one.name for one in EverthreadMiddleware(memory).tools] == [
        "history_search",
        "history_open",
        "compress_context",
    ]
    assert EverthreadMiddleware(memory, history_tools=False).tools == []


async def test_a_budget_that_is_none_is_refused_where_it_is_given() -> None:
    async with everthread.open("memory://") as et:
        with pytest.raises(Invalid, match=r"must be a Budget, not int; .* Budget\(window=8000\)"):
            EverthreadMiddleware(et, budget=8000)  # type: ignore[arg-type]
