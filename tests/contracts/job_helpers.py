"""Helpers for tests of background work: putting jobs, having them done, and waiting for a state."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from everthread import Conversation, Everthread, Job, Pace, Priority
from everthread.core.jobs import JobHandler, NewJob
from everthread.core.nouns import Ref
from everthread.history.intents import PutJobs

QUICK = Pace(concurrency=4, lease_seconds=1.0, poll_seconds=0.2, pause_seconds=0.02, stop_seconds=5.0, most_attempts=3)
PATIENCE_SECONDS = 30.0


async def put(
    et: Everthread,
    conv: Conversation,
    kind: str = "test",
    *,
    priority: int = Priority.AUTOMATIC,
    size: int = 1,
    details: Mapping[str, Any] | None = None,
    gather_seconds: float = 0.0,
) -> None:
    """Write a job of this conversation."""
    job = NewJob(kind=kind, priority=priority, size=size, details=details or {}, gather_seconds=gather_seconds)
    await et.store.log.write(Ref(conv.owner, conv.id), PutJobs(jobs=[job]))


@asynccontextmanager
async def working(et: Everthread, pace: Pace = QUICK, **work: JobHandler) -> AsyncIterator[None]:
    """Have jobs of these kinds done meanwhile."""
    stop = asyncio.Event()
    running = asyncio.create_task(et.store.jobs.run(work, pace, stop))
    try:
        yield
    finally:
        stop.set()
        await running


async def until(is_so: Callable[[], Awaitable[bool]]) -> None:
    """Wait for a state."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not await is_so():  # noqa: ASYNC110 - a state of the database, perhaps of another process
            await asyncio.sleep(0.02)


async def settled(et: Everthread) -> None:
    """Wait until nothing waits or runs."""

    async def is_settled() -> bool:
        report = await et.jobs()
        return not report.waiting and not report.running

    await until(is_settled)


async def the_job(et: Everthread) -> Job:
    """The only one there is."""
    (job,) = (await et.jobs()).jobs
    return job


async def refuse(job: Job) -> None:
    """A chore that cannot be done."""
    raise RuntimeError(f"cannot do {job.kind}")


class Diary:
    """A chore that writes down what it did, and can be made to wait."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.running: list[str] = []
        self.most_at_once = 0
        self.together: set[tuple[str, str]] = set()
        """Pairs of conversations whose jobs ran at the same time."""
        self.may_end = asyncio.Event()
        self.may_end.set()

    async def do(self, job: Job) -> None:
        self.together |= {(other, job.ref.id) for other in self.running}
        self.running.append(job.ref.id)
        self.most_at_once = max(self.most_at_once, len(self.running))
        try:
            await asyncio.sleep(0.02)
            await self.may_end.wait()
            self.done.append(job.ref.id)
        finally:
            self.running.remove(job.ref.id)
