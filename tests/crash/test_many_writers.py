"""Processes that share one database take turns: nothing is lost, nothing doubled, nobody is sent away."""

from __future__ import annotations

import asyncio
import time

import pytest

import everthread
from everthread import Everthread
from tests.crash.nursery import Nursery

PROCESSES = 8
APPENDS = 200


def crowd(nursery: Nursery, url: str, appends: int) -> None:
    """Let them all append at once. One that waits too long for its turn is told StoreBusy, and ends badly."""
    common = {"url": url, "conversation": "shared", "count": appends, "start_at": time.time() + 0.1}
    names = [f"writer{number}" for number in range(PROCESSES)]
    children = [nursery.start("tests.crash.crowd:append_many", name=name, **common) for name in names]
    for child in children:
        assert child.wait() == 0, child.said()


async def assert_all_there(url: str, appends: int) -> None:
    async with everthread.open(url) as et:
        conv = await et.conversations.get("shared")
        seqs = [message.seq async for message in conv.messages()]
        assert seqs == list(range(1, PROCESSES * appends + 1))
        for number in range(PROCESSES):
            await assert_in_own_order(et, f"writer{number}", appends)
        assert (await et.verify()).ok


async def assert_in_own_order(et: Everthread, name: str, appends: int) -> None:
    conv = await et.conversations.get("shared")
    said = [message.id async for message in conv.messages() if message.id.startswith(f"{name}-")]
    assert said == [f"{name}-{number}" for number in range(appends)]


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_eight_processes_append_to_one_conversation(store: str, empty_url: str, nursery: Nursery) -> None:
    crowd(nursery, empty_url, APPENDS)
    asyncio.run(assert_all_there(empty_url, APPENDS))


@pytest.mark.parametrize("attempt", range(3))
@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_eight_processes_make_a_new_database_at_once(
    store: str, attempt: int, empty_url: str, nursery: Nursery
) -> None:
    crowd(nursery, empty_url, appends=1)
    asyncio.run(assert_all_there(empty_url, appends=1))
