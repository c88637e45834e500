"""Idempotency keys: the same call again gets the same answer and writes nothing."""

from __future__ import annotations

import asyncio

import pytest

import everthread
from everthread import Conversation, Erased, Everthread, HeadMoved, Invalid, KeyReused
from tests.contracts.message_helpers import appended, entry_count, says, texts


async def test_i2_a_retry_with_a_key_never_doubles_a_message(et: Everthread, conv: Conversation) -> None:
    turn = [says("question"), {"role": "assistant", "content": "answer"}]
    first = await conv.append(turn, idempotency_key="turn-1")
    await appended(conv, "meanwhile")
    for _ in range(3):
        assert await conv.append(turn, idempotency_key="turn-1") == first
    assert await texts(conv) == ["question", "answer", "meanwhile"]
    assert await entry_count(et, conv) == 3


async def test_i2_a_key_is_remembered_after_reopening(durable_url: str) -> None:
    async with everthread.open(durable_url) as et:
        conv = await et.conversations.create(id="c")
        first = await conv.append([says("once")], idempotency_key="k")
    async with everthread.open(durable_url) as et:
        conv = await et.conversations.get("c")
        assert await conv.append([says("once")], idempotency_key="k") == first
        assert await texts(conv) == ["once"]


async def test_a_key_used_for_another_body_is_refused(et: Everthread, conv: Conversation) -> None:
    await conv.append([says("a"), says("b")], idempotency_key="k")
    for body in ([says("a")], [says("b"), says("a")], [says("a"), says("b"), says("c")], [says("ab")]):
        with pytest.raises(KeyReused):
            await conv.append(body, idempotency_key="k")
    assert await entry_count(et, conv) == 2


async def test_a_key_belongs_to_its_conversation(et: Everthread, conv: Conversation) -> None:
    other = await et.conversations.create()
    await conv.append([says("here")], idempotency_key="k")
    await other.append([says("there")], idempotency_key="k")
    assert await texts(other) == ["there"]


async def test_the_same_body_under_another_key_is_another_call(conv: Conversation) -> None:
    await conv.append([says("ok")], idempotency_key="k1")
    await conv.append([says("ok")], idempotency_key="k2")
    assert await texts(conv) == ["ok", "ok"]


async def test_a_refused_call_does_not_use_up_its_key(conv: Conversation) -> None:
    await appended(conv, "first")
    with pytest.raises(HeadMoved):
        await conv.append([says("x")], idempotency_key="k", expected_head=0)
    with pytest.raises(Invalid):
        await conv.append([says("x"), "rubbish"], idempotency_key="k")
    (receipt,) = await conv.append([says("y")], idempotency_key="k", expected_head=1)
    assert (receipt.seq, receipt.new) == (2, True)


async def test_the_answer_is_the_same_though_the_head_has_moved(conv: Conversation) -> None:
    first = await conv.append([says("x")], idempotency_key="k", expected_head=0)
    await appended(conv, "more")
    assert await conv.append([says("x")], idempotency_key="k", expected_head=0) == first


async def test_many_callers_with_one_key_write_once(et: Everthread, conv: Conversation) -> None:
    answers = await asyncio.gather(*(conv.append([says("once")], idempotency_key="k") for _ in range(20)))
    assert all(answer == answers[0] for answer in answers)
    assert await entry_count(et, conv) == 1


async def test_a_key_with_ids_answers_for_revisions_too(conv: Conversation) -> None:
    await conv.append([says("v1", id="m")], idempotency_key="k1")
    second = await conv.append([says("v2", id="m")], idempotency_key="k2")
    assert await conv.append([says("v2", id="m")], idempotency_key="k2") == second
    assert [receipt.revision for receipt in await conv.append([says("v1", id="m")], idempotency_key="k1")] == [1]
    assert await texts(conv) == ["v2"]


@pytest.mark.parametrize("key", ["", "x" * 129, "a\0b", "\ud800", 5, b"k", ["k"]])
async def test_a_key_is_a_string_like_an_id(et: Everthread, conv: Conversation, key: str) -> None:
    with pytest.raises(Invalid, match="idempotency_key"):
        await conv.append([says("x")], idempotency_key=key)
    assert await entry_count(et, conv) == 0


@pytest.mark.parametrize("key", ["x" * 128, "'; DROP TABLE entries; --", "../../etc", "键 🔑"])
async def test_any_other_string_is_a_key(conv: Conversation, key: str) -> None:
    first = await conv.append([says("x")], idempotency_key=key)
    assert await conv.append([says("x")], idempotency_key=key) == first


async def test_i2_erasing_another_message_leaves_a_key_its_answer(et: Everthread, conv: Conversation) -> None:
    (gone,) = await conv.append([says("to be erased")])
    kept = await conv.append([says("to be kept")], idempotency_key="k")
    await et.erase(conversation=conv.id, message=gone.id)
    assert await conv.append([says("to be kept")], idempotency_key="k") == kept
    assert await texts(conv) == ["to be kept"]


async def test_i21_a_retry_by_key_does_not_bring_an_erased_message_back(et: Everthread, conv: Conversation) -> None:
    first, second = await conv.append([says("secret"), says("other")], idempotency_key="k")
    await et.erase(conversation=conv.id, message=first.id)
    for body in ([says("secret"), says("other")], [says("guessed")]):
        with pytest.raises(Erased):
            await conv.append(body, idempotency_key="k")
    assert await texts(conv) == ["other"]
    await et.erase(conversation=conv.id, message=second.id)
    with pytest.raises(Erased):
        await conv.append([says("secret"), says("other")], idempotency_key="k")
