"""Processes that share one database take turns: nothing is lost, nothing doubled, nobody is sent away."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path

import pytest

import everthread
from everthread import Everthread
from tests.crash.nursery import Nursery

PROCESSES = 8
APPENDS = 200


def crowd(nursery: Nursery, url: str, folder: Path, appends: int) -> list[float]:
    """Let them all append at once; the slowest call of each."""
    start_at = time.time() + 0.1
    reports = [folder / f"report-{number}" for number in range(PROCESSES)]
    children = [
        nursery.start(
            "tests.crash.crowd:append_many",
            url=url,
            conversation="shared",
            name=f"writer{number}",
            count=appends,
            start_at=start_at,
            report=str(report),
        )
        for number, report in enumerate(reports)
    ]
    for child in children:
        assert child.wait() == 0, child.said()
    return [json.loads(report.read_text())["slowest_seconds"] for report in reports]


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


def test_eight_processes_append_to_one_conversation(durable_url: str, nursery: Nursery, tmp_path: Path) -> None:
    crowd(nursery, durable_url, tmp_path, APPENDS)
    asyncio.run(assert_all_there(durable_url, APPENDS))


@pytest.mark.parametrize("attempt", range(3))
def test_eight_processes_open_a_brand_new_database_at_once(
    attempt: int, durable_url: str, nursery: Nursery, tmp_path: Path
) -> None:
    crowd(nursery, durable_url, tmp_path, appends=1)
    asyncio.run(assert_all_there(durable_url, appends=1))
