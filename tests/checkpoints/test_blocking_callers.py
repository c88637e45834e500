"""Callers that are not async: many threads at once, beside others that are, and what the writer does for them."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import everthread
from everthread.adapters.stores import blocking
from everthread.adapters.stores.sqlite.indexing import BATCH
from everthread.core import failpoints
from everthread.langgraph import EverthreadSaver
from tests.checkpoints.graphs import build
from tests.checkpoints.test_history import ask, said

TURNS = 6
THREADS = 8


def config(thread: str) -> Any:
    return {"configurable": {"thread_id": thread}}


def talk(graph: Any, thread: str) -> list[str]:
    for turn in range(TURNS):
        graph.invoke(ask(f"say {turn}"), config(thread), durability="sync")
    return [message.text for message in graph.get_state(config(thread)).values["messages"]]


async def test_many_threads_at_once_keep_everything(durable_url: str) -> None:
    names = [f"t{number}" for number in range(THREADS)]

    def all_talk() -> list[list[str]]:
        with EverthreadSaver.from_url(durable_url) as saver, ThreadPoolExecutor(THREADS) as pool:
            return list(pool.map(partial(talk, build(saver)), names))

    told = await asyncio.to_thread(all_talk)
    async with everthread.open(durable_url) as et:
        for name, texts in zip(names, told, strict=True):
            assert len(texts) == 2 * TURNS
            assert await said(et, name) == texts
        assert (await et.verify()).ok


async def test_callers_that_block_and_callers_that_do_not_share_a_thread(durable_url: str) -> None:
    async with EverthreadSaver.from_url(durable_url) as saver:
        graph = build(saver)
        for turn in range(TURNS):
            await asyncio.to_thread(graph.invoke, ask(f"say {turn}"), config("t"))
            await graph.ainvoke(ask(f"say again {turn}"), config("t"))
        blocking = await asyncio.to_thread(graph.get_state, config("t"))
        assert blocking.values == (await graph.aget_state(config("t"))).values
    async with everthread.open(durable_url) as et:
        assert await said(et, "t") == [message.text for message in blocking.values["messages"]]
        assert (await et.verify()).ok


async def test_loops_and_threads_at_once_keep_everything(durable_url: str) -> None:
    async with EverthreadSaver.from_url(durable_url) as saver:
        graph = build(saver)

        async def talk_here(thread: str) -> list[str]:
            for turn in range(TURNS):
                await graph.ainvoke(ask(f"say {turn}"), config(thread), durability="async")
            state = await graph.aget_state(config(thread))
            return [message.text for message in state.values["messages"]]

        told = await asyncio.gather(
            *(talk_here(f"here {number}") for number in range(3)),
            *(asyncio.to_thread(talk, graph, f"there {number}") for number in range(3)),
        )
    async with everthread.open(durable_url) as et:
        names = [f"{where} {number}" for where in ("here", "there") for number in range(3)]
        assert [await said(et, name) for name in names] == told


def test_the_index_catches_up_behind_callers_that_block(tmp_path: Path) -> None:
    file = tmp_path / "et.db"
    with EverthreadSaver.from_url(f"sqlite:///{file}") as saver, closing(sqlite3.connect(file)) as connection:
        words = [("user", f"word{number}") for number in range(BATCH)]
        build(saver).update_state(config("t"), {"messages": words}, as_node="tail")
        while connection.execute("SELECT count(*) FROM unindexed").fetchone() != (0,):
            time.sleep(0.01)


def test_a_caller_that_is_interrupted_leaves_nothing_half_written(tmp_path: Path) -> None:
    def interrupt(name: str) -> None:
        if name == "checkpoint.written":
            raise KeyboardInterrupt

    with EverthreadSaver.from_url(f"sqlite:///{tmp_path / 'et.db'}") as saver:
        graph = build(saver)
        graph.update_state(config("t"), {"messages": [("user", "before")]}, as_node="tail")
        failpoints.arm(interrupt)
        try:
            with pytest.raises(KeyboardInterrupt):
                graph.update_state(config("t"), {"messages": [("user", "lost")]}, as_node="tail")
        finally:
            failpoints.arm(None)
        graph.update_state(config("t"), {"messages": [("user", "after")]}, as_node="tail")
        texts = [message.text for message in graph.get_state(config("t")).values["messages"]]
        assert texts == ["before", "after"]


def test_everything_works_through_the_bridge_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocking, "ENABLED", False)
    with EverthreadSaver.from_url(f"sqlite:///{tmp_path / 'et.db'}") as saver:
        assert len(talk(build(saver), "t")) == 2 * TURNS
