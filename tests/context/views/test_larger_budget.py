"""One small request does not shrink every later one: what was summarised for a small budget is sent as it is where a
larger one has plenty of room for it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

import everthread
from everthread import Context, Conversation
from tests.contracts.views import tight

SMALL = tight(1_500)
LARGE = tight(16_000)


@pytest.fixture
async def conv() -> AsyncIterator[Conversation]:
    async with everthread.open("memory://", worker=False) as et:
        yield await et.conversations.create()


async def say(conv: Conversation, turns: range) -> None:
    for number in turns:
        question = f"Question {number}: what does part {number} of the order cost, and when does it come?"
        answer = f"Part {number} costs {number * 7} euro and comes on day {number}. " + "It is sent by post. " * 3
        await conv.append([{"role": "user", "content": question}, {"role": "assistant", "content": answer}])


def is_whole(context: Context, count: int) -> bool:
    window = next(part for part in context.parts if part.kind == "window")
    return not context.manifest.summary_ids and len(window.seqs) == count


async def test_what_a_small_request_summarised_is_whole_in_a_large_one(conv: Conversation) -> None:
    await say(conv, range(30))
    small = await conv.context(budget=SMALL)
    assert small.manifest.summary_ids
    large = await conv.context(budget=LARGE)
    assert is_whole(large, 60)
    assert large.omitted == ()
    again = await conv.context(budget=SMALL)
    assert again.manifest.summary_ids == small.manifest.summary_ids  # they are used again, not made again


async def test_such_a_request_can_be_seen_again(conv: Conversation) -> None:
    await say(conv, range(30))
    await conv.context(budget=SMALL)
    seen = await conv.seen_context(await conv.keep_context(await conv.context(budget=LARGE)))
    assert seen.is_same


async def test_summaries_for_this_budget_are_used_however_little_is_left(conv: Conversation) -> None:
    budget = tight(4_000)
    for start in range(0, 120, 4):
        await say(conv, range(start, start + 4))
        await conv.compact_if_due(budget=budget)
        context = await conv.context(budget=budget)
        if context.manifest.summary_ids:
            assert context.tokens <= budget.limit
    assert context.manifest.summary_ids


async def test_summaries_that_were_asked_for_stay(conv: Conversation) -> None:
    await say(conv, range(30))
    await conv.compact()
    assert (await conv.context(budget=LARGE)).manifest.summary_ids


@pytest.mark.parametrize("size", [2_000, 4_500, 4_800, 5_000])
async def test_beside_a_large_system_prompt_all_of_it_is_there_in_one_form(conv: Conversation, size: int) -> None:
    await say(conv, range(30))
    before = await conv.context(budget=SMALL)
    large = await conv.context(budget=LARGE, system="Be brief. " * size)
    assert is_whole(large, 60) or set(before.manifest.summary_ids) <= set(large.manifest.summary_ids)
    assert large.tokens <= LARGE.limit
    assert large.omitted == ()
    assert len([one async for one in conv.compactions()]) == len(before.manifest.summary_ids)


async def test_it_is_summarised_again_once_it_has_grown(conv: Conversation) -> None:
    await say(conv, range(30))
    assert (await conv.context(budget=SMALL)).manifest.summary_ids
    budget = tight(8_000)
    assert is_whole(await conv.context(budget=budget), 60)
    await say(conv, range(30, 90))
    context = await conv.context(budget=budget)
    assert context.manifest.summary_ids
