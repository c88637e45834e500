"""Servers on one PostgreSQL hear of each other's turns. A thread with a loop of its own stands for another process: it
has its own connections, and its own name as a sender."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import asyncpg

import everthread
from everthread.context.ingredients import recent_messages
from everthread.core.nouns import Ref
from everthread.core.turns import Change
from tests.contracts.test_turns import add, batch, begun, finished


def do_elsewhere(url: str, conversation_id: str) -> None:
    async def work() -> None:
        async with everthread.open(url, worker=False) as et:
            conv = await et.conversations.get(conversation_id)
            turn = (await begun(et, conv)).turn
            await add(et, Ref(conv.owner, conv.id), batch(turn, 2, "one"))
            await finished(et, conv, turn)

    asyncio.run(work())


async def test_changes_by_another_process_are_heard_of(address: str) -> None:
    async with everthread.open(address, worker=False) as et:
        conv = await et.conversations.create()
        changes: asyncio.Queue[Change] = asyncio.Queue()
        unsubscribe = et.store.turns.subscribe(Ref(conv.owner, conv.id), changes.put_nowait)
        async with asyncio.timeout(20):
            assert await changes.get() == Change(is_state=True, is_remote=True), "it listens now"
            await asyncio.to_thread(do_elsewhere, address, conv.id)
            heard = [await changes.get() for _ in range(3)]
        assert [change.is_state for change in heard] == [True, False, True]
        assert all(change.is_remote for change in heard)
        unsubscribe()


async def test_who_listens_does_so_again_when_its_connection_broke(address: str) -> None:
    async with everthread.open(address, worker=False) as et:
        conv = await et.conversations.create()
        changes: asyncio.Queue[Change] = asyncio.Queue()
        unsubscribe = et.store.turns.subscribe(Ref(conv.owner, conv.id), changes.put_nowait)
        async with asyncio.timeout(30):
            await changes.get()
            await asyncio.to_thread(end_listeners, address)
            assert (await changes.get()).is_remote, "listening again, it has everybody look"
            await asyncio.to_thread(do_elsewhere, address, conv.id)
            assert (await changes.get()).is_state
        unsubscribe()


def end_listeners(url: str) -> None:
    """As when the server restarts, or the network is cut."""

    async def work() -> None:
        connection = await asyncpg.connect(url)
        await connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND query LIKE 'LISTEN%'"
        )
        await connection.close()

    asyncio.run(work())


async def test_an_erase_by_another_process_empties_the_caches_of_this_one(address: str) -> None:
    async with everthread.open(address, worker=False) as et:
        conv = await et.conversations.create(id="c")
        changes: asyncio.Queue[Change] = asyncio.Queue()
        unsubscribe = et.store.turns.subscribe(Ref(conv.owner, conv.id), changes.put_nowait)
        async with asyncio.timeout(60):
            await changes.get()  # it listens now
            await conv.append([{"role": "user", "content": "an unrepeatable plumbago"}])
            await conv.context()
            assert len(recent_messages) > 0
            run = [sys.executable, "-m", "everthread", "--database", address, "erase", "conversation", "c", "--yes"]
            await asyncio.to_thread(subprocess.run, run, check=True, capture_output=True)
            while len(recent_messages):  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        unsubscribe()
