"""The conversation that the page has to show: long, with everything in it, and the same however often it is loaded."""

from __future__ import annotations

from everthread import Everthread
from everthread.context import find_violations
from everthread.core.turns import MESSAGE_KEY
from everthread.demo.load import COMPACTIONS, SUBAGENT_ID, load
from everthread.demo.story import CLOSING


async def test_the_demo_conversation_has_something_for_every_screen(et: Everthread) -> None:
    conversation = await load(et)
    messages = [message async for message in conversation.messages()]
    assert 350 <= len(messages) <= 450
    assert any(message.payload.get("tool_calls") for message in messages)
    assert any(message.payload.get("reasoning_content") for message in messages)
    assert len([one async for one in conversation.compactions()]) == COMPACTIONS
    assert len([branch async for branch in conversation.branches()]) == 2
    assert [child.id async for child in conversation.children()] == [SUBAGENT_ID]
    assert [turn.state.value for turn in await conversation.turns()] == ["complete"] * len(CLOSING)
    assert find_violations((await conversation.context()).messages) == []


async def test_the_last_question_of_the_demo_brings_its_answer_back_from_before_the_window(et: Everthread) -> None:
    conversation = await load(et)
    question, answer = await conversation.tail(2)
    assert question.text == CLOSING[-1][0]
    seen = await conversation.seen_context(answer.payload["additional_kwargs"][MESSAGE_KEY]["manifests"][0])
    (recalled,) = (message for message in seen.context.messages if "<recalled" in str(message["content"]))
    assert "412 CNY a night" in str(recalled["content"])


async def test_every_count_of_nights_in_the_demo_is_said_as_people_say_it(et: Everthread) -> None:
    said = [message.text async for message in (await load(et)).messages()]
    assert any("1 night." in text or text.endswith("1 night") for text in said)
    assert not any(" 1 nights" in text for text in said)


async def test_loaded_again_it_is_the_same(et: Everthread) -> None:
    first = [message.id async for message in (await load(et)).messages()]
    assert [message.id async for message in (await load(et)).messages()] == first


async def test_each_owner_has_their_own(et: Everthread) -> None:
    await load(et, "ann")
    assert (await load(et, "bob")).owner == "bob"
