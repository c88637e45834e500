"""Memory grades itself: rare facts that were used again, and whether the request had their source."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

import everthread
from everthread import Budget, CompactionPolicy, Conversation, RecallPolicy
from everthread.core.clock import system_clock
from everthread.core.nouns import Ref
from everthread.replay import Grade, Trial, read_transcript
from tests.contracts.message_helpers import says
from tests.contracts.views import tell

SMALL = CompactionPolicy(enabled=False, max_message_history=10, keep_recent=4, recalled_max_tokens=400)
"""Without summaries, which would keep the facts."""


@pytest.fixture
async def conv() -> AsyncIterator[Conversation]:
    async with everthread.open("memory://") as et:
        await et.compaction_config.set({"enabled": False})
        yield await et.conversations.create(id="c")


async def grade(conv: Conversation, policy: CompactionPolicy = SMALL, recall: RecallPolicy | None = None) -> Grade:
    ref = Ref(conv.owner, conv.id)
    trial = Trial(store=conv._store, clock=system_clock, ref=ref, budget=Budget(window=8_000))
    return await trial.grade(policy, recall or RecallPolicy(), await read_transcript(conv._store, ref))


async def test_a_rare_fact_that_is_used_again_is_graded(conv: Conversation) -> None:
    await conv.append(
        [says("The parcel is INV-20417 from the bakery", id="source"), {"role": "assistant", "content": "ok"}]
    )
    await tell(conv, 30)
    await conv.append(
        [says("Has the bakery parcel INV-20417 come?", id="use"), {"role": "assistant", "content": "yes"}]
    )
    with_recall = await grade(conv)
    (use,) = [use for use in with_recall.uses if use.fact.normal == "inv-20417"]
    assert (use.source_seq, use.place) == (1, "recalled")
    assert with_recall.debt < 1
    without = await grade(conv, recall=RecallPolicy(top_k=0))
    (use,) = [use for use in without.missing if use.fact.normal == "inv-20417"]
    assert without.debt > with_recall.debt


async def test_what_a_tool_was_asked_for_is_a_use(conv: Conversation) -> None:
    await conv.append([says("My booking is QX7781"), {"role": "assistant", "content": "Noted."}])
    await tell(conv, 30)
    call = {"id": "c1", "type": "function", "function": {"name": "find", "arguments": '{"booking": "QX7781"}'}}
    await conv.append(
        [
            says("Please move the booking to Friday"),
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "content": "moved", "tool_call_id": "c1"},
            {"role": "assistant", "content": "Done."},
        ]
    )
    assert "qx7781" in [use.fact.normal for use in (await grade(conv)).beyond_view]


async def test_what_is_in_view_is_no_debt(conv: Conversation) -> None:
    await conv.append([says("The parcel is INV-20417"), {"role": "assistant", "content": "ok"}])
    await tell(conv, 2)
    await conv.append([says("Where is INV-20417?"), {"role": "assistant", "content": "here"}])
    graded = await grade(conv, CompactionPolicy())
    assert [use.place for use in graded.uses if use.fact.normal == "inv-20417"] == ["view"]
    assert graded.debt == 0


async def test_grading_writes_nothing(conv: Conversation) -> None:
    await tell(conv, 20)
    before = [message.seq async for message in conv.messages()]
    await grade(conv)
    assert [message.seq async for message in conv.messages()] == before
    assert [one async for one in conv.compactions()] == []
