"""Programs without an event loop: one database, and a saver and a store over it, used from many threads."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import everthread
from everthread import Conflict
from everthread.langgraph import EverthreadSaver, EverthreadStore, open_sync
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
