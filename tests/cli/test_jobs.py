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
    assert "1 dead" in quick("doctor").out
    again = quick("jobs", "--retry", str(job["id"]), "--json").json
    assert (again["waiting"], again["dead"]) == (1, 0)
    assert again["oldest_waiting_seconds"] >= 0
    assert again["jobs"][0]["priority"] == "manual"
    assert "1 waiting, the oldest for 0 s" in quick("doctor").out
    assert quick("jobs", "--retry", "4711").code == 3


def test_dead_jobs_alone_are_listed_retried_all_at_once_and_discarded(shell: Shell, quick: Quick) -> None:
    assert shell.database is not None
    asyncio.run(_fail(shell.database, "a", "b"))
    asyncio.run(_wait(shell.database, "c"))
    dead = quick("jobs", "--dead", "--json").json
    assert (dead["waiting"], dead["dead"]) == (1, 2)
    assert [(job["kind"], job["conversation"], job["state"]) for job in dead["jobs"]] == [
        ("test", "a", "dead"),
        ("test", "b", "dead"),
    ]
    assert all(job["died_at"] >= job["put_at"] for job in dead["jobs"])
    left = quick("jobs", "--dead", "--discard", str(dead["jobs"][0]["id"]), "--json").json
    assert [job["conversation"] for job in left["jobs"]] == ["b"]
    assert quick("jobs", "--discard", str(dead["jobs"][0]["id"])).code == 3
    assert "1 requeued" in quick("jobs", "--retry-all").err
    assert quick("jobs", "--dead", "--json").json["dead"] == 0
    assert quick("jobs", "--json").json["waiting"] == 2


async def _wait(url: str, id: str) -> None:
    async with everthread.open(url, worker=False) as et:
        await put(et, await et.conversations.create(id=id))


async def _fail(url: str, *ids: str) -> None:
    async def refuse(_: Job) -> None:
        raise OSError("no such tram")

    async with everthread.open(url, worker=False) as et:
        for id in ids or ("c",):
            await put(et, await et.conversations.create(id=id))
        async with working(et, Pace(most_attempts=1), test=refuse):

            async def is_dead() -> bool:
                return (await et.jobs()).dead == max(1, len(ids))

            await until(is_dead)
