"""A turn from its question to its end, on every store."""

from __future__ import annotations

import asyncio
import gc
import time
import weakref
from collections.abc import Sequence
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import Any, TypedDict

import pytest
from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.tools import tool
from langgraph.graph import START, StateGraph
from langgraph.types import Command

import everthread
from everthread import Conversation, Everthread, Invalid, StoreFull, TurnRunning, TurnState
from everthread.core.nouns import Ref
from everthread.core.turn_events import Accepted, Done, Failed, StateChanged, Thinking, Token, ToolCall, ToolResult
from everthread.core.turns import EventBatch
from everthread.history.turn_intents import FinishTurn
from everthread.http.v1.schemas import message_out
from everthread.langgraph import EverthreadSaver
from everthread.runs.event_writer import COMMIT_SECONDS
from everthread.testing.scripted import Reply, Script, ScriptedModel
from everthread.turn import TurnLimits, TurnOptions, begin_turn, follow, result_metadata, run_turn
from everthread.turn.request import TurnFields
from tests.turn.turns import add, agent_for, answers_in, explode, of, only, said, told

LONG = "a long answer that comes in many pieces, one after the other, until it is whole"


@pytest.mark.parametrize(
    "said_by", [{"finish_reason": "length"}, {"stop_reason": "max_tokens"}, {"finish_reason": "MAX_TOKENS"}]
)
async def test_an_answer_that_its_limit_cut_says_so(
    et: Everthread, conv: Conversation, said_by: dict[str, Any]
) -> None:
    usage = UsageMetadata(input_tokens=3, output_tokens=512, total_tokens=515)
    script: Script = [AIMessage("the end is miss", response_metadata=said_by, usage_metadata=usage), "whole"]
    agent = agent_for(et)
    model = ScriptedModel(script)
    cut = only([event async for event in run_turn(conv, "tell", agent=agent, model=model)], Done)
    assert list(cut.notices) == ["the answer was cut at its limit of 512 tokens"]
    assert cut.result == {"is_cut": True}
    assert message_out(await conv.message(cut.answer_id or ""))["is_complete"] is False
    whole = only([event async for event in run_turn(conv, "tell", agent=agent, model=model)], Done)
    assert (list(whole.notices), whole.result) == ([], {})
    assert message_out(await conv.message(whole.answer_id or ""))["is_complete"] is True


# -- the way of one message --------------------------------------------------------------------------------


async def test_a_question_is_answered_token_by_token_and_both_are_kept(et: Everthread, conv: Conversation) -> None:
    script = [Reply(text="how do you do", pace_seconds=2 * COMMIT_SECONDS)]
    events = await told(conv, "how do you do", agent_for(et), script)
    assert "".join(token.text for token in of(events, Token)) == "how do you do"
    assert len(of(events, Token)) > 1
    assert [event.number for event in events] == list(range(1, len(events) + 1))
    done = only(events, Done)
    assert (done.state, done.text, done.loops) == ("complete", "how do you do", 1)
    assert done.usage["output_tokens"] > 0
    assert await said(conv) == [("user", "how do you do"), ("assistant", "how do you do")]
    accepted = only(events, Accepted)
    turn = await conv.turn(accepted.turn_id)
    assert turn.is_complete
    assert (turn.question_id, turn.answer_id) == (accepted.question_id, done.answer_id)
    assert [message.id async for message in conv.messages()] == [accepted.question_id, accepted.answer_id]


async def test_the_question_is_in_the_log_before_the_model_is_asked(et: Everthread, conv: Conversation) -> None:
    seen: list[str] = []

    class Peeking(ScriptedModel):
        async def _astream(self, *args: Any, **kwargs: Any) -> Any:
            seen.extend([message.text async for message in conv.messages()])
            async for chunk in super()._astream(*args, **kwargs):
                yield chunk

    await told(conv, "first things first", agent_for(et), model=Peeking(script=["yes"]))
    assert seen == ["first things first"]


async def test_the_nodes_run_in_their_order(et: Everthread, conv: Conversation) -> None:
    events = await told(conv, "7+4?", agent_for(et, tools=[add]), [Reply(calls=[("add", {"a": 7, "b": 4})]), "11"])
    nodes = [event.node for event in of(events, StateChanged)]
    assert nodes[0] == "route"
    assert sorted(nodes[1:3]) == ["recall", "retrieve"]
    assert nodes[3:] == ["plan", "tools", "plan", "finalize", "persist"]


async def test_a_tool_is_called_and_its_result_reaches_the_model(et: Everthread, conv: Conversation) -> None:
    model = ScriptedModel([Reply(text="let me see", calls=[("add", {"a": 7, "b": 4})]), "it is 11"])
    events = await told(conv, "7+4?", agent_for(et, tools=[add]), model=model)
    assert (only(events, ToolCall).name, only(events, ToolCall).arguments) == ("add", {"a": 7, "b": 4})
    assert (only(events, ToolResult).ok, only(events, ToolResult).text) == (True, "11")
    assert answers_in(model.requests[1].messages) == ["11"]
    assert await said(conv) == [
        ("user", "7+4?"),
        ("assistant", "let me see"),
        ("tool", "11"),
        ("assistant", "it is 11"),
    ]
    assert "add" in model.requests[0].tools


async def test_parallel_calls_are_each_answered_once(et: Everthread, conv: Conversation) -> None:
    calls = [("add", {"a": n, "b": n}) for n in range(4)]
    model = ScriptedModel([Reply(calls=calls), "done"])
    events = await told(conv, "go", agent_for(et, tools=[add]), model=model)
    assert len(of(events, ToolResult)) == 4
    assert sorted(answers_in(model.requests[1].messages)) == ["0", "2", "4", "6"]


async def test_thinking_is_told_apart_from_the_answer(et: Everthread, conv: Conversation) -> None:
    events = await told(conv, "why?", agent_for(et), [Reply(thinking="hmm, well", text="because")])
    assert "".join(one.text for one in of(events, Thinking)) == "hmm, well"
    assert only(events, Done).text == "because"


async def test_nothing_is_written_per_token(et: Everthread, monkeypatch: pytest.MonkeyPatch) -> None:
    writes: list[object] = []
    saves: list[object] = []
    write, save = et.store.log.write, et.store.turns.add_events

    async def counting(ref: Any, intent: Any) -> Any:
        writes.append(intent)
        return await write(ref, intent)

    async def saving(holder: str, batches: Sequence[tuple[Ref, EventBatch]]) -> Sequence[str]:
        saves.append(batches)
        return await save(holder, batches)

    monkeypatch.setattr(et.store.log, "write", counting)
    monkeypatch.setattr(et.store.turns, "add_events", saving)
    agent = agent_for(et)
    counts = []
    for size in (10, 4000):
        writes.clear()
        saves.clear()
        began = time.monotonic()
        events = await told(await et.conversations.create(), "x" * size, agent)
        assert len("".join(token.text for token in of(events, Token))) == size
        assert len(saves) <= 2 + (time.monotonic() - began) / COMMIT_SECONDS  # however many tokens
        counts.append(len(writes))
    assert counts[0] == counts[1] <= 3  # the question, the checkpoint, the end


async def test_what_the_model_was_shown_is_kept(et: Everthread, conv: Conversation) -> None:
    await told(conv, "look", agent_for(et, tools=[add]), [Reply(calls=[("add", {"a": 1, "b": 1})]), "two"])
    answer = (await conv.tail(1))[0]
    manifests = answer.payload["additional_kwargs"]["everthread"]["manifests"]
    assert len(manifests) == 2
    seen = await conv.seen_context(manifests[0])
    assert seen.context.messages[-1]["content"] == "look"


async def test_a_turn_without_a_message_answers_the_conversation_as_it_stands(
    et: Everthread, conv: Conversation
) -> None:
    await conv.append([{"role": "user", "content": "still open"}])
    await told(conv, None, agent_for(et))
    assert await said(conv) == [("user", "still open"), ("assistant", "still open")]


async def test_an_edited_question_is_answered_on_its_own_branch(et: Everthread, conv: Conversation) -> None:
    agent = agent_for(et)
    accepted = only(await told(conv, "first version", agent), Accepted)
    await conv.edit(accepted.question_id, {"role": "user", "content": "second version"})
    await told(conv, None, agent)
    await told(conv, "go on", agent)
    mine = [("user", "second version"), ("assistant", "second version"), ("user", "go on"), ("assistant", "go on")]
    assert await said(conv) == mine
    assert [message.text async for message in conv.messages(branch="main")] == ["first version"] * 2
    assert len([branch async for branch in conv.branches()]) == 2


async def test_messages_of_every_shape_are_taken(et: Everthread, conv: Conversation) -> None:
    agent = agent_for(et)
    for message in ({"role": "user", "content": "a"}, HumanMessage("b", id="b"), [HumanMessage("c")]):
        await told(conv, message, agent)
    assert [text for role, text in await said(conv) if role == "assistant"] == ["a", "b", "c"]


async def test_todos_and_tools_of_a_session_are_there_in_the_next_turn(et: Everthread, conv: Conversation) -> None:
    @tool
    async def note() -> Command[Any]:
        """Note."""
        return Command(update={"todos": [{"text": "milk", "done": False}]})

    agent = agent_for(et, tools=[note])
    await told(conv, "note", agent, [Reply(calls=[("note", {})]), "noted"], persistent_tools=["note"])
    await told(conv, "again", agent)
    config = {"configurable": {"thread_id": conv.id, "everthread_owner": conv.owner}}
    state = (await agent.graph.aget_state(config)).values  # type: ignore[arg-type]
    assert state["todos"] == [{"text": "milk", "done": False}]
    assert state["persistent_tools"] == ["note"]
    assert "messages" not in state, "what was said is in the log, and in no checkpoint"


async def test_of_an_agents_turns_only_the_newest_checkpoint_is_kept(et: Everthread, conv: Conversation) -> None:
    @tool
    async def note(text: str) -> Command[Any]:
        """Note."""
        return Command(update={"todos": [{"text": text * 20, "done": False}]})

    agent = agent_for(et, tools=[note])
    for text in ("milk", "bread", "salt"):
        await told(conv, text, agent, [Reply(calls=[("note", {"text": text})]), "noted"])
    stored = await et.store.checkpoints.all(Ref(conv.owner, conv.id))
    assert len(stored.all) == 1
    assert not stored.writes
    assert len(stored.digests) == 2, "its to-dos and its workspace, and not those that the checkpoints before it named"
    config = {"configurable": {"thread_id": conv.id, "everthread_owner": conv.owner}}
    state = (await agent.graph.aget_state(config)).values  # type: ignore[arg-type]
    assert state["todos"] == [{"text": "salt" * 20, "done": False}]


async def test_checkpoints_of_a_users_graph_stay_when_the_agent_answers_on_its_thread(
    et: Everthread, conv: Conversation
) -> None:
    class Topic(TypedDict, total=False):
        topic: str

    def talk(state: Topic) -> Topic:
        return {"topic": state["topic"] + " and more of it, at some length, so that it is a value of its own" * 2}

    builder = StateGraph(Topic)
    builder.add_node("talk", talk)
    builder.add_edge(START, "talk")
    graph = builder.compile(checkpointer=EverthreadSaver(et))
    config: Any = {"configurable": {"thread_id": conv.id}, "metadata": {"turn_id": "mine"}}
    agent = agent_for(et)
    await told(conv, "hello", agent)
    await graph.ainvoke({"topic": "tea"}, config)
    await told(conv, "and you?", agent)
    await told(conv, "fine", agent)
    topics = [one.values["topic"] async for one in graph.aget_state_history(config) if "topic" in one.values]
    assert "tea" in topics, "every step of the user's graph is still there"
    assert any("at some length" in topic for topic in topics)


async def test_callbacks_hear_of_the_model(et: Everthread, conv: Conversation) -> None:
    heard: list[str] = []

    class Hearing(AsyncCallbackHandler):
        async def on_chat_model_start(self, *args: Any, **kwargs: Any) -> None:
            heard.append("start")

        async def on_llm_end(self, *args: Any, **kwargs: Any) -> None:
            heard.append("end")

    await told(conv, "hello", agent_for(et), callbacks=[Hearing()])
    assert heard == ["start", "end"]


async def test_debug_tells_timings_changes_and_the_manifest(et: Everthread, conv: Conversation) -> None:
    events = await told(conv, "hello", agent_for(et), debug=True)
    plan = next(event for event in of(events, StateChanged) if event.node == "plan")
    assert plan.details["seconds"] >= 0
    assert "messages" in plan.details["changed"]
    assert plan.details["update"]["loops"] == 1
    assert (await conv.seen_context(plan.details["manifest"])).context.messages


async def test_an_answer_says_about_itself_what_programs_want_to_know(et: Everthread, conv: Conversation) -> None:
    call = ("describe_result", {"needs_info": True, "missing_params": ["year"], "insights": ["it rose"]})
    await told(conv, "how much?", agent_for(et), [Reply(calls=[call]), "Which year?"])
    result = result_metadata((await conv.tail(1))[0].payload)
    assert (result["needs_info"], result["missing_params"]) == (True, ["year"])
    assert result["analysis"]["insights"] == ["it rose"]


# -- ends that are no answers ------------------------------------------------------------------------------


async def test_an_error_in_mid_answer_keeps_the_text_until_there(et: Everthread, conv: Conversation) -> None:
    events = await told(conv, "go", agent_for(et), [Reply(text="half of it", error=RuntimeError("sk-secret text"))])
    failed = only(events, Failed)
    assert (failed.text, failed.code) == ("half of it", "model_error")
    assert "sk-secret" not in failed.message
    assert await said(conv) == [("user", "go"), ("assistant", "half of it")]
    turn = (await conv.turns())[0]
    assert (turn.state, turn.is_complete) == (TurnState.FAILED, False)
    partial = (await conv.tail(1))[0].payload["additional_kwargs"]["everthread"]
    assert partial["state"] == "failed"


async def test_a_stop_in_mid_answer_keeps_the_text_until_there(et: Everthread, conv: Conversation) -> None:
    live = await begin_turn(conv, "go", agent=agent_for(et), model=ScriptedModel([Reply(text=LONG, pace_seconds=0.01)]))
    async for event in live.event_log.listen():
        if isinstance(event, Token):
            live.stop()
    await live.wait()
    (_, (role, text)) = await said(conv)
    assert role == "assistant"
    assert LONG.startswith(text)
    assert 0 < len(text) < len(LONG)
    assert (await conv.turn(live.id)).state is TurnState.CANCELLED


@pytest.mark.parametrize("ticks", range(0, 12, 2))
async def test_a_stop_is_heard_however_early_it_comes(et: Everthread, conv: Conversation, ticks: int) -> None:
    model = ScriptedModel([Reply(text="never said", delay_seconds=3600)])
    for more in range(2):
        live = await begin_turn(conv, "go", agent=agent_for(et), model=model)
        for _ in range(ticks + more):
            await asyncio.sleep(0)
        live.stop()
        async with asyncio.timeout(60):
            await live.wait()
        assert (await conv.turn(live.id)).state is TurnState.CANCELLED


async def test_whoever_stops_listening_stops_the_turn(et: Everthread, conv: Conversation) -> None:
    events = run_turn(conv, "go", agent=agent_for(et), model=ScriptedModel([Reply(text=LONG, pace_seconds=0.01)]))
    async for event in events:
        if isinstance(event, Token):
            break
    await events.aclose()  # type: ignore[attr-defined]
    assert (await conv.turns())[0].state is TurnState.CANCELLED


async def test_another_process_can_stop_a_turn(et: Everthread, conv: Conversation) -> None:
    agent = agent_for(et)
    live = await begin_turn(conv, "go", agent=agent, model=ScriptedModel([Reply(text=LONG, delay_seconds=60)]))
    await conv.stop_turn(live.id)
    async with asyncio.timeout(60):
        await live.wait()
    assert (await conv.turn(live.id)).state is TurnState.CANCELLED


async def test_a_missing_key_fails_the_turn_and_keeps_the_question(et: Everthread, conv: Conversation) -> None:
    failed = only(await told(conv, "hello?", agent_for(et), model="openai:gpt-5-mini"), Failed)
    assert "OPENAI_API_KEY" in failed.message
    assert [role for role, _ in await said(conv)] == ["user"]


@pytest.mark.parametrize("model", ["nonsense", "nobody:nothing"])
async def test_an_unknown_model_is_refused_and_nothing_is_stored(
    et: Everthread, conv: Conversation, model: str
) -> None:
    with pytest.raises(Invalid) as refused:
        await told(conv, "hello?", agent_for(et), model=model)
    assert refused.value.field == "model"
    assert not await said(conv)


@pytest.mark.parametrize("message", ["", "  \n\t ", {"role": "user", "content": ""}, {"role": "user", "content": []}])
async def test_an_empty_message_is_refused_and_nothing_is_stored(et: Everthread, message: object) -> None:
    conv = await et.conversations.create()
    with pytest.raises(Invalid, match="empty"):
        await told(conv, message, agent_for(et))
    assert await said(conv) == []
    assert (await conv.turns()).items == []


async def test_options_that_make_no_sense_are_refused(et: Everthread, conv: Conversation) -> None:
    wrong: dict[str, Any] = {
        "agent_type": "magician", "model_pref": "best", "when_busy": "shout", "max_loops": 0, "features": {"fun": True}
    }  # fmt: skip
    for name, value in wrong.items():
        with pytest.raises(Invalid):
            await told(conv, "hello", agent_for(et), **{name: value})
    assert await said(conv) == []


async def test_a_message_larger_than_the_context_is_kept_and_clamped_in_the_view(
    et: Everthread, conv: Conversation
) -> None:
    large = "many words " * 150_000
    model = ScriptedModel(["I saw a part of it"])
    assert only(await told(conv, large, agent_for(et), model=model), Done).state == "complete"
    assert (await conv.message_at(1)).text == large
    assert len(model.requests[0].messages[-1].text) < len(large)


async def test_a_conversation_that_is_erased_in_mid_answer_stays_erased(et: Everthread, conv: Conversation) -> None:
    model = ScriptedModel([Reply(text=LONG, pace_seconds=0.01)])
    live = await begin_turn(conv, "go", agent=agent_for(et), model=model)
    async for event in live.event_log.listen():
        if isinstance(event, Token):
            await et.erase(conversation=conv.id)
            break
    async with asyncio.timeout(60):
        await live.wait()
    assert only(live.event_log.events, Failed).code == "erased"
    assert (await et.verify()).messages == 0
    assert await et.store.turns.unfinished() == []


async def test_i31_a_turn_whose_end_cannot_be_stored_says_so_and_ends_when_it_can(
    et: Everthread, conv: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = et.store.log.write

    async def failing(ref: Any, intent: Any) -> Any:
        if isinstance(getattr(intent, "intent", intent), FinishTurn):
            raise StoreFull("no room")
        return await write(ref, intent)

    monkeypatch.setattr(et.store.log, "write", failing)
    monkeypatch.setattr("everthread.runs.engine._END_PAUSES", (0.01,))
    agent = agent_for(et)
    with pytest.raises(StoreFull):  # an event that says so would be one that nobody sees again
        await told(conv, "hello", agent)
    (turn,) = await conv.turns()
    assert turn.state is TurnState.RUNNING
    assert await agent.close_dead() == []
    monkeypatch.undo()
    ended = await agent.runs.wait_for_end(Ref(conv.owner, conv.id), turn.id)
    assert ended.state is TurnState.COMPLETE
    assert await said(conv) == [("user", "hello"), ("assistant", "hello")]
    assert [event.kind async for event in conv.turn_events(turn.id)][-1] == "done"


# -- tools that misbehave ----------------------------------------------------------------------------------


async def test_arguments_that_do_not_fit_come_back_as_a_result(et: Everthread, conv: Conversation) -> None:
    model = ScriptedModel([Reply(calls=[("add", {"a": "seven"}), ("subtract", {})]), "sorry"])
    events = await told(conv, "go", agent_for(et, tools=[add]), model=model)
    assert [result.ok for result in of(events, ToolResult)] == [False, False]
    first, second = sorted(answers_in(model.requests[1].messages))
    assert "integer" in first or "integer" in second
    assert "unknown tool 'subtract'" in first + second
    assert only(events, Done).state == "complete"


async def test_a_tool_that_raises_or_hangs_does_not_end_the_turn(et: Everthread, conv: Conversation) -> None:
    @tool
    async def hang() -> str:
        """Hang."""
        await asyncio.sleep(3600)
        return "never"

    model = ScriptedModel([Reply(calls=[("explode", {}), ("hang", {})]), "so be it"])
    agent = agent_for(et, tools=[explode, hang], limits=TurnLimits(tool_seconds=0.05))
    events = await told(conv, "go", agent, model=model)
    assert {(result.name, result.ok) for result in of(events, ToolResult)} == {("explode", False), ("hang", False)}
    assert any("no such luck" in text for text in answers_in(model.requests[1].messages))
    assert any("within 0.05 seconds" in text for text in answers_in(model.requests[1].messages))


async def test_a_result_of_many_megabytes_is_kept_whole_and_shown_in_part(et: Everthread, conv: Conversation) -> None:
    @tool
    async def dump() -> str:
        """Dump."""
        return "0123456789" * 500_000

    model = ScriptedModel([Reply(calls=[("dump", {})]), "that was much"])
    events = await told(conv, "go", agent_for(et, tools=[dump]), model=model)
    assert len(only(events, ToolResult).text) <= 2_000
    assert len((await conv.message_at(3)).text) == 5_000_000
    assert len(answers_in(model.requests[1].messages)[0]) < 1_000_000


async def test_a_model_that_calls_tools_for_ever_must_answer_at_the_limit(et: Everthread, conv: Conversation) -> None:
    def script(messages: Any) -> Reply:
        return Reply(text="still at it", calls=[("add", {"a": 1, "b": 1})])

    model = ScriptedModel(script)
    events = await told(conv, "go", agent_for(et, tools=[add]), model=model, max_loops=3)
    assert len(model.requests) == 4
    assert model.requests[3].tools == []
    assert only(events, Done).text == "still at it"
    assert [role for role, _ in await said(conv)].count("tool") == 3


async def test_a_model_that_says_nothing_is_asked_once_more(et: Everthread, conv: Conversation) -> None:
    assert only(await told(conv, "go", agent_for(et), ["", "at last"]), Done).text == "at last"
    assert "no answer" in only(await told(conv, "go", agent_for(et), ["", ""]), Done).text


# -- several at once ---------------------------------------------------------------------------------------


async def test_i15_turns_of_one_conversation_run_one_after_the_other(et: Everthread, conv: Conversation) -> None:
    agent = agent_for(et)
    running = most = 0

    class Counting(ScriptedModel):
        async def _astream(self, *args: Any, **kwargs: Any) -> Any:
            nonlocal running, most
            running += 1
            most = max(most, running)
            async for chunk in super()._astream(*args, **kwargs):
                yield chunk
            running -= 1

    def model() -> Counting:
        return Counting(script=[Reply(text="answer", pace_seconds=0.005)])

    await asyncio.gather(*(told(conv, f"q{n}", agent, model=model()) for n in range(4)))
    assert most == 1
    roles = [role for role, _ in await said(conv)]
    assert roles == ["user", "assistant"] * 4
    assert {turn.state for turn in await conv.turns()} == {TurnState.COMPLETE}
    assert len([branch async for branch in conv.branches()]) == 1


async def test_a_turn_may_be_refused_while_another_runs(et: Everthread, conv: Conversation) -> None:
    agent = agent_for(et)
    live = await begin_turn(conv, "first", agent=agent, model=ScriptedModel([Reply(text=LONG, pace_seconds=0.005)]))
    with pytest.raises(TurnRunning):
        await told(conv, "second", agent, when_busy="reject")
    await live.wait()
    assert [text for role, text in await said(conv) if role == "user"] == ["first"]


async def test_a_turn_may_interrupt_the_one_that_runs(et: Everthread, conv: Conversation) -> None:
    agent = agent_for(et)
    first = await begin_turn(conv, "first", agent=agent, model=ScriptedModel([Reply(text=LONG, pace_seconds=0.02)]))
    async for event in first.event_log.listen():
        if isinstance(event, Token):
            break
    await told(conv, "second", agent, when_busy="interrupt")
    assert (await conv.turn(first.id)).state is TurnState.CANCELLED
    texts = await said(conv)
    assert [role for role, _ in texts] == ["user", "assistant", "user", "assistant"]
    assert texts[-1] == ("assistant", "second")


async def test_the_same_turn_id_again_is_the_same_turn(et: Everthread, conv: Conversation) -> None:
    agent = agent_for(et)
    script = ScriptedModel([Reply(text=LONG, pace_seconds=0.002)])
    one = await begin_turn(conv, "once", agent=agent, model=script, turn_id="t-1")
    assert await begin_turn(conv, "once", agent=agent, model=script, turn_id="t-1") is one
    await one.wait()
    assert [role for role, _ in await said(conv)] == ["user", "assistant"]
    with pytest.raises(TurnRunning):
        await begin_turn(conv, "once", agent=agent, turn_id="t-1")


# -- listening ---------------------------------------------------------------------------------------------


async def test_i18_a_reader_that_comes_back_gets_exactly_the_rest(et: Everthread, conv: Conversation) -> None:
    agent = agent_for(et)
    live = await begin_turn(conv, "go", agent=agent, model=ScriptedModel([Reply(text=LONG, pace_seconds=0.002)]))
    whole = [event async for event in follow(conv, live.id, agent=agent)]
    await live.wait()
    numbers = [event.number for event in live.event_log.events]
    for after in (0, 3, numbers[-1] - 1, numbers[-1]):
        later = [event async for event in follow(conv, live.id, agent=agent, after=after)]
        assert [event.number for event in later] == numbers[after:]
    text = "".join(event.text for event in whole if isinstance(event, Token))
    assert text == LONG


async def test_what_a_turn_told_is_let_go_of_with_it() -> None:
    async with everthread.open("memory://", worker=False) as et:
        agent = everthread.agent(et, model="scripted:echo")  # with all its tools, that know their turn
        conv = await et.conversations.create()
        await told(conv, "warm up", agent)
        gc.collect()
        gc.disable()
        try:
            live = await begin_turn(conv, "hello", agent=agent)
            await live.wait()
            event_log = weakref.ref(live.event_log)
            del live
            for _ in range(500):
                if event_log() is None:
                    break
                await asyncio.sleep(0.01)
            assert event_log() is None
        finally:
            gc.enable()


async def test_of_a_turn_whose_events_are_gone_one_is_told(et: Everthread, conv: Conversation) -> None:
    agent = agent_for(et)
    accepted = only(await told(conv, "long ago", agent), Accepted)
    await et.store.turns.prune_events(datetime.now(UTC) + timedelta(days=1))
    (snapshot,) = [event async for event in follow(conv, accepted.turn_id, agent=agent)]
    assert isinstance(snapshot, Done)
    assert (snapshot.state, snapshot.text) == ("complete", "long ago")


async def test_a_question_that_is_erased_while_it_waits_is_not_answered(et: Everthread, conv: Conversation) -> None:
    agent = agent_for(et)
    slow = ScriptedModel([Reply(text=LONG, pace_seconds=0.02)])
    first = await begin_turn(conv, "first", agent=agent, model=slow)
    second = await begin_turn(conv, {"role": "user", "content": "second", "id": "q2"}, agent=agent)
    await conv.append([{"role": "user", "content": "second", "id": "q2"}])
    await et.erase(conversation=conv.id, message="q2")
    first.stop()
    await second.wait()
    assert only(second.event_log.events, Failed).code == "erased"
    assert (await conv.turn(second.id)).state is TurnState.FAILED
    assert "second" not in [text for _, text in await said(conv)]


async def test_pieces_that_a_slow_reader_has_not_taken_reach_it_as_one(et: Everthread, conv: Conversation) -> None:
    agent = agent_for(et)
    live = await begin_turn(conv, "x" * 400, agent=agent)
    await live.wait()
    late = [event async for event in live.event_log.listen()]
    assert len(of(late, Token)) == 1
    assert only(late, Token).text == "x" * 400
    assert only(late, Token).number == live.event_log.events[-1].number - 4


# -- the agent ---------------------------------------------------------------------------------------------


async def test_an_agent_takes_a_chat_model_as_well_as_a_name(et: Everthread, conv: Conversation) -> None:
    agent = everthread.agent(et, model=ScriptedModel(["from an object"]), tools=None)
    events = [event async for event in everthread.run_turn(conv, "hello", agent=agent)]
    assert only(events, Done).text == "from an object"


async def test_what_is_no_model_is_refused_before_anything_is_stored(et: Everthread, conv: Conversation) -> None:
    with pytest.raises(Invalid, match="must be a name or a LangChain chat model, not int"):
        everthread.agent(et, model=3)  # type: ignore[arg-type]
    with pytest.raises(Invalid, match="must be a name or a LangChain chat model, not dict"):
        await told(conv, "hello", agent_for(et), model={})
    assert await said(conv) == []


def test_options_and_keyword_arguments_of_a_turn_are_the_same() -> None:
    assert list(TurnFields.__annotations__) == [field.name for field in fields(TurnOptions)]


async def test_i20_turns_of_two_conversations_may_have_the_same_id(et: Everthread) -> None:
    agent = agent_for(et)
    mine, theirs = await et.conversations.create(owner="ann"), await et.conversations.create(owner="bob")
    slow = ScriptedModel([Reply(text=LONG, pace_seconds=60.0)])
    first = await begin_turn(mine, "hers", agent=agent, model=slow, turn_id="t")
    second = await begin_turn(theirs, "his", agent=agent, turn_id="t")
    await second.wait()
    assert await said(theirs) == [("user", "his"), ("assistant", "his")]
    await agent.runs.stop(Ref("bob", theirs.id), "t")
    assert (await mine.turn("t")).state is TurnState.RUNNING
    first.stop()
    await first.wait()


async def test_an_event_that_cannot_be_stored_ends_its_own_run_and_no_other(et: Everthread, conv: Conversation) -> None:
    agent = agent_for(et)
    other = await et.conversations.create()
    slow = [Reply(text=LONG, pace_seconds=0.01)]
    bad = await begin_turn(conv, "one", agent=agent, model=ScriptedModel(slow))
    good = await begin_turn(other, "two", agent=agent, model=ScriptedModel([Reply(text="fine", pace_seconds=0.2)]))
    bad.event_log.append(object())  # type: ignore[arg-type]
    async with asyncio.timeout(30):
        await asyncio.gather(bad.wait(), good.wait())
    assert await said(other) == [("user", "two"), ("assistant", "fine")]
