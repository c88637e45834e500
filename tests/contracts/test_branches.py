"""Branches: an edit is a sibling, a fork shares what came before, and no branch disturbs another."""

from __future__ import annotations

import asyncio

import pytest

from everthread import Branch, Conflict, Conversation, Everthread, HeadMoved, Invalid, NotFound
from tests.contracts.message_helpers import appended, entry_count, history, says, seqs, texts


@pytest.fixture
async def talk(conv: Conversation) -> Conversation:
    """Four messages: a (1), b (2), c (3), d (4)."""
    await conv.append([says(letter, id=letter) for letter in "abcd"])
    return conv


async def branches(conv: Conversation) -> list[Branch]:
    return [branch async for branch in conv.branches()]


async def test_a_conversation_starts_with_one_branch(conv: Conversation) -> None:
    (main,) = await branches(conv)
    assert (main.id, main.leaf_seq, main.fork_seq, main.is_active) == ("main", 0, 0, True)
    await appended(conv, "a", "b")
    (main,) = await branches(conv)
    assert main.leaf_seq == 2


async def test_i6_edit_adds_a_sibling_and_leaves_the_original(et: Everthread, talk: Conversation) -> None:
    receipt = await talk.edit("b", says("B"))
    assert (receipt.seq, receipt.revision, receipt.new) == (5, 2, True)
    assert receipt.id not in "abcd"
    assert await texts(talk) == ["a", "B"]
    assert await texts(talk, branch="main") == ["a", "b", "c", "d"]
    original, sibling = await talk.message("b"), await talk.message(receipt.id)
    assert original.parent_seq == sibling.parent_seq == 1
    assert (original.text, original.revision) == ("b", 1)
    assert await entry_count(et, talk) == 5
    assert (await et.verify()).messages == 5


async def test_i6_regenerate_adds_a_sibling_each_time(talk: Conversation) -> None:
    answers = [await talk.edit("d", {"role": "assistant", "content": f"d{n}"}) for n in range(3)]
    assert [receipt.seq for receipt in answers] == [5, 6, 7]
    assert [branch.fork_seq for branch in await branches(talk)] == [0, 3, 3, 3]
    assert await texts(talk, branch="main") == ["a", "b", "c", "d"]
    for number, receipt in enumerate(answers):
        assert await texts(talk, branch=receipt.seq) == ["a", "b", "c", f"d{number}"]
    assert await texts(talk) == ["a", "b", "c", "d2"]


async def test_what_follows_an_edit_is_a_branch_of_its_own(talk: Conversation) -> None:
    await talk.edit("b", says("B"))
    assert await appended(talk, "C", "D") == [6, 7]
    assert await texts(talk) == ["a", "B", "C", "D"]
    assert await texts(talk, branch="main") == ["a", "b", "c", "d"]
    assert [message.parent_seq for message in await history(talk)] == [None, 1, 5, 6]
    main, edited = await branches(talk)
    assert (main.is_active, main.leaf_seq) == (False, 4)
    assert (edited.is_active, edited.leaf_seq, edited.fork_seq) == (True, 7, 1)


async def test_an_edit_may_leave_the_active_branch_alone(talk: Conversation) -> None:
    await talk.edit("b", says("B", id="B"), activate=False)
    assert await texts(talk) == ["a", "b", "c", "d"]
    assert (await talk.message("B")).text == "B"


async def test_the_first_message_can_be_edited(talk: Conversation) -> None:
    await talk.edit("a", says("A"))
    await appended(talk, "then")
    assert await texts(talk) == ["A", "then"]
    assert [message.parent_seq for message in await history(talk)] == [None, 5]
    assert (await branches(talk))[1].fork_seq == 0


async def test_an_edit_can_be_edited_and_replaced(talk: Conversation) -> None:
    first = await talk.edit("b", says("B1"))
    second = await talk.edit(first.id, says("B2"))
    assert second.revision == 3
    assert await texts(talk) == ["a", "B2"]
    (third,) = await talk.append([says("B2, mended", id=second.id)])
    assert third.revision == 4
    assert await texts(talk) == ["a", "B2, mended"]
    assert await texts(talk, branch=first.seq) == ["a", "B1"]
    assert await texts(talk, branch="main") == ["a", "b", "c", "d"]


async def test_a_replaced_message_is_edited_in_its_place(talk: Conversation) -> None:
    await talk.append([says("b2", id="b")])
    receipt = await talk.edit("b", says("B"))
    assert receipt.revision == 3
    assert await texts(talk) == ["a", "B"]
    assert (await talk.message(receipt.id)).parent_seq == 1
    assert await texts(talk, branch="main") == ["a", "b2", "c", "d"]


async def test_an_edit_that_carries_the_id_of_its_original_gets_one_of_its_own(talk: Conversation) -> None:
    payload = says("B", id="b")
    receipt = await talk.edit("b", payload)
    assert receipt.id != "b"
    assert (await talk.message(receipt.id)).payload == payload
    assert (await talk.message("b")).text == "b"


async def test_an_edit_cannot_take_the_id_of_another_message(et: Everthread, talk: Conversation) -> None:
    with pytest.raises(Conflict):
        await talk.edit("b", says("B", id="c"))
    assert await entry_count(et, talk) == 4
    assert len(await branches(talk)) == 1


async def test_only_a_message_can_be_edited(talk: Conversation) -> None:
    await talk.append([says("short", id="s", additional_kwargs={"lc_source": "summarization"})])
    for id in ("unknown", "s"):
        with pytest.raises(NotFound):
            await talk.edit(id, says("X"))


async def test_an_edit_inside_a_branch_forks_from_that_branch(talk: Conversation) -> None:
    fork = await talk.fork(2, activate=True)
    await talk.append([says("c'", id="c'"), says("d'", id="d'")])
    await talk.edit("c'", says("c''"))
    assert await texts(talk) == ["a", "b", "c''"]
    await talk.edit("d'", says("d''"))
    assert await texts(talk) == ["a", "b", "c'", "d''"]
    await talk.edit("a", says("a''"))
    assert await texts(talk) == ["a''"]
    assert await texts(talk, branch=fork) == ["a", "b", "c'", "d'"]


async def test_a_fork_shares_what_came_before_and_nothing_after(et: Everthread, talk: Conversation) -> None:
    fork = await talk.fork(2)
    assert (fork.leaf_seq, fork.fork_seq, fork.is_active) == (2, 2, False)
    assert await texts(talk, branch=fork) == ["a", "b"]
    assert await texts(talk) == ["a", "b", "c", "d"]
    assert await appended(talk, "x", branch=fork) == [5]
    assert await appended(talk, "e") == [6]
    assert await texts(talk, branch=fork.id) == ["a", "b", "x"]
    assert await texts(talk) == ["a", "b", "c", "d", "e"]
    assert (await et.verify()).messages == 6


async def test_a_fork_can_become_the_active_branch_at_once(talk: Conversation) -> None:
    fork = await talk.fork(1, activate=True)
    assert fork.is_active
    assert await texts(talk) == ["a"]
    assert [branch.id for branch in await branches(talk) if branch.is_active] == [fork.id]


async def test_a_fork_at_nothing_is_an_empty_path(talk: Conversation) -> None:
    fork = await talk.fork(0, activate=True)
    assert await texts(talk) == []
    assert await appended(talk, "anew", expected_head=0) == [5]
    assert await texts(talk, branch=fork) == ["anew"]
    assert (await talk.tail(1))[0].parent_seq is None
    assert await texts(talk, branch="main") == ["a", "b", "c", "d"]


async def test_forks_of_one_place_are_different_branches(talk: Conversation) -> None:
    one, other = await talk.fork(2), await talk.fork(2)
    assert one.id != other.id
    await appended(talk, "x", branch=one)
    await appended(talk, "y", branch=other)
    assert await texts(talk, branch=one) == ["a", "b", "x"]
    assert await texts(talk, branch=other) == ["a", "b", "y"]


async def test_forks_made_at_once_are_all_different(talk: Conversation) -> None:
    made = await asyncio.gather(*(talk.fork(2) for _ in range(20)))
    assert len({branch.id for branch in made}) == 20
    assert len(await branches(talk)) == 21


async def test_a_fork_needs_a_message_to_end_at(talk: Conversation) -> None:
    await talk.append([says("b2", id="b")])
    await talk.pin("a")
    with pytest.raises(Invalid, match="fork at 2"):
        await talk.fork(5)
    for not_a_message in (6, 7, 99):
        with pytest.raises(NotFound):
            await talk.fork(not_a_message)
    assert len(await branches(talk)) == 1


async def test_deep_nesting_reads_as_one_path(conv: Conversation) -> None:
    await appended(conv, "0")
    expected, paths = ["0"], {}
    for level in range(1, 8):
        leaf = (await conv.tail(1))[0].seq
        branch = await conv.fork(leaf, activate=True)
        await appended(conv, f"{level}a", f"{level}b")
        paths[branch.id] = [*expected, f"{level}a", f"{level}b"]
        expected = [*expected, f"{level}a"]
        await conv.set_active(await conv.fork((await conv.tail(2))[0].seq))
    assert await texts(conv) == expected
    for id, path in paths.items():
        assert await texts(conv, branch=id) == path
        assert [m.text for m in await conv.tail(3, branch=id)] == path[-3:]


async def test_a_seq_names_the_path_that_ends_there(talk: Conversation) -> None:
    await talk.edit("c", says("C"))
    assert await texts(talk, branch=2) == ["a", "b"]
    assert await texts(talk, branch=4) == ["a", "b", "c", "d"]
    assert await texts(talk, branch=5) == ["a", "b", "C"]
    assert await texts(talk, branch=0) == []
    with pytest.raises(NotFound):
        await texts(talk, branch=6)


async def test_appending_at_a_leaf_extends_its_branch(talk: Conversation) -> None:
    await talk.edit("c", says("C"))
    await appended(talk, "e", branch=4)
    assert await texts(talk, branch="main") == ["a", "b", "c", "d", "e"]
    assert await texts(talk) == ["a", "b", "C"]
    assert len(await branches(talk)) == 2


async def test_appending_in_the_middle_of_a_path_makes_a_branch(talk: Conversation) -> None:
    await appended(talk, "x", branch=2)
    assert await texts(talk) == ["a", "b", "c", "d"]
    _, made = await branches(talk)
    assert await texts(talk, branch=made) == ["a", "b", "x"]
    assert (made.fork_seq, made.leaf_seq, made.is_active) == (2, 5, False)


async def test_the_expected_head_is_that_of_the_branch_appended_to(talk: Conversation) -> None:
    fork = await talk.fork(2)
    with pytest.raises(HeadMoved):
        await appended(talk, "x", branch=fork, expected_head=4)
    await appended(talk, "x", branch=fork, expected_head=2)
    await appended(talk, "e", expected_head=4)
    with pytest.raises(HeadMoved):
        await appended(talk, "y", branch=fork, expected_head=2)


async def test_a_refused_append_leaves_no_branch_behind(talk: Conversation) -> None:
    with pytest.raises(HeadMoved):
        await appended(talk, "x", branch=2, expected_head=4)
    assert len(await branches(talk)) == 1


async def test_the_active_branch_is_the_one_read_and_extended(talk: Conversation) -> None:
    fork = await talk.fork(1)
    active = await talk.set_active(fork)
    assert active.is_active
    assert active.id == fork.id
    await appended(talk, "x")
    assert await texts(talk) == ["a", "x"]
    assert [message.text for message in await talk.tail(9)] == ["a", "x"]
    await talk.set_active("main")
    assert await texts(talk) == ["a", "b", "c", "d"]
    assert sum(branch.is_active for branch in await branches(talk)) == 1


async def test_a_seq_in_the_middle_becomes_the_active_end(talk: Conversation) -> None:
    made = await talk.set_active(2)
    assert await texts(talk) == ["a", "b"]
    assert made.fork_seq == 2
    await talk.set_active(4)
    assert await texts(talk) == ["a", "b", "c", "d"]
    assert len(await branches(talk)) == 2


async def test_an_unknown_branch_is_not_found(et: Everthread, talk: Conversation) -> None:
    for name in ("b9", "", "Main", "main ", "../main", 99):
        with pytest.raises(NotFound):
            await texts(talk, branch=name)
        with pytest.raises(NotFound):
            await appended(talk, "x", branch=name)
        with pytest.raises(NotFound):
            await talk.set_active(name)
    assert await entry_count(et, talk) == 4


async def test_a_reading_begun_on_a_branch_stays_on_it(conv: Conversation) -> None:
    await conv.append([says(f"main {number}", id=str(number)) for number in range(1_200)])
    stream = conv.messages()
    read = [await anext(stream)]
    await conv.edit("1", says("elsewhere"))
    await conv.append([says(f"elsewhere {number}") for number in range(1_200)])
    read += [message async for message in stream]
    assert [message.text for message in read] == [f"main {number}" for number in range(1_200)]


async def test_seqs_rise_along_every_branch(talk: Conversation) -> None:
    await talk.edit("b", says("B"))
    await appended(talk, "C", branch="main")
    await appended(talk, "D")
    for branch in await branches(talk):
        shown = await seqs(talk, branch=branch)
        assert shown == sorted(set(shown))
        assert shown[-1] == branch.leaf_seq
