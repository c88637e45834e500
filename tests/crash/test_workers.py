"""Workers that die, many of them at once, and a server that goes away under one: each job's effect is there once."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

import everthread
from everthread import CompactionPolicy, Conversation, Everthread, Pace
from tests.contracts.job_helpers import put, settled, until
from tests.crash.background_workers import KINDS
from tests.crash.trial import KILLED
from tests.crash.writer_processes import talk
from tests.forkserver import ForkServer
from tests.postgres import OwnServer, own_server

STORES = ("sqlite", "postgres")
QUICK = Pace(lease_seconds=2.0, poll_seconds=0.2)
AHEAD = CompactionPolicy(compact_ahead=True)
PROCESSES = 8
CONVERSATIONS = 6


@pytest.mark.parametrize("store", STORES)
def test_a_job_whose_worker_is_killed_is_done_by_the_next_one_once(
    store: str, empty_url: str, forkserver: ForkServer
) -> None:
    asyncio.run(talk(empty_url))
    child = forkserver.start("tests.crash.background_workers:die_at_work", url=empty_url)
    assert child.wait() == KILLED, child.said()
    asyncio.run(_finish(empty_url))


async def _finish(url: str) -> None:
    async with everthread.open(url, worker=QUICK) as et:
        assert (await et.jobs()).running == 1  # of the dead
        await settled(et)
        conv = await et.conversations.get("c")
        assert [one.trigger async for one in conv.compactions()] == ["messages"]
        assert (await et.jobs()).jobs == []
        assert (await et.verify()).ok


@pytest.mark.parametrize("store", STORES)
def test_a_kill_while_a_job_is_written_leaves_neither_the_job_nor_its_cause(
    store: str, empty_url: str, forkserver: ForkServer
) -> None:
    batch = {"url": empty_url, "conversation": "c", "name": "ann", "batches": 1, "size": 50}
    child = forkserver.start("tests.crash.writer_processes:append_large_batches", **batch, kill="job.written:1")
    assert child.wait() == KILLED, child.said()
    asyncio.run(_nothing_was_written(empty_url))


async def _nothing_was_written(url: str) -> None:
    async with everthread.open(url, worker=False) as et:
        conv = await et.conversations.get("c")
        assert [message async for message in conv.messages()] == []
        assert (await et.jobs()).jobs == []


@pytest.mark.parametrize("store", STORES)
def test_of_eight_processes_one_works_on_a_conversation_at_a_time(
    store: str, empty_url: str, forkserver: ForkServer, tmp_path: Path
) -> None:
    asyncio.run(_put_many(empty_url))
    diary = tmp_path / "diary"
    diary.touch()
    jobs = CONVERSATIONS * len(KINDS)
    children = [
        forkserver.start("tests.crash.background_workers:keep_a_diary", url=empty_url, diary=str(diary), jobs=jobs)
        for _ in range(PROCESSES)
    ]
    for child in children:
        assert child.wait() == 0, child.said()
    lines = [line.split() for line in diary.read_text().splitlines()]
    assert len(lines) == 2 * jobs
    for number in range(CONVERSATIONS):
        of_one = [(what, kind) for what, id, kind in lines if id == f"c{number}"]
        assert of_one[::2] == [("begin", kind) for _, kind in of_one[1::2]]
        assert sorted(kind for _, kind in of_one[::2]) == sorted(KINDS)


async def _put_many(url: str) -> None:
    async with everthread.open(url, worker=False) as et:
        for number in range(CONVERSATIONS):
            conv = await et.conversations.create(id=f"c{number}")
            for kind in KINDS:
                await put(et, conv, kind)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[OwnServer]:
    with own_server(tmp_path) as started:
        yield started


async def test_a_worker_outlives_a_server_that_is_killed_and_started_again(server: OwnServer) -> None:
    server.run_sql("CREATE DATABASE outage")
    async with everthread.open(server.url("outage"), worker=QUICK, compaction=AHEAD) as et:
        conv = await et.conversations.create(id="c")
        await _say(conv, 40)
        await settled(et)
        before = [one async for one in conv.compactions()]
        server.kill9()
        server.start()
        await until(lambda: _can_say(conv, 40))
        await until(lambda: _is_settled(et))
        after = [one async for one in conv.compactions()]
        assert len(before) == 1
        assert len(after) > 1
        assert (await et.verify()).ok


async def _say(conv: Conversation, count: int) -> None:
    text = "We keep the plan and pay 40 euros for it, as agreed with the hotel of Town {}. And so on, and so on."
    await conv.append([{"role": "user", "content": text.format(number) * 2} for number in range(count)])


async def _can_say(conv: Conversation, count: int) -> bool:
    try:
        await _say(conv, count)
    except everthread.StoreError:
        return False
    return True


async def _is_settled(et: Everthread) -> bool:
    report = await et.jobs()
    return not report.waiting and not report.running
