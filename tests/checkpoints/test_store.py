"""LangGraph's store of documents over our database, on each kind of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any
from uuid import UUID

import pytest
from langchain_core.embeddings import Embeddings
from langgraph.store.base import PutOp
from langgraph.store.sqlite.aio import AsyncSqliteStore

import everthread
from everthread import Everthread, Invalid
from everthread.langgraph import EverthreadStore
from everthread.testing import ManualClock


class Mood(Enum):
    GOOD = "good"


class Letters(Embeddings):
    """Texts are near when they share letters."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [[float(text.lower().count(letter)) for letter in "abcdefgh"] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def opened(url: str, clock: ManualClock) -> AsyncIterator[Everthread]:
    async with everthread.open(url, clock=clock) as et:
        yield et


def by_meaning(et: Everthread, **options: Any) -> EverthreadStore:
    return EverthreadStore(et, index={"dims": 8, "embed": Letters(), "fields": ["text"]}, **options)


async def test_an_item_comes_back_as_it_was_put(opened: Everthread) -> None:
    store = EverthreadStore(opened)
    await store.aput(("users", "ann"), "likes", {"tea": True, "list": [1, None, "ü"]})
    item = await store.aget(("users", "ann"), "likes")
    assert item is not None
    assert (item.namespace, item.key, item.value) == (("users", "ann"), "likes", {"tea": True, "list": [1, None, "ü"]})
    await store.adelete(("users", "ann"), "likes")
    assert await store.aget(("users", "ann"), "likes") is None


@dataclass
class Visit:
    at: datetime
    by: UUID
    mood: Mood


async def test_times_ids_enums_and_dataclasses_are_kept_as_langgraphs_sqlite_store_keeps_them(
    opened: Everthread,
) -> None:
    value = {"visits": [Visit(datetime(2026, 1, 2, tzinfo=UTC), UUID(int=7), Mood.GOOD)], "last": Mood.GOOD}
    ours = by_meaning(opened)
    async with AsyncSqliteStore.from_conn_string(":memory:") as theirs:
        await theirs.setup()
        for store in (ours, theirs):
            await store.aput(("visits",), "k", value)
        found, expected = [await store.aget(("visits",), "k") for store in (ours, theirs)]
        assert found is not None
        assert expected is not None
        assert found.value == expected.value
    with pytest.raises(Invalid, match="convert it first"):
        await ours.aput(("visits",), "k", {"neither": object()})
    with pytest.raises(Invalid, match="nan is not JSON"):
        await ours.aput(("visits",), "k", {"at": Mood.GOOD, "number": float("nan")})


async def test_an_item_put_again_keeps_the_time_it_was_made_at(opened: Everthread, clock: ManualClock) -> None:
    store = EverthreadStore(opened, clock=clock)
    await store.aput(("a",), "k", {"v": 1})
    clock.move(timedelta(seconds=5))
    await store.aput(("a",), "k", {"v": 2})
    item = await store.aget(("a",), "k")
    assert item is not None
    assert item.updated_at - item.created_at == timedelta(seconds=5)


async def test_search_looks_below_a_namespace_and_not_beside_it(opened: Everthread) -> None:
    store = EverthreadStore(opened)
    for namespace in (("a",), ("a", "b"), ("ab",), ("b", "a")):
        await store.aput(namespace, "k", {"n": ".".join(namespace)})
    assert {item.value["n"] for item in await store.asearch(("a",))} == {"a", "a.b"}
    assert len(await store.asearch(())) == 4


async def test_filters_compare_values(opened: Everthread) -> None:
    store = EverthreadStore(opened)
    for number in range(5):
        await store.aput(("n",), str(number), {"n": number, "inner": {"even": number % 2 == 0}})

    async def found(filter: dict[str, Any]) -> set[str]:
        return {item.key for item in await store.asearch(("n",), filter=filter)}

    assert await found({"n": 3}) == {"3"}
    assert await found({"n": {"$gte": 3}, "inner": {"even": True}}) == {"4"}
    assert await found({"n": {"$ne": 0, "$lt": 2}}) == {"1"}
    with pytest.raises(Invalid):
        await found({"n": {"$where": "1=1"}})


async def test_pages_of_a_search_do_not_overlap(opened: Everthread) -> None:
    store = EverthreadStore(opened)
    await store.abatch([PutOp(("p",), str(number), {"n": number}) for number in range(7)])
    pages = [await store.asearch(("p",), limit=3, offset=offset) for offset in (0, 3, 6)]
    assert sorted(item.key for page in pages for item in page) == [str(number) for number in range(7)]


async def test_without_fields_all_of_an_item_is_searched_by_meaning(opened: Everthread) -> None:
    """LangGraph's default, and what an item may ask for by itself: `$`, the whole of it."""
    store = EverthreadStore(opened, index={"dims": 8, "embed": Letters()})
    await store.aput(("m",), "far", {"text": "egg", "more": {"deep": "feed"}})
    await store.aput(("m",), "near", {"text": "abba", "more": {"deep": "cabbab"}})
    await store.aput(("m",), "whole", {"text": "hhh", "more": {"deep": "h"}}, index=["$"])
    found = await store.asearch(("m",), query="abb")
    assert found[0].key == "near"
    assert all(item.score is not None for item in await store.asearch((), query="abb"))


async def test_search_by_meaning_ranks_the_nearest_first(opened: Everthread) -> None:
    store = by_meaning(opened)
    await store.aput(("m",), "1", {"text": "cab cab"})
    await store.aput(("m",), "2", {"text": "fed"})
    await store.aput(("m",), "3", {"text": "bad"}, index=False)
    found = await store.asearch(("m",), query="abc")
    assert [item.key for item in found] == ["1", "2", "3"]
    assert found[0].score is not None
    assert found[0].score > 0.9
    assert found[2].score is None


async def test_vectors_of_two_models_are_never_compared(opened: Everthread) -> None:
    await by_meaning(opened).aput(("m",), "1", {"text": "cab"})
    other = EverthreadStore(opened, index={"dims": 9, "embed": Letters(), "fields": ["text"]})
    assert [item.score for item in await other.asearch(("m",), query="cab")] == [None]


async def test_an_item_is_gone_after_its_time_and_lives_on_when_read(opened: Everthread, clock: ManualClock) -> None:
    store = EverthreadStore(opened, clock=clock, ttl={"default_ttl": 10, "refresh_on_read": True})
    await store.aput(("t",), "k", {"v": 1})
    await store.aput(("t",), "for ever", {"v": 1}, ttl=None)
    clock.move(timedelta(minutes=6))
    assert await store.aget(("t",), "k") is not None
    clock.move(timedelta(minutes=6))
    assert await store.aget(("t",), "k", refresh_ttl=False) is not None
    clock.move(timedelta(minutes=6))
    assert await store.aget(("t",), "k") is None
    assert [item.key for item in await store.asearch(("t",))] == ["for ever"]


async def test_namespaces_are_listed_by_prefix_suffix_and_depth(opened: Everthread) -> None:
    store = EverthreadStore(opened)
    for namespace in (("a", "x", "v1"), ("a", "y", "v2"), ("b", "x", "v1")):
        await store.aput(namespace, "k", {})
    assert await store.alist_namespaces(prefix=("a",)) == [("a", "x", "v1"), ("a", "y", "v2")]
    assert await store.alist_namespaces(suffix=("v1",), prefix=("*", "x")) == [("a", "x", "v1"), ("b", "x", "v1")]
    assert await store.alist_namespaces(max_depth=1) == [("a",), ("b",)]


async def test_i20_items_of_another_owner_look_unknown(opened: Everthread) -> None:
    await EverthreadStore(opened, owner="ann").aput(("a",), "k", {"v": 1})
    other = EverthreadStore(opened, owner="bob")
    assert await other.aget(("a",), "k") is None
    assert await other.asearch(()) == []
    assert await other.alist_namespaces() == []


async def test_i22_items_go_with_everything_of_their_owner(opened: Everthread) -> None:
    store = EverthreadStore(opened, owner="ann")
    await store.aput(("a",), "k", {"v": "secret"})
    proof = await opened.erase(owner="ann")
    assert proof.reached["items"] == 1
    assert await store.asearch(()) == []


def test_a_store_by_address_works_without_async(url: str) -> None:
    with EverthreadStore.from_url(url) as store:
        store.put(("a",), "k", {"v": 1})
        item = store.get(("a",), "k")
        assert item is not None
        assert item.value == {"v": 1}


@pytest.mark.parametrize("minutes", [0, -5, float("nan")])
async def test_an_item_that_would_never_live_is_refused(opened: Everthread, minutes: float) -> None:
    store = EverthreadStore(opened)
    with pytest.raises(Invalid, match="ttl"):
        await store.aput(("a",), "k", {"v": 1}, ttl=minutes)
    assert await store.aget(("a",), "k") is None


async def test_vectors_of_another_length_than_the_index_are_refused(opened: Everthread) -> None:
    store = EverthreadStore(opened, index={"dims": 3, "embed": Letters(), "fields": ["text"]})
    with pytest.raises(Invalid, match="8 dimensions"):
        await store.aput(("a",), "k", {"text": "abc"})
