"""Whatever a tool does, the model gets an answer and the turn goes on."""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import Callable, Iterator
from hashlib import sha256
from typing import Any

import pytest
from langchain_core.tools import tool as langchain_tool

import everthread
from everthread import Everthread
from everthread.core.tools import ToolPolicy, registered_tools, unregister
from everthread.turn.tools import ToolContext
from tests.text.test_secrets import SECRETS
from tests.turn.tools.conftest import ToolCaller


@pytest.fixture(autouse=True)
def nothing_stays() -> Iterator[None]:
    before = set(registered_tools())
    yield
    for name in set(registered_tools()) - before:
        unregister(name)


async def test_arguments_that_do_not_fit_come_back_with_what_would(toolbox: ToolCaller) -> None:
    told = await toolbox.refused("write_file", pth="a", text=7)
    assert "path: Field required" in told
    assert "text: Input should be a valid string" in told
    assert "It takes: path, text, append (optional)" in told
    assert "pydantic" not in told


async def test_i23_a_tool_that_raises_gives_its_error_without_secrets(toolbox: ToolCaller) -> None:
    @everthread.tool
    def breaks(how: str) -> str:
        """Breaks."""
        raise RuntimeError(f"{how}: the key was {SECRETS['openai']}")

    told = await toolbox.refused("breaks", how="badly")
    assert "RuntimeError: badly" in told
    assert SECRETS["openai"] not in told


async def test_a_tool_that_hangs_is_given_up_and_cancelled(make_toolbox: Callable[..., Any]) -> None:
    ended = asyncio.Event()

    @everthread.tool
    async def hangs() -> str:
        """Hangs."""
        try:
            await asyncio.sleep(3600)
        finally:
            ended.set()
        return "never"

    toolbox = await make_toolbox(policy=ToolPolicy(timeout_seconds=0.05))
    assert "given up after 0.05 seconds" in await toolbox.refused("hangs")
    assert ended.is_set()


async def test_a_blocking_tool_that_hangs_holds_nobody_up(make_toolbox: Callable[..., Any]) -> None:
    @everthread.tool(timeout_seconds=0.05)
    def sleeps() -> str:
        """Sleeps in a thread."""
        time.sleep(0.5)
        return "late"

    toolbox = await make_toolbox()
    assert "given up" in await toolbox.refused("sleeps")


async def test_a_turn_that_is_cancelled_takes_its_tool_with_it(toolbox: ToolCaller) -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    @everthread.tool
    async def works() -> str:
        """Works on."""
        begun.set()
        try:
            await asyncio.sleep(3600)
        finally:
            ended.set()
        return ""

    turn = asyncio.create_task(toolbox.message("works"))
    await begun.wait()
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn
    async with asyncio.timeout(60):
        await ended.wait()


async def test_fifty_megabytes_are_kept_whole_and_shown_in_part(memory_et: Everthread) -> None:
    whole = "x" * 49_999_990 + "the end is"

    @everthread.tool
    def huge() -> str:
        """Gives 50 MB."""
        return whole

    conv = await memory_et.conversations.create()
    context = ToolContext.create(memory_et, conv)
    answer = await ToolCaller(context).message("huge")
    await conv.append(
        [
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": "", "tool_calls": [_openai_call("call_1", "huge")]},
            answer,
        ]
    )
    kept = [message async for message in conv.messages()][-1]
    assert kept.text == whole
    shown = (await conv.context()).messages[-1]["content"]
    assert len(shown) < 50_000
    assert f"history_open(seq={kept.seq}" in shown


def _openai_call(id: str, name: str) -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": "{}"}}


async def test_bytes_are_kept_whole_beside_a_line_of_text(memory_et: Everthread) -> None:
    body = bytes(range(256)) * 1000

    @everthread.tool
    def binary() -> bytes:
        """Gives bytes."""
        return body

    conv = await memory_et.conversations.create()
    answer = await ToolCaller(ToolContext.create(memory_et, conv)).message("binary")
    assert "256,000 bytes of binary data" in str(answer.content)
    await conv.append([{"role": "user", "content": "go"}, {"role": "assistant", "content": "", "tool_calls": [
        _openai_call("call_1", "binary")]}, answer])  # fmt: skip
    kept = [message async for message in conv.messages()][-1]
    artifact = kept.payload["artifact"]
    assert base64.b64decode(artifact["base64"]) == body
    assert artifact["sha256"] == sha256(body).hexdigest()
    assert all("base64" not in str(message) for message in (await conv.context()).messages)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "Done."),
        (7, "7"),
        ({"a": [1, 2]}, '{\n  "a": [\n    1,\n    2\n  ]\n}'),
        ([], "[]"),
        ("", ""),
        ("half \ud800", "half \ud800"),
    ],
)
async def test_what_a_tool_returns_becomes_text(toolbox: ToolCaller, value: object, text: str) -> None:
    @everthread.tool
    def gives() -> object:
        """Gives something."""
        return value

    assert await toolbox("gives") == text


async def test_a_thing_that_holds_itself_becomes_text_too(toolbox: ToolCaller) -> None:
    circle: list[Any] = []
    circle.append(circle)

    @everthread.tool
    def gives() -> object:
        """Gives a circle."""
        return circle

    assert await toolbox("gives") == "[[...]]"


async def test_content_blocks_go_through_as_they_are(toolbox: ToolCaller) -> None:
    blocks = [{"type": "text", "text": "a"}, {"type": "image", "base64": "aGk=", "mime_type": "image/png"}]

    @everthread.tool
    def draws() -> object:
        """Gives blocks."""
        return blocks

    assert (await toolbox.message("draws")).content == blocks


async def test_a_langchain_tool_is_called_like_any_other(memory_et: Everthread) -> None:
    @langchain_tool(response_format="content_and_artifact")
    async def theirs(word: str) -> tuple[str, dict[str, int]]:
        """Somebody else's."""
        return word.upper(), {"length": len(word)}

    toolbox = ToolCaller(ToolContext.create(memory_et, await memory_et.conversations.create(), extra_tools=[theirs]))
    answer = await toolbox.message("theirs", word="abc")
    assert (answer.content, answer.artifact) == ("ABC", {"length": 3})
    assert "It takes: word" in await toolbox.refused("theirs", wrd="abc")
