"""The demo shows what it is there to show, and would say so if it did not."""

from __future__ import annotations

import asyncio
import dataclasses
import io
import json
import socket
from pathlib import Path
from typing import Any

import pytest
from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import AIMessage, ToolCall, ToolMessage
from rich.console import Console

import everthread
from everthread.demo import DemoResult, render, run
from everthread.demo.play import MessageRecorder


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo") / "demo.db"


@pytest.fixture(scope="module")
def result(database: Path) -> DemoResult:
    """One run of the demo, for all tests here."""
    return asyncio.run(run(f"sqlite:///{database}"))


def shown(result: DemoResult) -> str:
    page = io.StringIO()
    render(result, Console(file=page, width=100))
    return page.getvalue()


def test_a_long_conversation_outlives_its_checkpoint(result: DemoResult) -> None:
    assert result.ok
    assert result.turns == 60
    assert 250 <= result.said <= 300
    assert result.in_log == result.said
    assert result.in_checkpoint < result.said / 10
    assert result.summaries > 5


async def test_what_it_counts_is_in_the_database(result: DemoResult, database: Path) -> None:
    async with everthread.open(f"sqlite:///{database}") as et:
        conversation = await et.conversations.get(result.conversation_id)
        history = [message async for message in conversation.messages()]
        report = await et.verify()
    assert len(history) == result.said
    assert report.ok
    assert report.entries == result.verified_entries == result.said + result.summaries


async def test_repeated_words_are_messages_of_their_own(result: DemoResult, database: Path) -> None:
    async with everthread.open(f"sqlite:///{database}") as et:
        conversation = await et.conversations.get(result.conversation_id)
        assert len([message async for message in conversation.messages() if message.text == "ok"]) == 11


def test_the_searches_find_the_beginning_which_the_checkpoint_has_lost(result: DemoResult) -> None:
    assert len(result.searches) == 3
    for search in result.searches:
        assert 1 <= search.seq <= 12, search.query
        assert not search.in_checkpoint
    assert any("晕车" in search.text for search in result.searches)


def test_the_page_shows_every_figure(result: DemoResult) -> None:
    page = shown(result)
    for figure in (result.said, result.in_checkpoint, result.in_log, result.summaries, result.verified_entries):
        assert str(figure) in page
    for search in result.searches:
        assert search.query in page
    assert result.conversation_id in page


def test_a_loss_is_not_glossed_over(result: DemoResult) -> None:
    lossy = dataclasses.replace(result, in_log=result.said - 1, is_exact=False)
    assert not lossy.ok
    assert "NOT" in shown(lossy)
    broken = dataclasses.replace(result, is_verified=False)
    assert not broken.ok
    assert "BROKEN" in shown(broken)


def test_the_result_is_one_json_document(result: DemoResult) -> None:
    document = json.loads(json.dumps(result.as_json()))
    assert document["ok"] is True
    assert document["said"] == result.said
    assert [search["query"] for search in document["searches"]] == [search.query for search in result.searches]


def test_it_needs_no_network_and_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("the demo must not use the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    result = asyncio.run(run())
    assert result.ok
    assert result.database is None
    assert list(tmp_path.iterdir()) == []


async def test_answers_of_tools_called_together_are_heard_in_the_order_of_the_calls() -> None:
    recorder = MessageRecorder()
    calls: list[ToolCall] = [{"name": "note", "args": {}, "id": id} for id in ("slow", "quick")]
    recorder.messages.append(AIMessage("", tool_calls=calls))
    is_quick_done = asyncio.Event()

    async def slow(request: ToolCallRequest) -> ToolMessage:
        await is_quick_done.wait()
        return ToolMessage("one", tool_call_id="slow")

    async def quick(request: ToolCallRequest) -> ToolMessage:
        is_quick_done.set()
        return ToolMessage("two", tool_call_id="quick")

    request: Any = None
    await asyncio.gather(recorder.awrap_tool_call(request, slow), recorder.awrap_tool_call(request, quick))
    assert [message.text for message in recorder.messages[1:]] == ["one", "two"]
