"""The shortest way from a chat model: what comes is what LangChain would give."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import AIMessageChunk, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.rate_limiters import InMemoryRateLimiter
from langchain_core.runnables import RunnableConfig

from everthread.adapters.models.direct_stream import can_stream_directly, stream_chunks
from everthread.testing.scripted import Reply, ScriptedModel
from everthread.turn.model_call import ChunkJoiner

ASKED: list[BaseMessage] = [HumanMessage("hello")]
CALLS = [("add", {"a": 1, "b": 2}), ("add", {"a": 3, "b": 4})]


class Finishing(ScriptedModel):
    """Says why it ended as providers do: beside the message, and in no last piece."""

    async def _astream(self, *args: Any, **options: Any) -> AsyncIterator[ChatGenerationChunk]:
        yield ChatGenerationChunk(message=AIMessageChunk(content="half "))
        end = AIMessageChunk(content="", response_metadata={"model_name": "small"})
        yield ChatGenerationChunk(message=end, generation_info={"finish_reason": "length"})


class Listening(AsyncCallbackHandler):
    """Counts what it hears."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    async def on_llm_new_token(self, token: str | list[str | dict[str, Any]], **about: Any) -> None:
        self.heard.append(str(token))


def whole(chunks: Sequence[AIMessageChunk]) -> dict[str, Any]:
    heard = ChunkJoiner()
    for chunk in chunks:
        heard.add(chunk)
    return heard.join().model_dump(exclude={"id"})


@pytest.mark.parametrize(
    ("kind", "reply"),
    [
        (ScriptedModel, Reply(text="a plain answer, in pieces")),
        (ScriptedModel, Reply(text="and now", calls=CALLS, thinking="let me see")),
        (ScriptedModel, Reply(calls=CALLS)),
        (Finishing, Reply()),
    ],
    ids=["text", "all", "calls", "finishing"],
)
async def test_the_short_way_gives_what_langchain_gives(kind: type[ScriptedModel], reply: Reply) -> None:
    theirs = [chunk async for chunk in kind(script=[reply]).astream(ASKED)]
    model = kind(script=[reply])
    assert can_stream_directly(model, ASKED, {}, {})
    ours = [chunk async for chunk in stream_chunks(model, ASKED, {}, {})]
    assert [chunk.content for chunk in ours] == [chunk.content for chunk in theirs]
    assert whole(ours) == whole(theirs)


async def test_a_callback_hears_every_piece() -> None:
    model, listening = ScriptedModel(["a plain answer, in pieces"]), Listening()
    config = RunnableConfig(callbacks=[listening])
    assert not can_stream_directly(model, ASKED, config, {})
    told = [str(chunk.content) async for chunk in stream_chunks(model, ASKED, config, {})]
    assert listening.heard == told


@pytest.mark.parametrize(
    ("model", "asked"),
    [
        (ScriptedModel(["yes"]), [HumanMessage([{"type": "image", "url": "https://example.org/a.png"}])]),
        (ScriptedModel(["yes"], disable_streaming=True), ASKED),
        (ScriptedModel(["yes"], rate_limiter=InMemoryRateLimiter(requests_per_second=1000)), ASKED),
        (ScriptedModel(["yes"], output_version="v1"), ASKED),
        (ScriptedModel(["yes"], callbacks=[Listening()]), ASKED),
        (FakeListChatModel(responses=["yes"], callbacks=[Listening()]), ASKED),
    ],
    ids=["image", "no stream", "limited", "v1 blocks", "callback of the model", "another's model"],
)
async def test_whatever_langchain_does_more_for_takes_its_way(model: Any, asked: list[BaseMessage]) -> None:
    assert not can_stream_directly(model, asked, {}, {})
    told = [chunk async for chunk in stream_chunks(model, asked, {}, {})]
    assert "".join(chunk.text for chunk in told) == "yes"
