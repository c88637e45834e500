"""A long conversation in a small window, and a small model's turn in a conversation that larger ones go on with."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

import everthread
from everthread import Budget, Conversation
from everthread.compaction.policy import ORDINARY_SUMMARY_TOKENS
from everthread.context.ingredients import Ingredients, QuotedSummary
from everthread.context.quotes import quotes_within
from tests.contracts.views import check, live, tell, text_of, tight

SMALL = Budget(window=16_000)
LONG = "and then the crew of ship {n} found harbour {n} closed until {n} May, so they paid {n}00 euro to wait. "


@pytest.fixture
async def conv() -> AsyncIterator[Conversation]:
    async with everthread.open("memory://", worker=False) as et:
        yield await et.conversations.create()


async def test_summaries_fill_their_share_of_a_small_window_and_no_more(conv: Conversation) -> None:
    compacted = 0
    turns = 120
    for number in range(turns):
        said = "".join(LONG.format(n=number * 20 + line) for line in range(14))
        await conv.append([{"role": "user", "content": said}, {"role": "assistant", "content": f"Noted: {said}"}])
        compacted += (await conv.compact_if_due(budget=SMALL)).compacted
    assert 0 < compacted <= turns / 2.5
    context = await conv.context(budget=SMALL)
    await check(conv, context)
    (recorded,) = [part.tokens for part in context.parts if part.kind == "summary"]
    assert 0.35 * SMALL.limit <= recorded <= 0.45 * SMALL.limit
    assert max(one.level for one in await conv.summaries()) <= 3


async def test_a_tiny_request_leaves_a_summary_of_the_policys_size(conv: Conversation) -> None:
    await tell(conv, 40)
    tiny = await conv.context(budget=tight(400))
    await check(conv, tiny)
    leaves = [one for one in await live(conv) if one.level == 1]
    assert leaves
    assert all(one.tokens_after > ORDINARY_SUMMARY_TOKENS // 3 for one in leaves)
    whole = await conv.context()  # with so much room it needs none of them
    shown = text_of(await conv.context(budget=tight(2 * whole.tokens)))
    assert all(one.summary in shown for one in leaves)


@pytest.mark.parametrize("room", [220, 300, 900])
def test_a_summary_that_is_too_long_for_a_request_is_shown_in_part(room: int) -> None:
    older, newest = (
        QuotedSummary(id=id, first_seq=1, last_seq=9, text="".join(LONG.format(n=n) for n in range(at, at + 40)))
        for id, at in (("a", 0), ("b", 100))
    )
    told = quotes_within(Ingredients(summaries=[older, newest]), room)
    assert [summary.id for summary in told.summaries] == ["b"]
    assert told.tokens <= room
    assert "crew of ship 100" in told.blocks[0]
    assert quotes_within(Ingredients(summaries=[older, newest]), 120).summaries == ()


async def test_a_tiny_request_does_not_compact_at_every_turn(conv: Conversation) -> None:
    await tell(conv, 40)
    for _ in range(4):
        await conv.context(budget=tight(400))
    before = len([one async for one in conv.compactions()])
    for number in range(8):
        await conv.append({"role": "user", "content": f"Say {number}."})
        await conv.context(budget=tight(400))
    assert len([one async for one in conv.compactions()]) <= before + 2
