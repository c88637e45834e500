"""Reading in pages: no more of them than needed, and one path from the first to the last."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from everthread.adapters.stores.in_memory.log import InMemoryLog
from everthread.core.entries import Entry, Revision
from everthread.core.errors import NotFound
from everthread.core.nouns import Message, Ref
from everthread.core.ports import NewConversation, PathQuery
from everthread.history import read as reading
from everthread.history.intents import Append
from everthread.testing import InMemoryStore
from tests.history.fake_log import prepared

REF = Ref("local", "c")


class CountingLog(InMemoryLog):
    """A log that remembers what it was asked for."""

    def __init__(self, store: InMemoryStore) -> None:
        super().__init__(store._database, store.turns, store.jobs)
        self.asked: list[PathQuery] = []

    async def path(self, ref: Ref, query: PathQuery) -> Sequence[tuple[Entry, Entry]]:
        self.asked.append(query)
        return await super().path(ref, query)


class CountingStore(InMemoryStore):
    """A store with such a log."""

    log: CountingLog

    def __init__(self) -> None:
        super().__init__()
        self.log = CountingLog(self)


@pytest.fixture
async def store() -> AsyncIterator[CountingStore]:
    made = CountingStore()
    await made.open()
    await made.conversations.create(
        NewConversation(owner="local", id="c", parent_id=None, title=None, metadata=b"{}", off_record=False)
    )
    yield made
    await made.close()


async def fill(store: InMemoryStore, count: int) -> None:
    await store.log.write(REF, Append(messages=[prepared(str(number), str(number)) for number in range(count)]))


async def read(store: InMemoryStore, **options: Any) -> list[Message]:
    known: dict[str, Any] = {
        "after": 0,
        "limit": None,
        "branch": None,
        "revisions": False,
        "include_deleted": False,
        **options,
    }
    return [message async for message in reading.stream(store.log, REF, **known)]


@pytest.mark.parametrize(
    ("count", "limit", "pages"),
    [
        (0, None, [500]),
        (499, None, [500]),
        (500, None, [500, 500]),
        (501, None, [500, 500]),
        (1_200, 500, [500]),
        (1_200, 501, [500, 1]),
        (1_200, 40, [40]),
        (1_200, 0, []),
    ],
)
async def test_no_page_more_is_read_than_needed(
    store: CountingStore, count: int, limit: int | None, pages: list[int]
) -> None:
    await fill(store, count)
    read_back = await read(store, limit=limit)
    assert len(read_back) == min(count, count if limit is None else limit)
    assert [query.limit for query in store.log.asked] == pages


async def test_a_long_reading_names_its_branch_once(store: CountingStore) -> None:
    await fill(store, 1_200)
    await read(store)
    assert {query.branch for query in store.log.asked} == {"main"}
    store.log.asked.clear()
    await read(store, limit=40)
    assert {query.branch for query in store.log.asked} == {None}


async def test_a_tail_is_one_read(store: CountingStore) -> None:
    await fill(store, 1_200)
    tail = await reading.tail(store.log, REF, 700, branch=None, include_deleted=False)
    assert [message.text for message in tail] == [str(number) for number in range(500, 1_200)]
    assert [(query.limit, query.newest_first) for query in store.log.asked] == [(700, True)]


async def test_older_revisions_stand_before_the_newest(store: CountingStore) -> None:
    await fill(store, 3)
    for text in ("1b", "1c"):
        await store.log.write(REF, Append(messages=[prepared(text, "1")]))
    assert [message.text for message in await read(store, revisions=True)] == ["0", "1", "1b", "1c", "2"]
    assert [message.entry_seq for message in await read(store)] == [1, 5, 3]


async def test_a_stand_in_is_not_the_message(store: CountingStore) -> None:
    """A framework's stub revises an entry for its own views; history goes on showing the original."""
    await fill(store, 2)
    row = store._database.rows[REF]
    stub = row.entries[0]._replace(
        seq=3, raw=b'{"content": "[elided]"}', revises=1, change_kind=int(Revision.STUB), revision=2
    )
    row.entries.append(stub)
    assert (await reading.one(store.log, REF, "0")).text == "0"
    assert [message.text for message in await read(store)] == ["0", "1"]


async def test_an_unknown_message_and_an_erased_one_are_not_found(store: CountingStore) -> None:
    await fill(store, 2)
    await store.maintenance.erase("local", "c", "0")
    for id in ("0", "9"):
        with pytest.raises(NotFound):
            await reading.one(store.log, REF, id)
