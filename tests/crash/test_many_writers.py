"""Processes that share one database take turns: nothing is lost, nothing doubled, nobody is sent away."""

from __future__ import annotations

import asyncio
import time
from signal import SIGKILL

import pytest

import everthread
from tests.forkserver import Child, ForkServer

PROCESSES = 8
APPENDS = 200


def start_crowd(forkserver: ForkServer, url: str, appends: int) -> list[Child]:
    """Let them all append at once. One that waits too long for its turn is told StoreBusy, and ends badly."""
    common = {"url": url, "conversation": "shared", "count": appends, "start_at": time.time() + 0.1}
    names = [f"writer{number}" for number in range(PROCESSES)]
    return [forkserver.start("tests.crash.writer_processes:append_many", name=name, **common) for name in names]


def crowd(forkserver: ForkServer, url: str, appends: int) -> None:
    for child in start_crowd(forkserver, url, appends):
        assert child.wait() == 0, child.said()


async def counts(url: str) -> list[int]:
    """How many messages of each writer there are: in his own order, and all without gap on one sound chain."""
    async with everthread.open(url) as et:
        conv = await et.conversations.get("shared")
        messages = [message async for message in conv.messages()]
        assert (await et.verify()).ok
    assert [message.seq for message in messages] == list(range(1, len(messages) + 1))
    by_writer = [
        [message.id for message in messages if message.id.startswith(f"writer{number}-")] for number in range(PROCESSES)
    ]
    for number, ids in enumerate(by_writer):
        assert ids == [f"writer{number}-{position}" for position in range(len(ids))]
    return [len(ids) for ids in by_writer]


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_eight_processes_append_to_one_conversation(store: str, empty_url: str, forkserver: ForkServer) -> None:
    crowd(forkserver, empty_url, APPENDS)
    assert asyncio.run(counts(empty_url)) == [APPENDS] * PROCESSES


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_those_who_are_left_go_on_when_half_of_the_writers_die(
    store: str, empty_url: str, forkserver: ForkServer
) -> None:
    children = start_crowd(forkserver, empty_url, APPENDS // 2)
    for victim in children[::2]:
        time.sleep(0.2)
        victim.send(SIGKILL)
    for child in children:
        assert child.wait() in (0, -SIGKILL), child.said()
    survived = asyncio.run(counts(empty_url))[1::2]
    assert survived == [APPENDS // 2] * len(survived)


@pytest.mark.parametrize(("store", "attempt"), [("sqlite", 1), ("sqlite", 2), ("sqlite", 3), ("postgres", 1)])
def test_eight_processes_make_a_new_database_at_once(
    store: str, attempt: int, empty_url: str, forkserver: ForkServer
) -> None:
    crowd(forkserver, empty_url, appends=1)
    assert asyncio.run(counts(empty_url)) == [1] * PROCESSES
