"""Verifying, on logs that a test can falsify in any column."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everthread.core.entries import Entry, Mark
from everthread.core.nouns import Head, Ref
from everthread.core.ports import NewConversation
from everthread.history import verify as verifying
from everthread.history.intents import Append, Edit, Fork, MarkMessage
from everthread.testing import InMemoryStore
from tests.history.fake_log import prepared

REF = Ref("local", "c")


async def written() -> InMemoryStore:
    """Eight entries on three branches."""
    store = InMemoryStore()
    await store.open()
    new = NewConversation(owner="local", id="c", parent_id=None, title=None, metadata=b"{}", off_record=False)
    await store.conversations.create(new)
    await store.log.write(REF, Append(messages=[prepared(letter, letter) for letter in "abc"]))
    await store.log.write(REF, MarkMessage(target="a", mark=Mark.PINNED))
    await store.log.write(REF, Append(messages=[prepared("b2", "b")]))
    await store.log.write(REF, Edit(target="b", message=prepared("B", "B")))
    await store.log.write(REF, Append(messages=[prepared("after B")]))
    await store.log.write(REF, Fork(at_seq=2))
    await store.log.write(REF, Append(messages=[prepared("on the fork")], branch="b2"))
    return store


@pytest.fixture
async def store() -> AsyncIterator[InMemoryStore]:
    made = await written()
    assert (await verifying.verify(made)).ok
    yield made
    await made.close()


CHANGED: dict[str, list[Any]] = {
    "seq": [0, 99],
    "id": ["other", ""],
    "kind": [0, 1, 2],
    "role": ["other"],
    "revises": [None, 1, 7],
    "change_kind": [None, 0, 1, 2, 3],
    "parent_seq": [None, 1, 7, 99],
    "branch": [0, 1, 2, 9],
    "depth": [0, 1, 2, 9],
    "created_at": [0],
    "salt": [None, b"", b"x" * 16],
    "chain": [b"", b"x" * 32],
    "raw": [None, b"", b"{}"],
    "newest_seq": [None, 1, 5],
    "flags": [0, 1, 2, 3],
}
"""Every column but those that nothing is derived from: revision, tokens, commitment, updated_at."""


@pytest.mark.parametrize("position", range(8))
@pytest.mark.parametrize("column", CHANGED)
async def test_no_column_can_be_changed_unseen(store: InMemoryStore, column: str, position: int) -> None:
    entries = store._database.rows[REF].entries
    original = entries[position]
    for value in CHANGED[column]:
        changed = original._replace(**{column: value})
        if changed != original and not _is_of_no_account(original, column):
            entries[position] = changed
            assert not (await verifying.verify(store)).ok, f"{column} = {value!r}"
    entries[position] = original
    assert (await verifying.verify(store)).ok


def _is_of_no_account(entry: Entry, column: str) -> bool:
    """What a mark or a revision repeats of its place is read by nobody as the truth."""
    return not entry.is_place and column in ("branch", "depth", "newest_seq", "flags")


@pytest.mark.parametrize("position", range(8))
async def test_no_entry_can_be_taken_out_doubled_or_swapped(store: InMemoryStore, position: int) -> None:
    entries = store._database.rows[REF].entries
    whole = list(entries)
    for falsified in (
        whole[:position] + whole[position + 1 :],
        whole[: position + 1] + whole[position:],
        [*whole[:position], whole[7], *whole[position + 1 : 7], whole[position]] if position < 7 else whole[::-1],
        whole[: position + 1],
    ):
        if falsified != whole:
            entries[:] = falsified
            assert not (await verifying.verify(store)).ok


async def test_heads_are_the_same_until_something_is_written(store: InMemoryStore) -> None:
    heads = await verifying.heads(store)
    assert heads == await verifying.heads(store)
    assert (await verifying.verify(store, heads)).ok
    await store.log.write(REF, Append(messages=[prepared("more")]))
    assert heads != await verifying.heads(store)
    assert (await verifying.verify(store, heads)).ok


@given(st.integers(0, 20), st.binary(min_size=32, max_size=32))
async def test_a_head_that_was_never_ours_is_told(count: int, chain: bytes) -> None:
    store = await written()
    other = Head(owner="local", conversation_id="c", count=count, chain=chain.hex())
    report = await verifying.verify(store, [other])
    expected = "rewritten" if 0 < count <= 8 else "cut"
    assert [problem.kind for problem in report.problems] == ([expected] if count else [])


async def test_verifying_an_erased_conversation_reads_its_tombstones(store: InMemoryStore) -> None:
    heads = await verifying.heads(store)
    await store.maintenance.erase("local", "c", None)
    report = await verifying.verify(store, heads)
    assert report.ok
    assert (report.entries, report.messages, report.erased) == (8, 0, 8)
    entries = store._database.rows[REF].entries
    entries[2] = entries[2]._replace(commitment=b"x" * 32)
    assert [(p.kind, p.seq) for p in (await verifying.verify(store)).problems] == [("chain", 3)]
