"""Who is who: a message is its id. The same again is nothing new; other content is a revision in its place."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

import everthread
from everthread import Conversation, Everthread
from everthread.testing import ManualClock
from tests.contracts.message_helpers import appended, entry_count, history, says, seqs, texts


async def test_the_same_message_again_is_nothing_new(et: Everthread, conv: Conversation) -> None:
    (first,) = await conv.append([says("hi", id="m1")])
    (again,) = await conv.append([says("hi", id="m1")])
    assert (again.id, again.seq, again.revision, again.new) == ("m1", first.seq, 1, False)
    assert await entry_count(et, conv) == 1


@pytest.mark.parametrize(
    "again",
    [
        {"content": "hi", "role": "user", "id": "m1"},
        {"role": "user", "content": "hi", "id": "m1", "name": None, "additional_kwargs": {}, "tool_calls": []},
        {"role": "user", "content": "hi", "id": "m1", "example": False, "status": "success"},
        b'{ "id": "m1",\n  "role": "user", "content": "\\u0068i" }',
    ],
)
async def test_key_order_spacing_and_empty_fields_do_not_make_it_another_message(
    et: Everthread, conv: Conversation, again: object
) -> None:
    await conv.append([says("hi", id="m1")])
    (receipt,) = await conv.append([again])
    assert (receipt.seq, receipt.new) == (1, False)
    assert await entry_count(et, conv) == 1


async def test_a_message_that_comes_back_with_the_id_it_was_given_is_the_same(
    et: Everthread, conv: Conversation
) -> None:
    given = [says("hi"), {"type": "human", "data": {"content": "ho"}}]
    first, second = await conv.append(given)
    again = await conv.append([says("hi", id=first.id), {"type": "human", "data": {"content": "ho", "id": second.id}}])
    assert [(r.id, r.seq, r.new) for r in again] == [(first.id, 1, False), (second.id, 2, False)]
    assert [message.payload for message in await history(conv)] == given


@pytest.mark.parametrize(
    "other",
    [
        says("hi ", id="m1"),
        says("hi", id="m1", name="Ann"),
        says(["hi"], id="m1"),
        says("hi", id="m1", n=0),
    ],
)
async def test_other_content_under_the_same_id_is_a_revision(conv: Conversation, other: dict[str, Any]) -> None:
    await conv.append([says("hi", id="m1")])
    (receipt,) = await conv.append([other])
    assert (receipt.id, receipt.seq, receipt.revision, receipt.new) == ("m1", 2, 2, True)
    message = await conv.message("m1")
    assert message.payload == other
    assert (message.seq, message.revision) == (1, 2)


@pytest.mark.parametrize(("one", "other"), [(1, True), (1, 1.0), (0, False), (0, ""), ("1", 1)])
async def test_values_that_python_calls_equal_are_told_apart(conv: Conversation, one: object, other: object) -> None:
    await conv.append([says("hi", id="m1", value=one)])
    (receipt,) = await conv.append([says("hi", id="m1", value=other)])
    assert receipt.new
    value = (await conv.message("m1")).payload["value"]
    assert (type(value), value) == (type(other), other)


async def test_a_revision_takes_over_the_place_and_what_follows_stays(conv: Conversation) -> None:
    await conv.append([says("plan a trip", id="m1"), says("where to?", id="m2"), says("Lisbon", id="m3")])
    await conv.append([says("plan a trip, in May", id="m1")])
    assert await texts(conv) == ["plan a trip, in May", "where to?", "Lisbon"]
    assert await seqs(conv) == [1, 2, 3]
    assert [message.parent_seq for message in await history(conv)] == [None, 1, 2]
    assert await appended(conv, "next") == [5]
    assert (await conv.tail(1))[0].parent_seq == 3


async def test_older_revisions_stay_readable(conv: Conversation) -> None:
    await conv.append([says("v1", id="m1"), says("other", id="m2")])
    await conv.append([says("v2", id="m1")])
    await conv.append([says("v3", id="m1"), says("last")])
    read = [(m.seq, m.id, m.revision, m.text) for m in await history(conv, revisions=True)]
    assert [row[3] for row in read] == ["v1", "v2", "v3", "other", "last"]
    assert [row[0] for row in read] == [1, 1, 1, 2, 5]
    assert [row[2] for row in read] == [1, 2, 3, 1, 1]
    assert (await conv.message("m1")).text == "v3"


async def test_going_back_to_old_content_is_one_more_revision(conv: Conversation) -> None:
    for text in ("v1", "v2", "v1"):
        await conv.append([says(text, id="m1")])
    assert await texts(conv) == ["v1"]
    assert [message.revision for message in await history(conv, revisions=True)] == [1, 2, 3]


async def test_a_revision_and_new_messages_come_in_one_batch(conv: Conversation) -> None:
    await conv.append([says("a", id="a"), says("b", id="b")])
    receipts = await conv.append([says("a", id="a"), says("b2", id="b"), says("c", id="c")])
    assert [(r.seq, r.revision, r.new) for r in receipts] == [(1, 1, False), (3, 2, True), (4, 1, True)]
    assert await texts(conv) == ["a", "b2", "c"]


async def test_times_of_a_revised_message(url: str) -> None:
    clock = ManualClock()
    async with everthread.open(url, clock=clock) as et:
        conv = await et.conversations.create()
        born = clock.now
        await conv.append([says("v1", id="m1")])
        revised = clock.move(timedelta(hours=1))
        await conv.append([says("v2", id="m1")])
        for message in (await conv.message("m1"), (await history(conv))[0]):
            assert (message.created_at, message.updated_at) == (born, revised)


async def test_a_revision_keeps_pins_and_deletion(conv: Conversation) -> None:
    await conv.append([says("v1", id="pinned"), says("v1", id="deleted")])
    await conv.pin("pinned")
    await conv.delete_message("deleted")
    await conv.append([says("v2", id="pinned"), says("v2", id="deleted")])
    assert (await conv.message("pinned")).is_pinned
    assert (await conv.message("deleted")).is_deleted
    assert await texts(conv) == ["v2"]
    await conv.restore_message("deleted")
    await conv.unpin("pinned")
    assert await texts(conv) == ["v2", "v2"]
    assert not (await conv.message("pinned")).is_pinned


async def test_ids_of_different_conversations_do_not_meet(et: Everthread) -> None:
    one, other = await et.conversations.create(), await et.conversations.create()
    await one.append([says("here", id="m1")])
    (receipt,) = await other.append([says("there", id="m1")])
    assert (receipt.seq, receipt.revision, receipt.new) == (1, 1, True)
    assert (await one.message("m1")).text == "here"
    assert (await other.message("m1")).text == "there"


async def test_a_known_id_on_another_branch_is_the_same_message(et: Everthread, conv: Conversation) -> None:
    await conv.append([says("a", id="a"), says("b", id="b")])
    branch = await conv.fork(1)
    (same,) = await conv.append([says("b", id="b")], branch=branch)
    assert (same.seq, same.new) == (2, False)
    assert await texts(conv, branch=branch) == ["a"]
    await conv.append([says("a2", id="a")], branch=branch)
    assert await texts(conv, branch=branch) == ["a2"]
    assert await texts(conv, branch="main") == ["a2", "b"]


async def test_a_message_that_becomes_a_summary_keeps_its_place(conv: Conversation) -> None:
    await conv.append([says("long story", id="m1"), says("next")])
    await conv.append([says("short story", id="m1", additional_kwargs={"lc_source": "summarization"})])
    assert await texts(conv) == ["short story", "next"]


async def test_a_summary_that_becomes_a_message_stays_out_of_history(et: Everthread, conv: Conversation) -> None:
    await conv.append([says("in short", id="s1", additional_kwargs={"lc_source": "summarization"}), says("next")])
    (revised,) = await conv.append([says("aardvark", id="s1")])
    assert (revised.revision, revised.new) == (2, True)
    assert await texts(conv) == ["next"]
    assert not await et.search("aardvark")


async def test_an_id_named_twice_in_one_batch_is_refused(et: Everthread, conv: Conversation) -> None:
    with pytest.raises(everthread.Invalid, match="twice"):
        await conv.append([says("a", id="m1"), says("x"), says("b", id="m1")])
    assert await entry_count(et, conv) == 0


async def test_i2_a_retry_with_an_id_never_doubles_a_message(et: Everthread, conv: Conversation) -> None:
    turn = [says("question", id="q"), {"role": "assistant", "content": "answer", "id": "a"}]
    first = await conv.append(turn)
    await appended(conv, "meanwhile")
    for _ in range(3):
        again = await conv.append(turn)
        assert [(r.id, r.seq, r.revision) for r in again] == [(r.id, r.seq, r.revision) for r in first]
        assert not any(receipt.new for receipt in again)
    half = await conv.append([turn[1], says("more", id="m")])
    assert [receipt.new for receipt in half] == [False, True]
    assert await texts(conv) == ["question", "answer", "meanwhile", "more"]
    assert await entry_count(et, conv) == 4
