"""Time is shown and never trusted: a clock that jumps changes no order."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import everthread
from everthread.testing import ManualClock
from tests.contracts.message_helpers import history, says, seqs, texts

JUMPS = (
    timedelta(0),
    timedelta(days=-4_000),
    timedelta(days=20_000),
    timedelta(microseconds=-1),
    timedelta(days=-60 * 365),
    timedelta(days=365 * 100),
)
"""To the past, to the future, to before 1970 and beyond 2038."""


async def test_i27_clock_jumps_change_no_order_of_messages(url: str) -> None:
    clock = ManualClock()
    async with everthread.open(url, clock=clock) as et:
        conv = await et.conversations.create()
        moments = []
        for number, jump in enumerate(JUMPS):
            moments.append(clock.move(jump))
            await conv.append([says(str(number), id=str(number), created_at=moments[-1].isoformat())])
        expected = [str(number) for number in range(len(JUMPS))]
        assert await texts(conv) == expected
        assert await seqs(conv) == list(range(1, len(JUMPS) + 1))
        assert [message.text for message in await conv.tail(3)] == expected[-3:]
        assert [message.created_at for message in await history(conv)] == moments
        assert [message.said_at for message in await history(conv)] == moments
        assert (await et.verify()).ok


async def test_i27_clock_jumps_change_no_order_of_revisions_marks_and_branches(url: str) -> None:
    clock = ManualClock()
    async with everthread.open(url, clock=clock) as et:
        conv = await et.conversations.create()
        await conv.append([says("a", id="a"), says("v0", id="m")])
        for number, jump in enumerate(JUMPS, start=1):
            clock.move(jump)
            await conv.append([says(f"v{number}", id="m")])
            await conv.delete_message("a")
            clock.move(-jump * 2)
            await conv.restore_message("a")
            await conv.fork(2)
        assert await texts(conv) == ["a", f"v{len(JUMPS)}"]
        assert [message.revision for message in await history(conv, revisions=True)][1:] == list(range(1, 8))
        assert [branch.id async for branch in conv.branches()] == ["main", *(f"b{n}" for n in range(1, 7))]
        clock.now = datetime(1969, 1, 1, tzinfo=UTC)
        await conv.edit("m", says("edited"))
        assert await texts(conv) == ["a", "edited"]
        assert (await et.verify()).ok


async def test_i27_clock_jumps_change_no_order_of_conversations(url: str) -> None:
    clock = ManualClock()
    async with everthread.open(url, clock=clock) as et:
        for number, jump in enumerate(JUMPS):
            clock.move(jump)
            await et.conversations.create(id=str(number))
        clock.move(timedelta(days=-1))
        await (await et.conversations.get("0")).update(title="touched")
        listed, cursor = [], None
        while True:
            page = await et.conversations.list(limit=2, cursor=cursor)
            listed += [conv.id for conv in page.items]
            cursor = page.next_cursor
            if cursor is None:
                break
        assert listed == [str(number) for number in reversed(range(len(JUMPS)))]
        assert [head.conversation_id for head in await et.heads()] == listed[::-1]


async def test_i27_a_retry_in_the_past_is_still_a_retry(url: str) -> None:
    clock = ManualClock()
    async with everthread.open(url, clock=clock) as et:
        conv = await et.conversations.create()
        first = await conv.append([says("once")], idempotency_key="k")
        clock.move(timedelta(days=-10_000))
        assert await conv.append([says("once")], idempotency_key="k") == first
        clock.move(timedelta(days=50_000))
        assert await conv.append([says("once")], idempotency_key="k") == first
        assert await texts(conv) == ["once"]
