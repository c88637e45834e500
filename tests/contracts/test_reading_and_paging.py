"""Reading: from any place, any number, along any branch, over the borders of the pages a store reads in."""

from __future__ import annotations

import pytest

from everthread import Conversation, Everthread, Invalid, NotFound
from tests.contracts.message_helpers import appended, history, says, seqs, texts

MANY = 1_203
"""More than two of the pages that history is read in."""


@pytest.fixture
async def talk(conv: Conversation) -> Conversation:
    await appended(conv, *"abcdef")
    return conv


async def test_an_empty_conversation_has_no_history(conv: Conversation) -> None:
    assert await history(conv) == []
    assert await conv.tail(10) == []


async def test_reading_begins_after_a_seq(talk: Conversation) -> None:
    assert await seqs(talk, after=0) == [1, 2, 3, 4, 5, 6]
    assert await seqs(talk, after=4) == [5, 6]
    assert await seqs(talk, after=6) == []
    assert await seqs(talk, after=7_000) == []


async def test_a_limit_is_how_many_messages_come(talk: Conversation) -> None:
    assert await seqs(talk, limit=2) == [1, 2]
    assert await seqs(talk, limit=0) == []
    assert await seqs(talk, limit=100) == [1, 2, 3, 4, 5, 6]
    assert await seqs(talk, after=2, limit=3) == [3, 4, 5]


async def test_a_limit_counts_messages_and_not_their_revisions(conv: Conversation) -> None:
    await conv.append([says("a", id="a"), says("b", id="b")])
    await conv.append([says("a2", id="a")])
    assert await texts(conv, limit=1, revisions=True) == ["a", "a2"]
    assert await texts(conv, limit=2, revisions=True) == ["a", "a2", "b"]


async def test_the_tail_is_the_newest_in_their_order(talk: Conversation) -> None:
    assert [message.seq for message in await talk.tail(2)] == [5, 6]
    assert [message.seq for message in await talk.tail(0)] == []
    assert [message.seq for message in await talk.tail(100)] == [1, 2, 3, 4, 5, 6]


async def test_reading_page_by_page_by_hand_shows_each_message_once(talk: Conversation) -> None:
    await talk.delete_message((await talk.tail(3))[0].id)
    read, after = [], 0
    while page := await seqs(talk, after=after, limit=2):
        read += page
        after = page[-1]
    assert read == [1, 2, 3, 5, 6]


async def test_long_histories_come_whole_and_in_order(conv: Conversation) -> None:
    for start in range(0, MANY, 400):
        await conv.append([says(str(n), id=str(n)) for n in range(start, min(start + 400, MANY))])
    await conv.append([says("0, revised", id="0"), says("499, revised", id="499")])
    shown = await history(conv)
    assert [message.id for message in shown] == [str(n) for n in range(MANY)]
    assert [message.seq for message in shown] == list(range(1, MANY + 1))
    assert (shown[0].text, shown[499].text) == ("0, revised", "499, revised")
    assert len(await history(conv, revisions=True)) == MANY + 2
    for after, limit in ((499, 2), (500, 500), (501, 700), (0, 1_000), (1_000, None)):
        expected = list(range(1, MANY + 1))[after : None if limit is None else after + limit]
        assert await seqs(conv, after=after, limit=limit) == expected
    assert [message.seq for message in await conv.tail(700)] == list(range(MANY - 699, MANY + 1))


async def test_deleted_messages_take_nothing_off_a_page(conv: Conversation) -> None:
    await conv.append([says(str(n), id=str(n)) for n in range(700)])
    for n in range(490, 510):
        await conv.delete_message(str(n))
    left = [n for n in range(700) if not 490 <= n < 510]
    assert [int(text) for text in await texts(conv)] == left
    assert [int(text) for text in await texts(conv, limit=600)] == left[:600]
    assert [int(message.text) for message in await conv.tail(300)] == left[-300:]
    assert len(await texts(conv, include_deleted=True)) == 700


async def test_a_path_over_branches_is_read_over_page_borders(conv: Conversation) -> None:
    await conv.append([says(f"main {n}") for n in range(520)])
    await conv.fork(510, activate=True)
    await conv.append([says(f"fork {n}") for n in range(520)])
    expected = [f"main {n}" for n in range(510)] + [f"fork {n}" for n in range(520)]
    assert await texts(conv) == expected
    assert await texts(conv, after=505) == expected[505:]
    assert await texts(conv, after=505, limit=10) == expected[505:515]
    assert [message.text for message in await conv.tail(525)] == expected[-525:]


async def test_reading_sees_what_was_acknowledged_before_it(conv: Conversation) -> None:
    for number in range(20):
        (seq,) = await appended(conv, str(number))
        assert (await conv.tail(1))[0].seq == seq
        assert await seqs(conv, after=seq - 1) == [seq]


async def test_a_reader_may_stop_early_and_others_go_on(conv: Conversation) -> None:
    await appended(conv, *map(str, range(600)))
    one, other = conv.messages(), conv.messages()
    assert [(await anext(one)).seq, (await anext(other)).seq, (await anext(one)).seq] == [1, 1, 2]
    await appended(conv, "600")
    assert len([message async for message in other]) >= 599


async def test_one_message_is_found_by_its_id(et: Everthread, talk: Conversation) -> None:
    other = await et.conversations.create()
    (receipt,) = await other.append([says("elsewhere")])
    with pytest.raises(NotFound):
        await talk.message(receipt.id)
    with pytest.raises(NotFound):
        await talk.message("unknown")


@pytest.mark.parametrize("wrong", [-1, -(10**30), 1.0, "1", True, [], float("nan")])
async def test_counts_and_places_are_whole_numbers_from_zero(talk: Conversation, wrong: object) -> None:
    with pytest.raises(Invalid):
        await history(talk, limit=wrong)
    with pytest.raises(Invalid):
        await history(talk, after=wrong)
    with pytest.raises(Invalid):
        await talk.tail(wrong)  # type: ignore[arg-type]
    with pytest.raises(Invalid):
        await talk.fork(wrong)  # type: ignore[arg-type]
    with pytest.raises(Invalid):
        await talk.append([says("x")], expected_head=wrong)  # type: ignore[arg-type]
    assert await texts(talk) == list("abcdef")


async def test_the_largest_count_a_store_can_keep_is_taken(talk: Conversation) -> None:
    largest = 2**32 - 1
    assert await seqs(talk, limit=largest) == [1, 2, 3, 4, 5, 6]
    assert await seqs(talk, after=largest) == []
    assert len(await talk.tail(largest)) == 6
    with pytest.raises(NotFound):
        await talk.fork(largest)
    with pytest.raises(NotFound):
        await texts(talk, branch=largest)


@pytest.mark.parametrize("beyond", [2**32, 2**32 + 1, 2**63, 10**30])
async def test_a_number_no_log_can_reach_is_refused(talk: Conversation, beyond: int) -> None:
    with pytest.raises(Invalid):
        await seqs(talk, after=beyond)
    with pytest.raises(Invalid):
        await seqs(talk, limit=beyond)
    with pytest.raises(Invalid):
        await talk.tail(beyond)
    with pytest.raises(Invalid):
        await talk.fork(beyond)
    with pytest.raises(Invalid):
        await texts(talk, branch=beyond)
    with pytest.raises(Invalid):
        await appended(talk, "x", expected_head=beyond)
