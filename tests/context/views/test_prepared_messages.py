"""What was made ready of a message is used again by the next request, and by nobody who could change it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from copy import deepcopy
from pathlib import Path

import pytest

import everthread
from everthread import Conversation, Everthread
from everthread.context import ingredients
from tests.contracts.views import IMAGE, call, result

HISTORY = [
    {"role": "user", "content": [{"type": "text", "text": "Look"}, {"type": "image_url", "image_url": {"url": IMAGE}}]},
    call("c1"),
    result("c1", "a row"),
    {"role": "assistant", "content": "It is a cat."},
    {"role": "user", "content": "Thank you."},
]


@pytest.fixture
async def et(tmp_path: Path) -> AsyncIterator[Everthread]:
    async with everthread.open(f"sqlite:///{tmp_path}/et.db", worker=False, embedder=None) as opened:
        yield opened


@pytest.fixture
async def conv(et: Everthread) -> Conversation:
    conv = await et.conversations.create(id="c")
    await conv.append(HISTORY)
    return conv


async def test_a_caller_may_change_a_request_and_the_next_is_what_it_was(conv: Conversation) -> None:
    first = await conv.context()
    whole = deepcopy(first.messages)
    for message in first.messages:
        if isinstance(message["content"], list):
            message["content"][0]["text"] = "changed"
            message["content"].append({"type": "text", "text": "more"})
        for made in message.get("tool_calls", ()):
            made["function"]["arguments"] = "{}"
        message["content"] = "changed"
    again = await conv.context()
    assert again.messages == whole
    assert again.manifest.digest == first.manifest.digest


async def test_a_message_is_read_once_while_it_stays_what_it_is(conv: Conversation) -> None:
    first = await conv._runtime.compaction.view(conv._ref, None, None)
    again = await conv._runtime.compaction.view(conv._ref, None, None)
    assert [one is two for one, two in zip(first.window, again.window, strict=True)] == [True] * len(HISTORY)


async def test_a_revised_message_is_read_anew(conv: Conversation) -> None:
    before = await conv.context()
    answer = (await conv.tail(2))[0]
    await conv.append([{**answer.payload, "id": answer.id, "content": "It is a dog."}])
    after = await conv.context()
    assert before.messages[3]["content"] == "It is a cat."
    assert after.messages[3]["content"] == "It is a dog."


async def test_nothing_of_an_erased_message_is_kept(et: Everthread, conv: Conversation) -> None:
    question = (await conv.tail(5))[0]
    await conv.context()
    assert len(ingredients.recent_messages)
    await et.erase(conversation=conv.id, message=question.id)
    assert not len(ingredients.recent_messages)
    shown = await conv.context()
    assert "Look" not in str(shown.messages)
