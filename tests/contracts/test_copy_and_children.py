"""Copies have entries of their own; children are conversations of subagents, with a parent."""

from __future__ import annotations

import asyncio

import pytest

from everthread import Conflict, Conversation, Everthread, NotFound
from tests.contracts.message_helpers import appended, entry_count, history, says, texts


async def shown(conv: Conversation) -> dict[str, list[tuple[object, ...]]]:
    """Every branch as its readers see it, without seqs: those of a copy may be others."""
    return {
        branch.id: [
            (message.id, message.role, message.raw, message.revision, message.is_deleted, message.is_pinned)
            for message in await history(conv, branch=branch, revisions=True, include_deleted=True)
        ]
        async for branch in conv.branches()
    }


async def parents(conv: Conversation) -> dict[str, str | None]:
    """The id of each message's parent."""
    by_seq: dict[int, str] = {}
    above: dict[str, int | None] = {}
    async for branch in conv.branches():
        for message in await history(conv, branch=branch, include_deleted=True):
            by_seq[message.seq], above[message.id] = message.id, message.parent_seq
    return {id: by_seq[seq] if seq is not None else None for id, seq in above.items()}


@pytest.fixture
async def rich(et: Everthread) -> Conversation:
    """Branches, revisions, marks, a summary and a large payload."""
    conv = await et.conversations.create(title="rich", metadata={"a": [1]})
    await conv.append([says(letter, id=letter) for letter in "abcd"])
    await conv.append([says("b2", id="b"), says("x" * 70_000, id="large")])
    await conv.append([says("in short", id="s", additional_kwargs={"lc_source": "summarization"})])
    await conv.delete_message("c")
    await conv.pin("a")
    await conv.edit("c", says("C", id="C"))
    await appended(conv, "after C")
    await conv.fork(2)
    await conv.edit("C", says("C2", id="C2"), activate=False)
    return conv


async def test_a_copy_shows_the_same_and_has_a_log_of_its_own(et: Everthread, rich: Conversation) -> None:
    copy = await rich.copy()
    assert copy.id != rich.id
    assert (copy.owner, copy.title, copy.metadata, copy.parent_id) == (rich.owner, "rich", {"a": [1]}, None)
    assert await shown(copy) == await shown(rich)
    assert await texts(copy) == await texts(rich)
    assert await parents(copy) == await parents(rich)
    assert await entry_count(et, copy) == await entry_count(et, rich)
    assert (await copy.message("s")).is_summary
    assert len({head.chain for head in await et.heads()}) == 2


async def test_a_copy_and_its_original_go_their_own_ways(rich: Conversation) -> None:
    copy = await rich.copy()
    before = await shown(rich)
    await appended(copy, "only in the copy")
    await copy.append([says("a2", id="a")])
    await copy.edit("b", says("B"))
    await copy.restore_message("c")
    assert await shown(rich) == before
    await appended(rich, "only in the original")
    assert "only in the original" not in await texts(copy)


async def test_a_copy_of_a_copy_is_the_same_again(rich: Conversation) -> None:
    assert await shown(await (await rich.copy()).copy()) == await shown(rich)


async def test_a_copy_can_be_named(et: Everthread, rich: Conversation) -> None:
    copy = await rich.copy(id="named", title="again")
    assert (copy.id, copy.title) == ("named", "again")
    with pytest.raises(Conflict):
        await rich.copy(id="named")
    assert len((await et.conversations.list()).items) == 2


async def test_a_copy_is_found_by_search(et: Everthread, rich: Conversation) -> None:
    copy = await rich.copy()
    hits = await et.search("C2", conversation=copy.id)
    assert [hit.id for hit in hits] == ["C2"]
    assert (await copy.message("C2")).seq == hits[0].seq
    await et.erase(conversation=copy.id)
    assert [hit.conversation_id for hit in await et.search("C2")] == [rich.id]


async def test_a_copy_has_none_of_what_was_erased(et: Everthread, rich: Conversation) -> None:
    for id in ("a", "b", "C"):
        await et.erase(conversation=rich.id, message=id)
    copy = await rich.copy()
    assert await shown(copy) == await shown(rich)
    assert await texts(copy) == ["after C"]
    assert (await et.verify()).ok
    for id in ("a", "b", "C"):
        with pytest.raises(NotFound):
            await copy.message(id)
    await copy.append([says("b again", id="b")])
    assert (await copy.message("b")).text == "b again"
    erased = [head.count for head in await et.heads() if head.conversation_id == copy.id]
    assert erased[0] < await entry_count(et, rich)


async def test_a_copy_goes_on_where_the_erased_leaf_was(et: Everthread, conv: Conversation) -> None:
    await conv.append([says(letter, id=letter) for letter in "abc"])
    await conv.pin("c")
    branch = await conv.fork(3)
    await et.erase(conversation=conv.id, message="c")
    copy = await conv.copy()
    assert await appended(copy, "d") == [3]
    assert await texts(copy) == ["a", "b", "d"]
    assert await texts(copy, branch=branch.id) == ["a", "b"]
    assert (await copy.tail(1))[0].parent_seq == 2


async def test_a_long_conversation_is_copied_whole(et: Everthread, conv: Conversation) -> None:
    await conv.append([says(str(number), id=str(number)) for number in range(1_203)])
    await conv.fork(600, activate=True)
    await conv.append([says(f"fork {number}") for number in range(600)])
    copy = await conv.copy()
    assert await shown(copy) == await shown(conv)
    assert await entry_count(et, copy) == 1_803


async def test_an_empty_conversation_can_be_copied(conv: Conversation) -> None:
    copy = await conv.copy()
    assert await texts(copy) == []
    assert await appended(copy, "first") == [1]


async def test_keys_and_children_stay_with_the_original(et: Everthread, conv: Conversation) -> None:
    await conv.append([says("once")], idempotency_key="k")
    await et.conversations.create(parent_id=conv.id)
    copy = await conv.copy()
    await copy.append([says("other")], idempotency_key="k")
    assert await texts(copy) == ["once", "other"]
    assert [child async for child in copy.children()] == []


async def test_children_know_their_parent(et: Everthread, conv: Conversation) -> None:
    made = [await et.conversations.create(parent_id=conv.id, id=f"subagent-{n}") for n in range(3)]
    grandchild = await et.conversations.create(parent_id=made[0].id)
    await et.conversations.create()
    assert [child.id async for child in conv.children()] == ["subagent-2", "subagent-1", "subagent-0"]
    assert [child.id async for child in made[0].children()] == [grandchild.id]
    assert {child.parent_id async for child in conv.children()} == {conv.id}
    page = await et.conversations.list(parent_id=conv.id, limit=2)
    rest = await et.conversations.list(parent_id=conv.id, limit=2, cursor=page.next_cursor)
    assert [item.id for item in (*page.items, *rest.items)] == ["subagent-2", "subagent-1", "subagent-0"]


async def test_a_child_has_a_log_of_its_own(et: Everthread, conv: Conversation) -> None:
    child = await et.conversations.create(parent_id=conv.id)
    await appended(conv, "to the agent")
    await appended(child, "to the subagent", "back")
    assert await texts(conv) == ["to the agent"]
    assert await texts(child) == ["to the subagent", "back"]


async def test_a_deleted_child_is_left_out(et: Everthread, conv: Conversation) -> None:
    child = await et.conversations.create(parent_id=conv.id)
    await child.delete()
    assert [item async for item in conv.children()] == []
    await child.restore()
    assert [item.id async for item in conv.children()] == [child.id]


async def test_a_parent_must_be_there(et: Everthread, conv: Conversation) -> None:
    with pytest.raises(NotFound):
        await et.conversations.create(parent_id="nowhere")
    await et.erase(conversation=conv.id)
    with pytest.raises(NotFound):
        await et.conversations.create(parent_id=conv.id)
    assert list((await et.conversations.list()).items) == []


async def test_a_copy_that_was_cut_short_is_completed(et: Everthread, conv: Conversation) -> None:
    await conv.append([says("one"), says("two")])
    await et.conversations.create(id="half")  # what a crash between the two commits leaves
    copied = await conv.copy(id="half")
    assert await texts(copied) == ["one", "two"]
    with pytest.raises(Conflict):
        await conv.copy(id="half")


async def test_a_copy_beside_appends_is_whole(et: Everthread, conv: Conversation) -> None:
    await conv.append([says("first")])

    async def write() -> None:
        for number in range(20):
            await conv.append(says(f"{number}"))

    writing = asyncio.create_task(write())
    copies = [await conv.copy() for _ in range(3)]
    await writing
    for copied in copies:
        told = await texts(copied)
        assert told == (await texts(conv))[: len(told)]
    assert (await et.verify()).ok
