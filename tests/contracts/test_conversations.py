"""Conversations: made, found, listed page by page, changed, deleted and restored."""

from __future__ import annotations

import asyncio
import uuid
from datetime import UTC, timedelta
from typing import Any

import pytest

import everthread
from everthread import Conflict, Conversation, Everthread, Invalid, NotFound
from everthread.testing import ManualClock
from tests.contracts.message_helpers import appended, texts


async def test_a_new_conversation_has_what_it_was_given(et: Everthread) -> None:
    metadata = {"tags": ["a", "b"], "nested": {"one": 1, "half": 0.5, "none": None, "yes": True}}
    parent = await et.conversations.create(id="parent", owner="ann")
    made = await et.conversations.create(
        owner="ann", title="A trip 旅行", metadata=metadata, id="trip-1", parent_id=parent.id
    )
    found = await et.conversations.get("trip-1", owner="ann")
    for conv in (made, found):
        assert (conv.id, conv.owner, conv.title, conv.parent_id) == ("trip-1", "ann", "A trip 旅行", "parent")
        assert conv.metadata == metadata
        assert conv.is_active is True
        assert conv.is_deleted is False
        assert conv.created_at == conv.updated_at
        assert conv.created_at.tzinfo is UTC


async def test_a_conversation_needs_nothing_said_about_it(et: Everthread) -> None:
    conv = await et.conversations.create()
    assert (conv.owner, conv.title, conv.metadata, conv.parent_id) == ("local", None, {}, None)
    assert uuid.UUID(conv.id).version == 7
    assert conv.id != (await et.conversations.create()).id


async def test_an_owner_has_one_conversation_by_an_id(et: Everthread) -> None:
    await et.conversations.create(id="1", title="first")
    with pytest.raises(Conflict):
        await et.conversations.create(id="1", title="second")
    assert (await et.conversations.get("1")).title == "first"
    assert len((await et.conversations.list()).items) == 1


async def test_an_unknown_id_is_not_found(et: Everthread) -> None:
    with pytest.raises(NotFound):
        await et.conversations.get("nowhere")


async def test_many_who_ask_for_the_same_id_at_once_get_the_same_conversation(et: Everthread) -> None:
    found = await asyncio.gather(*(et.conversations.ensure("shared", title=f"by {n}") for n in range(20)))
    assert len({conv.created_at for conv in found}) == 1
    assert len({conv.title for conv in found}) == 1
    assert len((await et.conversations.list()).items) == 1


async def test_one_of_many_creators_of_an_id_wins(et: Everthread) -> None:
    made = await asyncio.gather(*(et.conversations.create(id="one") for _ in range(10)), return_exceptions=True)
    assert sum(isinstance(outcome, Conversation) for outcome in made) == 1
    assert sum(isinstance(outcome, Conflict) for outcome in made) == 9


async def test_pages_show_each_conversation_once_newest_first(et: Everthread) -> None:
    made = [(await et.conversations.create(id=f"c{number}")).id for number in range(7)]
    for size in (1, 2, 3, 7, 50):
        seen, cursor = [], None
        while True:
            page = await et.conversations.list(limit=size, cursor=cursor)
            assert len(page.items) <= size
            seen += [conv.id for conv in page.items]
            cursor = page.next_cursor
            if cursor is None:
                break
        assert seen == made[::-1]


async def test_a_page_begun_earlier_goes_on_where_it_stopped(et: Everthread) -> None:
    for number in range(4):
        await et.conversations.create(id=f"c{number}")
    first = await et.conversations.list(limit=2)
    await et.conversations.create(id="newer")
    rest = await et.conversations.list(limit=10, cursor=first.next_cursor)
    assert [conv.id for conv in (*first.items, *rest.items)] == ["c3", "c2", "c1", "c0"]
    assert rest.next_cursor is None


async def _listed(et: Everthread, size: int, **kinds: Any) -> list[str]:
    page = await et.conversations.list(limit=size, order="said", **kinds)
    found = [conv.id for conv in page.items]
    while page.next_cursor is not None:
        page = await et.conversations.list(limit=size, order="said", cursor=page.next_cursor, **kinds)
        found += [conv.id for conv in page.items]
    return found


@pytest.mark.parametrize("parent", [None, "top"])
async def test_in_the_order_of_what_was_said_each_page_goes_on_where_the_last_one_ended(
    parent: str | None, url: str
) -> None:
    clock = ManualClock()
    async with everthread.open(url, clock=clock) as et:
        await et.conversations.create(id="top")
        clock.move(timedelta(minutes=1))
        made = [await et.conversations.create(id=f"c{number}", parent_id=parent) for number in range(5)]
        for number in (3, 1):
            clock.move(timedelta(minutes=1))
            await appended(made[number], "hi")
        wanted = ["c1", "c3", "c4", "c2", "c0", *(["top"] if parent is None else [])]
        for size in (1, 2, 3, 50):
            assert await _listed(et, size, parent_id=parent) == wanted


async def test_only_what_is_said_moves_a_conversation_in_that_order(url: str) -> None:
    clock = ManualClock()
    async with everthread.open(url, clock=clock) as et:
        early, late = [await et.conversations.create(id=id) for id in ("early", "late")]
        for conv in (early, late):
            clock.move(timedelta(minutes=1))
            await appended(conv, "hi", "hello")
            said_at = clock.now
        clock.move(timedelta(minutes=1))
        await early.update(title="named", metadata={"pinned": True})
        await early.pin((await early.tail(1))[0].id)
        assert await _listed(et, 10) == ["late", "early"]
        found = (await late.refresh()).info
        assert (found.last_said_at, found.message_count, found.entry_count) == (said_at, 2, 2)
        found = (await early.refresh()).info
        assert (found.message_count, found.entry_count) == (2, 3)
        assert found.last_said_at == said_at - timedelta(minutes=1)


async def test_a_conversation_counts_the_messages_of_its_active_branch(et: Everthread, conv: Conversation) -> None:
    assert (conv.info.message_count, conv.info.last_said_at) == (0, None)
    await appended(conv, "one", "two", "three")
    assert (await conv.refresh()).info.message_count == 3
    branch = await conv.fork(1, activate=True)
    assert (await conv.refresh()).info.message_count == 1
    await appended(conv, "other")
    assert (await conv.refresh()).info.message_count == 2
    await conv.set_active("main" if branch.id != "main" else branch.id)
    assert (await et.conversations.get(conv.id)).info.message_count == 3


async def test_a_message_was_said_when_it_says_and_never_after_it_was_stored(url: str) -> None:
    clock = ManualClock()
    async with everthread.open(url, clock=clock) as et:
        conv = await et.conversations.create(id="old")
        other = await et.conversations.create(id="other")
        clock.move(timedelta(days=1))
        at = clock.now
        for said_at, shown in (
            (at - timedelta(days=300), at - timedelta(days=300)),
            (at - timedelta(days=400), at - timedelta(days=300)),
            (at + timedelta(days=9), at),
        ):
            await conv.append([{"role": "user", "content": "hi", "created_at": said_at.isoformat()}])
            assert (await conv.refresh()).info.last_said_at == shown
            assert await _listed(et, 10) == (["other", "old"] if shown < other.created_at else ["old", "other"])


async def test_an_unknown_order_is_refused(et: Everthread) -> None:
    with pytest.raises(Invalid, match="order"):
        await et.conversations.list(order="loudest")  # type: ignore[arg-type]


async def test_an_owner_without_conversations_has_an_empty_page(et: Everthread) -> None:
    page = await et.conversations.list(owner="nobody")
    assert (list(page.items), page.next_cursor) == ([], None)


async def test_update_sets_what_is_given_and_leaves_the_rest(et: Everthread) -> None:
    conv = await et.conversations.create(title="old", metadata={"a": 1})
    await conv.update(title="new")
    await conv.update(is_active=False)
    found = await et.conversations.get(conv.id)
    assert (found.title, found.metadata, found.is_active) == ("new", {"a": 1}, False)
    await conv.update(metadata={"b": [2]}, is_active=True)
    await conv.update(title=None)
    found = await et.conversations.get(conv.id)
    assert (found.title, found.metadata, found.is_active) == (None, {"b": [2]}, True)


async def test_update_shows_on_the_object_and_on_others_after_refresh(et: Everthread) -> None:
    conv = await et.conversations.create()
    other = await et.conversations.get(conv.id)
    await conv.update(title="seen")
    assert conv.title == "seen"
    assert other.title is None
    assert (await other.refresh()).title == "seen"


async def test_updated_at_moves_with_each_change(url: str) -> None:
    clock = ManualClock()
    async with everthread.open(url, clock=clock) as et:
        conv = await et.conversations.create()
        born = clock.now
        for change in (
            lambda: conv.update(title="t"),
            lambda: conv.append([{"role": "user", "content": "hi"}]),
            lambda: conv.delete(),
        ):
            at = clock.move(timedelta(minutes=1))
            await change()
            found = await et.conversations.get(conv.id)
            assert (found.created_at, found.updated_at) == (born, at)


async def test_a_deleted_conversation_leaves_the_list_and_comes_back(et: Everthread) -> None:
    conv = await et.conversations.create(id="gone")
    await et.conversations.create(id="stays")
    await appended(conv, "still here")
    await conv.delete()
    assert conv.is_deleted
    assert [item.id for item in (await et.conversations.list()).items] == ["stays"]
    assert [item.id for item in (await et.conversations.list(include_deleted=True)).items] == ["stays", "gone"]
    found = await et.conversations.get("gone")
    assert found.is_deleted
    assert await texts(found) == ["still here"]
    await found.restore()
    assert [item.id for item in (await et.conversations.list()).items] == ["stays", "gone"]
    assert not (await et.conversations.get("gone")).is_deleted


async def test_deleting_and_restoring_twice_is_as_good_as_once(et: Everthread, conv: Conversation) -> None:
    await conv.restore()
    assert not conv.is_deleted
    await conv.delete()
    await conv.delete()
    assert conv.is_deleted
    await conv.restore()
    assert not (await et.conversations.get(conv.id)).is_deleted


async def test_what_a_caller_does_to_metadata_it_was_given_changes_nothing_stored(et: Everthread) -> None:
    given = {"list": [1]}
    conv = await et.conversations.create(metadata=given)
    given["list"].append(2)
    read = await et.conversations.get(conv.id)
    read.metadata["list"].append(3)
    for metadata in ((await et.conversations.get(conv.id)).metadata, (await et.conversations.list()).items[0].metadata):
        assert metadata == {"list": [1]}
