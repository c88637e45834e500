"""Many at once: writers of one conversation take turns, nothing is lost, doubled or mixed."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress

import pytest

import everthread
from everthread import Conversation, Everthread, HeadMoved, Receipt
from tests.contracts.message_helpers import appended, entry_count, history, says, seqs, texts


async def test_fifty_writers_of_one_conversation_lose_and_double_nothing(et: Everthread, conv: Conversation) -> None:
    async def writer(number: int) -> list[Receipt]:
        return [
            receipt
            for turn in range(4)
            for receipt in await conv.append([says(f"{number}/{turn}/{part}") for part in range(2)])
        ]

    receipts = [receipt for written in await asyncio.gather(*map(writer, range(50))) for receipt in written]
    assert sorted(receipt.seq for receipt in receipts) == list(range(1, 401))
    shown = await history(conv)
    assert [message.seq for message in shown] == list(range(1, 401))
    assert [message.parent_seq for message in shown] == [None, *range(1, 400)]
    assert {message.id: message.seq for message in shown} == {receipt.id: receipt.seq for receipt in receipts}
    together = [message.text.rpartition("/") for message in shown]
    assert all(one[0] == other[0] for one, other in zip(together[::2], together[1::2], strict=True))
    for number in range(50):
        own = [text for text in (message.text for message in shown) if text.startswith(f"{number}/")]
        assert own == [f"{number}/{turn}/{part}" for turn in range(4) for part in range(2)]
    assert (await et.verify()).ok


async def test_writers_of_many_conversations_do_not_meet(et: Everthread) -> None:
    convs = [await et.conversations.create() for _ in range(20)]
    for turn in range(5):
        await asyncio.gather(*(appended(conv, f"{conv.id} {turn}") for conv in convs))
    for conv in convs:
        assert await texts(conv) == [f"{conv.id} {turn}" for turn in range(5)]
        assert await seqs(conv) == [1, 2, 3, 4, 5]


async def test_of_those_who_expect_one_head_exactly_one_wins(conv: Conversation) -> None:
    for head in range(5):
        attempts = (conv.append([says(f"{head} by {n}")], expected_head=head) for n in range(20))
        outcomes = await asyncio.gather(*attempts, return_exceptions=True)
        assert Counter(type(outcome) for outcome in outcomes) == {list: 1, HeadMoved: 19}
    assert await seqs(conv) == [1, 2, 3, 4, 5]


async def test_the_losers_of_a_race_get_in_by_trying_again(conv: Conversation) -> None:
    async def persistent(number: int) -> None:
        while True:
            tail = await conv.tail(1)
            with suppress(HeadMoved):
                await conv.append([says(str(number))], expected_head=tail[0].seq if tail else 0)
                return

    await asyncio.gather(*map(persistent, range(8)))
    assert sorted(await texts(conv)) == [str(number) for number in range(8)]


async def test_i2_a_cancelled_append_is_safe_to_retry_by_id(et: Everthread, conv: Conversation) -> None:
    for number in range(30):
        attempt = asyncio.ensure_future(conv.append([says(str(number), id=str(number))]))
        for _ in range(number % 5):
            await asyncio.sleep(0)
        attempt.cancel()
        with suppress(asyncio.CancelledError):
            await attempt
        (receipt,) = await conv.append([says(str(number), id=str(number))])
        assert receipt.revision == 1
    assert await texts(conv) == [str(number) for number in range(30)]
    assert await entry_count(et, conv) == 30


async def test_a_cancelled_append_holds_nobody_up(et: Everthread, conv: Conversation) -> None:
    attempts = [asyncio.ensure_future(appended(conv, str(number))) for number in range(40)]
    await asyncio.sleep(0)
    for attempt in attempts[::2]:
        attempt.cancel()
    outcomes = await asyncio.gather(*attempts, return_exceptions=True)
    kept = {str(number) for number, outcome in enumerate(outcomes) if isinstance(outcome, list)}
    assert kept >= {str(number) for number in range(1, 40, 2)}
    assert kept <= set(await texts(conv))
    assert len(await texts(conv)) == len(set(await texts(conv))) == await entry_count(et, conv)


async def test_marks_edits_and_appends_at_once_keep_the_chain(et: Everthread, conv: Conversation) -> None:
    await conv.append([says(str(number), id=str(number)) for number in range(10)])
    await asyncio.gather(
        *(conv.pin(str(number)) for number in range(10)),
        *(conv.delete_message(str(number)) for number in range(5)),
        *(conv.append([says(f"{number}!", id=str(number))]) for number in range(10)),
        *(conv.edit(str(number), says("edited"), activate=False) for number in range(10)),
        *(appended(conv, "more", branch="main") for _ in range(10)),
        *(conv.fork(5) for _ in range(5)),
    )
    assert await entry_count(et, conv) == 10 + 10 + 5 + 10 + 10 + 10
    assert len([branch async for branch in conv.branches()]) == 1 + 10 + 5
    assert await texts(conv) == [f"{number}!" for number in range(5, 10)] + ["more"] * 10
    assert (await et.verify()).ok


async def test_readers_never_see_half_a_batch(conv: Conversation) -> None:
    async def write() -> None:
        for turn in range(30):
            await appended(conv, *(f"{turn}/{part}" for part in range(7)))

    writing = asyncio.ensure_future(write())
    while not writing.done():
        assert len(await texts(conv)) % 7 == 0
        assert len(await conv.tail(1_000)) % 7 == 0
        await asyncio.sleep(0)
    await writing
    assert len(await texts(conv)) == 210


async def test_an_erase_beside_writers_breaks_nothing(et: Everthread, conv: Conversation) -> None:
    await conv.append([says("secret", id="secret")])
    await asyncio.gather(
        *(appended(conv, f"{number}") for number in range(20)),
        et.erase(conversation=conv.id, message="secret"),
        *(et.search("secret") for _ in range(5)),
    )
    assert len(await texts(conv)) == 20
    assert not await et.search("secret")


@pytest.mark.parametrize("writers", [2, 5])
async def test_writers_through_several_openings_take_turns_too(durable_url: str, writers: int) -> None:
    openings = [everthread.open(durable_url) for _ in range(writers)]
    for et in openings:
        await et.__aenter__()
    try:
        await openings[0].conversations.create(id="c")
        convs = [await et.conversations.get("c") for et in openings]
        await asyncio.gather(*(appended(conv, str(n)) for n in range(20) for conv in convs))
        assert await seqs(convs[0]) == list(range(1, 20 * writers + 1))
        assert (await openings[-1].verify()).ok
    finally:
        await asyncio.gather(*(et.close() for et in openings))


async def test_many_who_open_and_close_at_once_do_it_once(durable_url: str) -> None:
    et = everthread.open(durable_url)
    await asyncio.gather(*(et.__aenter__() for _ in range(3)))
    await appended(await et.conversations.create(id="hush", off_record=True), "hush")
    await appended(await et.conversations.create(id="c"), "kept")
    await asyncio.gather(*(et.close() for _ in range(3)))
    with pytest.raises(everthread.StoreError):
        await et.heads()
    async with et:
        assert [conv.id for conv in (await et.conversations.list()).items] == ["c"]


async def test_i1_acknowledged_appends_are_there_after_reopening(durable_url: str) -> None:
    acknowledged: dict[str, int] = {}
    for opening in range(3):
        async with everthread.open(durable_url) as et:
            conv = await et.conversations.ensure("c")
            for receipts in await asyncio.gather(
                *(conv.append([says(f"{opening}/{n}", id=f"{opening}/{n}")]) for n in range(20))
            ):
                acknowledged |= {receipt.id: receipt.seq for receipt in receipts}
    async with everthread.open(durable_url) as et:
        shown = await history(await et.conversations.get("c"))
        assert {message.id: message.seq for message in shown} == acknowledged
        assert [message.seq for message in shown] == list(range(1, 61))
        assert (await et.verify()).ok


async def test_i1_an_append_that_is_under_way_when_the_database_closes_is_kept_or_refused(durable_url: str) -> None:
    et = everthread.open(durable_url)
    async with et:
        conv = await et.conversations.create(id="c")
        attempts = [asyncio.ensure_future(conv.append([says(str(n), id=str(n))])) for n in range(20)]
        await asyncio.sleep(0)
    async with asyncio.timeout(60):
        outcomes = await asyncio.gather(*attempts, return_exceptions=True)
    acknowledged = {outcome[0].id for outcome in outcomes if not isinstance(outcome, BaseException)}
    refused = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
    assert all(isinstance(problem, everthread.StoreError) for problem in refused)
    async with everthread.open(durable_url) as et:
        assert acknowledged <= {message.id for message in await history(await et.conversations.get("c"))}
        assert (await et.verify()).ok
