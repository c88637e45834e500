"""Programs without an event loop: one database, and a saver and a store over it, used from many threads."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

import everthread
from everthread import Conflict, Invalid, StoreError
from everthread.langgraph import ArchivingSaver, EverthreadSaver, EverthreadStore, open_sync, run_sync
from tests.checkpoints.graphs import build
from tests.checkpoints.test_history import ask, said

THREADS = 8


def test_a_saver_and_a_store_over_one_database_work_from_any_thread(durable_url: str) -> None:
    with open_sync(durable_url) as et:
        graph = build(EverthreadSaver(et))
        store = EverthreadStore(et)

        def talk(number: int) -> int:
            config: Any = {"configurable": {"thread_id": f"t{number}"}}
            for turn in range(3):
                graph.invoke(ask(f"say {turn}"), config)
            store.put(("counts",), str(number), {"messages": len(graph.get_state(config).values["messages"])})
            return sum(1 for _ in graph.get_state_history(config))

        with ThreadPoolExecutor(THREADS) as pool:
            states = list(pool.map(talk, range(THREADS)))
        assert set(states) == {states[0]}
        assert [item.value for item in store.search(("counts",))] == [{"messages": 6}] * THREADS

    async def check() -> None:
        async with everthread.open(durable_url) as et:
            for number in range(THREADS):
                assert len(await said(et, f"t{number}")) == 6
            assert (await et.verify()).ok

    asyncio.run(check())


def test_a_saver_without_a_loop_says_how_to_open_the_database() -> None:
    saver = EverthreadSaver(everthread.open("memory://"))
    with pytest.raises(Conflict, match=r"from_url.*open_sync"):
        saver.get_tuple({"configurable": {"thread_id": "t"}})


def test_a_program_without_a_loop_reads_what_it_has_written(url: str) -> None:
    with open_sync(url) as et:
        conv = run_sync(et, et.conversations.create(id="trip"))
        run_sync(et, conv.append({"role": "user", "content": "my passport"}))
        assert [hit.seq for hit in run_sync(et, et.search("passport"))] == [1]
        assert [message.text for message in run_sync(et, conv.messages())] == ["my passport"]
        with pytest.raises(Invalid, match="not awaited"):
            run_sync(et, et.search)  # type: ignore[call-overload]
    unopened = everthread.open(url)
    with pytest.raises(Conflict, match="open_sync"):
        run_sync(unopened, unopened.search("passport"))


def test_help_shows_the_options_of_opening_without_a_loop() -> None:
    assert list(inspect.signature(open_sync).parameters) == list(inspect.signature(everthread.open).parameters)
    text = inspect.getdoc(open_sync) or ""
    assert "run_sync(et" in text
    assert "vectors:" in text


@pytest.mark.parametrize(
    "ask",
    [
        lambda store, saver: store.get(("a",), "k"),
        lambda store, saver: saver.get_tuple({"configurable": {"thread_id": "t"}}),
        lambda store, saver: list(saver.list(None)),
    ],
    ids=["store", "saver", "list"],
)
@pytest.mark.filterwarnings("error")
def test_what_is_used_after_its_database_was_closed_says_so(url: str, ask: Callable[[Any, Any], Any]) -> None:
    with open_sync(url) as et:
        store, saver = EverthreadStore(et), EverthreadSaver(et)
    with pytest.raises(StoreError, match="the database is closed"):
        ask(store, saver)


@pytest.mark.parametrize("wrong", [None, "sqlite:///x.db", InMemorySaver()], ids=["None", "an address", "a saver"])
@pytest.mark.parametrize(
    "make",
    [EverthreadSaver, EverthreadStore, everthread.agent, lambda et: ArchivingSaver(InMemorySaver(), et)],
    ids=["saver", "store", "agent", "archiving saver"],
)
def test_what_is_no_open_database_is_refused_with_what_to_pass(make: Callable[[Any], Any], wrong: Any) -> None:
    with pytest.raises(Invalid, match=r"everthread\.open\(url\)"):
        make(wrong)


def test_a_saver_and_its_archive_in_the_wrong_order_are_told_the_right_one() -> None:
    with open_sync("memory://") as et, pytest.raises(Invalid, match=r"ArchivingSaver\(saver, et\)"):
        ArchivingSaver(et, InMemorySaver())  # type: ignore[arg-type]
