"""What a recall asks of a SQLite file."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import everthread
from everthread.adapters.stores.sqlite import search
from everthread.adapters.stores.sqlite.engine import READERS
from everthread.adapters.stores.sqlite.files import connect
from everthread.adapters.stores.sqlite.indexing import FEW
from everthread.core.queries import Term
from everthread.recall.search import RecallServices, recall


def lines(count: int) -> list[dict[str, Any]]:
    return [{"role": "user", "content": f"line {n} of the harbour log"} for n in range(count)]


async def test_a_recall_leaves_the_loop_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with everthread.open(f"sqlite:///{tmp_path}/et.db", worker=False) as et:
        conv = await et.conversations.create()
        await conv.append(lines(50))
        await et.search("harbour")  # the index is up to date
        loop = asyncio.get_running_loop()
        hand_over, trips = loop.run_in_executor, []

        def counted(*given: Any) -> Any:
            trips.append(given)
            return hand_over(*given)

        monkeypatch.setattr(loop, "run_in_executor", counted)
        found = await recall(RecallServices(store=et.store), conv.owner, conv.id, "the harbour log, line 7")
        assert found.ranking[0].message.text == "line 7 of the harbour log"
        assert len(trips) == 1


@pytest.mark.parametrize(("cap", "seqs"), [(8, range(1, 9)), (9, range(1, 9)), (3, range(6, 9))])
async def test_a_word_in_too_many_messages_stands_in_the_newest(tmp_path: Path, cap: int, seqs: range) -> None:
    """The last two of them are not in the index yet."""
    async with everthread.open(f"sqlite:///{tmp_path}/et.db", worker=False) as et:
        conv = await et.conversations.create()
        await conv.append(lines(6))
        await et.search("harbour")
        await conv.append(lines(2))
        term = Term(token="harbour")
        found = await et.store.search.postings(conv.owner, conv.id, [term], cap=cap)
        assert [key & 0xFFFFFFFF for key in found.of[term]] == list(seqs)
        assert found.truncated == (cap < 8)


@pytest.mark.parametrize(("count", "left"), [(FEW, FEW), (FEW + 1, 0)])
async def test_a_few_new_messages_are_found_without_a_write(tmp_path: Path, count: int, left: int) -> None:
    async with everthread.open(f"sqlite:///{tmp_path}/et.db", worker=False) as et:
        conv = await et.conversations.create()
        await conv.append(lines(count))
        assert (await conv.recall(f"line {count - 1} of the log"))[0].text == f"line {count - 1} of the harbour log"
        with closing(sqlite3.connect(tmp_path / "et.db")) as connection:
            waiting = connection.execute("SELECT c.entry_count FROM conversations c JOIN unindexed u")
            assert sum(row[0] for row in waiting) == left


async def test_a_recall_does_not_wait_for_what_others_said(tmp_path: Path) -> None:
    async with everthread.open(f"sqlite:///{tmp_path}/et.db", worker=False) as et:
        conv, other = await et.conversations.create(), await et.conversations.create()
        await conv.append(lines(1))
        await other.append(lines(3 * FEW))
        assert len(await conv.recall("harbour")) == 1
        with closing(sqlite3.connect(tmp_path / "et.db")) as connection:
            assert connection.execute("SELECT count(*) FROM unindexed").fetchone()[0] == 2


async def test_what_waits_for_the_index_is_recalled_with_its_tokens(tmp_path: Path) -> None:
    async with everthread.open(f"sqlite:///{tmp_path}/et.db", worker=False) as et:
        conv = await et.conversations.create()
        await conv.append(lines(2))
        found = await recall(RecallServices(store=et.store), conv.owner, conv.id, "harbour")
        counted = [message.tokens async for message in conv.messages()]
        assert [one.entry.tokens for one in found.messages.values()] == counted


async def test_an_errand_that_is_given_up_before_it_began_is_never_begun(tmp_path: Path) -> None:
    """Its readers are busy: who waited for it goes on, and nothing is left behind."""
    begun = []

    async def work() -> None:
        begun.append(True)

    async with everthread.open(f"sqlite:///{tmp_path}/et.db", worker=False) as et:
        gate = threading.Event()

        async def blocked() -> bool:
            return gate.wait()

        busy = [asyncio.create_task(et.store.run_reads(blocked)) for _ in range(READERS)]
        waiting = asyncio.create_task(et.store.run_reads(work))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        gate.set()
        assert await asyncio.gather(*busy) == [True] * READERS
    assert begun == []


@pytest.mark.parametrize("talks", [3, 30])
async def test_a_word_in_many_conversations_takes_no_more_questions(tmp_path: Path, talks: int) -> None:
    async with everthread.open(f"sqlite:///{tmp_path}/et.db", worker=False) as et:
        for owner in ("ann", "bob"):
            for _ in range(talks):
                await (await et.conversations.create(owner=owner)).append(lines(1))
        await et.search("harbour")
    asked: list[str] = []
    with closing(connect(tmp_path / "et.db", lambda: None)) as connection:
        connection.set_trace_callback(asked.append)
        found = search.read_postings(connection, "ann", None, [Term(token="harbour")], 100)
    assert len(found.of[Term(token="harbour")]) == talks
    assert len([one for one in asked if "conversations" in one]) == 3
