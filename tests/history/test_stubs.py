"""Stubs are told by the file they name, which is called after the call, and by being shorter than the original."""

from __future__ import annotations

from typing import Any

import pytest

from everthread import Everthread
from everthread.history.stubs import is_stub


def result(text: str, call: str = "call_1") -> dict[str, Any]:
    return {"type": "tool", "content": text, "tool_call_id": call, "id": "m"}


@pytest.mark.parametrize(
    ("said", "call", "is_one"),
    [
        ("see /large_tool_results/call_1", "call_1", True),
        ("see /results/a_b_c", "a.b/c", True),
        ("nothing to see", "call_1", False),
        ("see /large_tool_results/call_1" + "x" * 1000, "call_1", False),
    ],
)
def test_a_stub_names_the_file_of_its_call_and_is_shorter(said: str, call: str, is_one: bool) -> None:
    assert is_stub(result(said, call), result("y" * 500, call)) is is_one
    assert not is_stub(result(said, call), result("y" * 500, "another"))


async def test_history_shows_the_original_and_the_stub_is_kept_once(et: Everthread) -> None:
    conversation = await et.conversations.create()
    original, stub = result("y" * 500), result("see /large_tool_results/call_1")
    for message in (original, stub, stub):
        await conversation.append([message])
    assert [message.payload async for message in conversation.messages()] == [original]
    assert (await conversation.refresh()).info.entry_count == 2
    await conversation.append([result("redacted")])
    assert [message.text async for message in conversation.messages()] == ["redacted"]
    assert (await et.verify()).problems == ()
