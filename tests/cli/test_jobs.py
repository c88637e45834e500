"""Work in the background, from the command line: a worker that ends when it is told to, and the list of jobs."""

from __future__ import annotations

import asyncio
import signal

import pytest

import everthread
from everthread import Job, Pace
from tests.cli.conftest import Quick
from tests.cli.shell import Fork, Shell
from tests.contracts.job_helpers import put, settled, until, working
from tests.crash.writer_processes import talk


@pytest.mark.parametrize("told", [signal.SIGTERM, signal.SIGINT])
def test_a_worker_does_what_waits_and_ends_when_it_is_told_to(shell: Shell, fork: Fork, told: signal.Signals) -> None:
    assert shell.database is not None
    asyncio.run(talk(shell.database))
    with fork("worker", "--concurrency", "1") as process:
        asyncio.run(_done(shell.database))
        process.send_signal(told)
        assert process.rest().code == 0


async def _done(url: str) -> None:
    async with everthread.open(url, worker=False) as et:
        await settled(et)
        conv = await et.conversations.get("c")
        assert [one.trigger async for one in conv.compactions()] == ["messages"]


def test_jobs_are_listed_and_a_dead_one_is_tried_again(shell: Shell, quick: Quick) -> None:
    assert shell.database is not None
    asyncio.run(_fail(shell.database))
    found = quick("jobs", "--json").json
    assert (found["waiting"], found["dead"]) == (0, 1)
    (job,) = found["jobs"]
    assert (job["state"], job["conversation"], job["error"]) == ("dead", "c", "OSError: no such tram")
    assert "1 given up" in quick("doctor").out
    again = quick("jobs", "--retry", str(job["id"]), "--json").json
    assert (again["waiting"], again["dead"]) == (1, 0)
    assert quick("jobs", "--retry", "4711").code == 3


async def _fail(url: str) -> None:
    async def refuse(_: Job) -> None:
        raise OSError("no such tram")

    async with everthread.open(url, worker=False) as et:
        await put(et, await et.conversations.create(id="c"))
        async with working(et, Pace(most_attempts=1), test=refuse):

            async def is_dead() -> bool:
                return (await et.jobs()).dead == 1

            await until(is_dead)
