"""Marks: deleting, restoring and pinning say something about a message and remove nothing."""

from __future__ import annotations

from datetime import timedelta

import pytest

import everthread
from everthread import Conversation, Everthread, NotFound
from everthread.testing import ManualClock
from tests.contracts.message_helpers import appended, entry_count, history, says, seqs, texts


@pytest.fixture
async def talk(conv: Conversation) -> Conversation:
    await conv.append([says(letter, id=letter) for letter in "abc"])
    return conv


async def test_a_deleted_message_is_hidden_and_comes_back(et: Everthread, talk: Conversation) -> None:
    await talk.delete_message("b")
    assert await texts(talk) == ["a", "c"]
    assert await texts(talk, revisions=True) == ["a", "c"]
    assert [message.text for message in await talk.tail(2)] == ["a", "c"]
    assert [(m.text, m.is_deleted) for m in await history(talk, include_deleted=True)] == [
        ("a", False),
        ("b", True),
        ("c", False),
    ]
    assert [message.text for message in await talk.tail(2, include_deleted=True)] == ["b", "c"]
    found = await talk.message("b")
    assert (found.text, found.is_deleted) == ("b", True)
    await talk.restore_message("b")
    assert await texts(talk) == ["a", "b", "c"]
    assert not (await talk.message("b")).is_deleted
    assert (await et.verify()).messages == 3


async def test_what_follows_a_deleted_message_keeps_its_parent(talk: Conversation) -> None:
    await talk.delete_message("b")
    assert [message.parent_seq for message in await history(talk)] == [None, 2]


async def test_a_branch_goes_on_from_a_deleted_leaf(talk: Conversation) -> None:
    await talk.delete_message("c")
    assert await appended(talk, "d", expected_head=3) == [5]
    assert await texts(talk) == ["a", "b", "d"]
    await talk.restore_message("c")
    assert await texts(talk) == ["a", "b", "c", "d"]


async def test_a_pin_is_shown_and_taken_off(talk: Conversation) -> None:
    await talk.pin("a")
    assert [message.is_pinned for message in await history(talk)] == [True, False, False]
    await talk.unpin("a")
    assert not (await talk.message("a")).is_pinned


async def test_pins_and_deletion_do_not_disturb_each_other(talk: Conversation) -> None:
    await talk.pin("a")
    await talk.delete_message("a")
    message = await talk.message("a")
    assert (message.is_pinned, message.is_deleted) == (True, True)
    await talk.unpin("a")
    assert (await talk.message("a")).is_deleted
    await talk.pin("a")
    await talk.restore_message("a")
    message = await talk.message("a")
    assert (message.is_pinned, message.is_deleted) == (True, False)


async def test_saying_what_is_true_already_writes_nothing(et: Everthread, talk: Conversation) -> None:
    await talk.restore_message("a")
    await talk.unpin("a")
    assert await entry_count(et, talk) == 3
    for _ in range(3):
        await talk.delete_message("a")
        await talk.pin("b")
    assert await entry_count(et, talk) == 5


async def test_marks_are_entries_and_not_messages(et: Everthread, talk: Conversation) -> None:
    await talk.delete_message("a")
    await talk.restore_message("a")
    await talk.pin("b")
    assert await seqs(talk) == [1, 2, 3]
    assert await appended(talk, "d") == [7]
    report = await et.verify()
    assert (report.entries, report.messages) == (7, 4)


async def test_a_mark_moves_the_time_of_its_message_only(url: str) -> None:
    clock = ManualClock()
    async with everthread.open(url, clock=clock) as et:
        conv = await et.conversations.create()
        born = clock.now
        await conv.append([says("a", id="a"), says("b", id="b")])
        marked = clock.move(timedelta(minutes=1))
        await conv.pin("a")
        shown = await history(conv)
        assert [message.updated_at for message in shown] == [marked, born]
        assert [message.created_at for message in shown] == [born, born]


async def test_a_message_on_another_branch_can_be_marked(talk: Conversation) -> None:
    receipt = await talk.edit("b", says("B"))
    await talk.delete_message("c")
    await talk.pin(receipt.id)
    assert await texts(talk) == ["a", "B"]
    assert await texts(talk, branch="main") == ["a", "b"]
    await talk.delete_message("a")
    assert await texts(talk) == ["B"]
    assert await texts(talk, branch="main") == ["b"]


async def test_a_deleted_original_hides_none_of_its_siblings(talk: Conversation) -> None:
    await talk.edit("b", says("B"))
    await talk.delete_message("b")
    assert await texts(talk) == ["a", "B"]
    assert await texts(talk, branch="main") == ["a", "c"]


async def test_a_mark_on_a_revised_message_covers_all_of_it(talk: Conversation) -> None:
    await talk.append([says("b2", id="b")])
    await talk.append([says("b3", id="b")])
    await talk.delete_message("b")
    assert await texts(talk, revisions=True) == ["a", "c"]
    shown = [m for m in await history(talk, revisions=True, include_deleted=True) if m.id == "b"]
    assert [(message.text, message.is_deleted) for message in shown] == [("b", True), ("b2", True), ("b3", True)]
    await talk.restore_message("b")
    assert await texts(talk) == ["a", "b3", "c"]


async def test_only_a_message_can_be_marked(et: Everthread, talk: Conversation) -> None:
    await talk.append([says("short", id="s", additional_kwargs={"lc_source": "summarization"})])
    for mark in (talk.delete_message, talk.restore_message, talk.pin, talk.unpin):
        for id in ("unknown", "s"):
            with pytest.raises(NotFound):
                await mark(id)
    assert await entry_count(et, talk) == 4
