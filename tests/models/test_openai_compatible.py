"""Turns over an OpenAI-compatible server: `EVERTHREAD_MODEL=openai:NAME` with `EVERTHREAD_MODEL_BASE_URL`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

pytest.importorskip("langchain_openai", reason="needs langchain-openai")

import everthread
from everthread import Conversation, Everthread, ModelKeyMissing, TurnEvent, TurnState
from everthread.adapters.models.chat_model import RetryPolicy
from everthread.core.turn_events import Accepted, Done, Failed, Token, ToolCall, ToolResult
from everthread.models import named_models, resolve
from everthread.settings import Settings
from everthread.turn import Agent, TurnContext
from tests.http.served import listening
from tests.models.provider import Fails, Provider, Says
from tests.turn.turns import add, of, only, said, told

HELLO = Says(pieces=["Hel", "lo ", "there", "."], input_tokens=321)
QUICK = RetryPolicy(pause_seconds=0.001, silence_seconds=5)


@pytest.fixture
async def et() -> AsyncIterator[Everthread]:
    async with everthread.open("memory://", worker=False) as opened:
        yield opened


@pytest.fixture
async def conv(et: Everthread) -> Conversation:
    return await et.conversations.create()


@pytest.fixture(autouse=True)
def _no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


@asynccontextmanager
async def agent_over(et: Everthread, provider: Provider, retry: RetryPolicy = QUICK) -> AsyncIterator[Agent]:
    """An agent whose model is that server's."""
    async with listening(provider.app()) as address:
        settings = Settings(model="openai:small", model_base_url=f"{address}/v1")
        models = replace(named_models(settings), retry=retry)
        yield everthread.agent(et, settings=settings, models=models, tools=_tools)


def _tools(ctx: TurnContext) -> list[Any]:
    return [add]


async def answered(et: Everthread, conv: Conversation, provider: Provider, **given: Any) -> list[TurnEvent]:
    async with agent_over(et, provider, **given) as agent:
        return await told(conv, "hello?", agent)


# -- what works --------------------------------------------------------------------------------------------


async def test_pieces_come_as_the_server_streams_them(et: Everthread, conv: Conversation) -> None:
    provider = Provider([HELLO])
    events = await answered(et, conv, provider)
    assert "".join(token.text for token in of(events, Token)) == "Hello there."
    stored = [event async for event in conv.turn_events(only(events, Accepted).turn_id)]
    assert len(of(stored, Token)) > 1, "each piece is an event, though a reader may get several as one"
    assert await said(conv) == [("user", "hello?"), ("assistant", "Hello there.")]
    assert provider.asked[0]["stream"] is True
    assert provider.asked[0]["model"] == "small"
    assert provider.asked[0]["messages"][-1] == {"content": "hello?", "role": "user"}


async def test_usage_that_the_server_reports_is_recorded(et: Everthread, conv: Conversation) -> None:
    events = await answered(et, conv, Provider([HELLO]))
    assert only(events, Done).usage == {"input_tokens": 321, "output_tokens": 4, "total_tokens": 325}
    assert (await conv.turn(only(events, Accepted).turn_id)).usage["input_tokens"] == 321


async def test_a_servers_own_vocabulary_is_not_taken_for_ours(et: Everthread, conv: Conversation) -> None:
    text = "a sentence that is long enough to be worth counting, again and again. " * 40
    async with agent_over(et, Provider([Says(pieces=["ok"], input_tokens=4_000)])) as agent:
        model = await agent.models.get(None, None)
        assert model.budget.factor == 1.3
        await told(conv, text, agent)
        assert model.budget.factor > 1.3


async def test_calls_that_come_in_pieces_are_made_and_answered(et: Everthread, conv: Conversation) -> None:
    calls = Says(calls=[("add", {"a": 7, "b": 4}), ("add", {"a": 1, "b": 1})])
    provider = Provider([calls, Says(pieces=["11", " and 2"])])
    events = await answered(et, conv, provider)
    assert [call.arguments for call in of(events, ToolCall)] == [{"a": 7, "b": 4}, {"a": 1, "b": 1}]
    assert sorted(result.text for result in of(events, ToolResult)) == ["11", "2"]
    assert only(events, Done).text == "11 and 2"
    second = provider.asked[1]["messages"]
    assert [message["role"] for message in second[-4:]] == ["user", "assistant", "tool", "tool"]
    assert [message["tool_call_id"] for message in second[-2:]] == ["call_0", "call_1"]
    assert "add" in [tool["function"]["name"] for tool in provider.asked[0]["tools"]]


async def test_arguments_that_are_no_json_come_back_to_the_model(et: Everthread, conv: Conversation) -> None:
    class Garbled(Provider):
        async def _lines(self, step: Says) -> AsyncIterator[str]:
            async for line in super()._lines(step):
                yield line.replace('\\"a\\": 7', "seven")

    provider = Garbled([Says(calls=[("add", {"a": 7, "b": 4})]), Says(pieces=["sorry"])])
    events = await answered(et, conv, provider)
    assert only(events, Done).text == "sorry"
    (result,) = [message for message in provider.asked[1]["messages"] if message["role"] == "tool"]
    assert "add" in result["content"] or "argument" in result["content"]


async def test_a_key_that_is_set_is_sent_and_none_is_asked_for(
    et: Everthread, conv: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider = Provider([HELLO])
    await answered(et, conv, provider)
    assert provider.keys == ["Bearer none"]
    monkeypatch.setenv("OPENAI_API_KEY", "sk-mine")
    provider = Provider([HELLO])
    await answered(et, conv, provider)
    assert provider.keys == ["Bearer sk-mine"]


async def test_a_summary_model_is_asked_at_the_same_address() -> None:
    provider = Provider([Says(pieces=["The user counted ", "apples."])] * 4)
    async with listening(provider.app()) as address:
        settings = Settings(model_base_url=f"{address}/v1")
        async with everthread.open("memory://", settings=settings, summariser="openai:small", worker=False) as et:
            conv = await et.conversations.create()
            await conv.append([{"role": "user", "content": f"I have {n} apples in basket {n}." * 9} for n in range(30)])
            outcome = await conv.compact()
    assert outcome.compacted
    assert provider.asked[0]["model"] == "small"


# -- what fails --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_a_busy_server_is_asked_again_after_a_pause_that_grows(
    et: Everthread, conv: Conversation, status: int
) -> None:
    provider = Provider([Fails(status=status), Fails(status=status), HELLO])
    retry = RetryPolicy(pause_seconds=0.1, silence_seconds=5)
    events = await answered(et, conv, provider, retry=retry)
    assert only(events, Done).text == "Hello there."
    first, second, third = provider.asked_at
    assert second - first >= 0.08
    assert third - second >= 0.16


async def test_a_pause_that_the_server_asks_for_is_kept(et: Everthread, conv: Conversation) -> None:
    provider = Provider([Fails(status=429, headers={"retry-after": "0.3"}), HELLO])
    await answered(et, conv, provider)
    first, second = provider.asked_at
    assert second - first >= 0.3


@pytest.mark.parametrize(
    ("status", "code", "retryable", "attempts"),
    [(401, "model_refused", False, 1), (429, "model_busy", True, 3), (500, "model_busy", True, 3)],
)
async def test_an_error_of_the_server_ends_the_turn_as_a_typed_one(
    et: Everthread, conv: Conversation, status: int, code: str, retryable: bool, attempts: int
) -> None:
    provider = Provider([Fails(status=status, message="secret words of the request")] * 5)
    events = await answered(et, conv, provider)
    failed = only(events, Failed)
    assert (failed.code, failed.retryable, len(provider.asked)) == (code, retryable, attempts)
    assert "secret words" not in failed.message
    turn = await conv.turn(only(events, Accepted).turn_id)
    assert turn.state is TurnState.FAILED
    assert await said(conv) == [("user", "hello?")]


async def test_a_key_that_is_refused_is_named_by_its_variable(et: Everthread, conv: Conversation) -> None:
    events = await answered(et, conv, Provider([Fails(status=401)]))
    assert "OPENAI_API_KEY" in only(events, Failed).message


def test_without_an_address_a_missing_key_is_named_by_its_variable() -> None:
    with pytest.raises(ModelKeyMissing, match="OPENAI_API_KEY"):
        resolve("openai:small", settings=Settings())


def test_a_summary_model_without_its_key_names_the_variable() -> None:
    with pytest.raises(ModelKeyMissing, match="OPENAI_API_KEY"):
        everthread.open("memory://", worker=False, summariser="openai:small")


def test_the_address_is_only_for_models_that_speak_like_openais(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    with pytest.raises(ModelKeyMissing, match="ANTHROPIC_API_KEY"):
        resolve("anthropic:claude", settings=Settings(model_base_url="http://127.0.0.1:9/v1"))


@pytest.mark.parametrize(
    "message",
    [
        "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens.",  # vLLM
        "the request exceeds the available context size. try increasing the context size",  # llama.cpp
    ],
)
async def test_a_request_that_the_server_finds_too_long_is_made_smaller_once(
    et: Everthread, conv: Conversation, message: str
) -> None:
    provider = Provider([Fails(status=400, message=message), HELLO])
    events = await answered(et, conv, provider)
    assert only(events, Done).text == "Hello there."
    assert len(provider.asked) == 2


async def test_a_server_that_falls_silent_is_given_up_and_what_it_said_is_kept(
    et: Everthread, conv: Conversation
) -> None:
    provider = Provider([Says(pieces=HELLO.pieces, hang_after=2)])
    events = await answered(et, conv, provider, retry=RetryPolicy(attempts=1, silence_seconds=0.5))
    assert only(events, Failed).code == "model_timeout"
    assert await said(conv) == [("user", "hello?"), ("assistant", "Hello ")]


async def test_a_line_that_breaks_keeps_what_was_said(et: Everthread, conv: Conversation) -> None:
    provider = Provider([Says(pieces=HELLO.pieces, break_after=2)])
    events = await answered(et, conv, provider)
    failed = only(events, Failed)
    assert (failed.code, failed.text, failed.retryable) == ("model_unreachable", "Hello ", True)
    assert await said(conv) == [("user", "hello?"), ("assistant", "Hello ")]


async def test_a_server_that_is_not_there_says_so(et: Everthread, conv: Conversation) -> None:
    async with listening(Provider([]).app()) as address:
        gone = f"{address}/v1"
    settings = Settings(model="openai:small", model_base_url=gone)
    agent = everthread.agent(et, settings=settings, models=replace(named_models(settings), retry=QUICK))
    failed = only(await told(conv, "hello?", agent), Failed)
    assert (failed.code, failed.retryable) == ("model_unreachable", True)
    assert "base_url" in failed.message


async def test_a_stop_in_mid_answer_keeps_what_was_said(et: Everthread, conv: Conversation) -> None:
    async with agent_over(et, Provider([Says(pieces=HELLO.pieces, hang_after=2)])) as agent:
        live = await everthread.turn.begin_turn(conv, "hello?", agent=agent)
        async for event in live.event_log.listen():
            if isinstance(event, Token) and "lo" in event.text:
                break
        await asyncio.sleep(0)
        live.stop()
        await live.wait()
    assert await said(conv) == [("user", "hello?"), ("assistant", "Hello ")]
