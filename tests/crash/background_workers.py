"""Children that work in the background: killed in the middle of a job, or many at once."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import everthread
from everthread import Job, Pace
from everthread.compaction.sources import ConversationKind

KINDS = ("one", "two", "three")
PACE = Pace(concurrency=3, lease_seconds=2.0, poll_seconds=0.2)


class Deadly:
    """A summary model that takes its process along."""

    name = "deadly"

    async def summarise(self, text: str, *, kind: ConversationKind, max_tokens: int, is_terse: bool) -> str:
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError


def die_at_work(url: str) -> None:
    """Do what waits, until it kills."""
    asyncio.run(_die_at_work(url))


async def _die_at_work(url: str) -> None:
    async with everthread.open(url, summariser=Deadly(), worker=PACE) as et:
        et.start_worker()
        await asyncio.Event().wait()


def keep_a_diary(url: str, diary: str, jobs: int) -> None:
    """Do jobs, and write a line when each begins and when it ends, until so many are done by all together."""
    asyncio.run(_keep_a_diary(url, Path(diary), jobs))


async def _keep_a_diary(url: str, diary: Path, jobs: int) -> None:
    page = os.open(diary, os.O_WRONLY | os.O_CREAT | os.O_APPEND)  # lines of several processes, in their order
    stop = asyncio.Event()

    async def do(job: Job) -> None:
        os.write(page, f"begin {job.ref.id} {job.kind}\n".encode())
        await asyncio.sleep(0.05)
        os.write(page, f"end {job.ref.id} {job.kind}\n".encode())

    async with everthread.open(url, worker=False) as et:
        working = asyncio.create_task(et.store.jobs.run({kind: do for kind in KINDS}, PACE, stop))
        while _done(diary) < jobs:  # noqa: ASYNC110 - other processes write it too
            await asyncio.sleep(0.1)
        stop.set()
        await working
    os.close(page)


def _done(diary: Path) -> int:
    return diary.read_text().count("end ")
