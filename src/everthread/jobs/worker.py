"""The loop that takes jobs from a queue and runs them, and the worker that an open database starts when it needs one.
What each kind of job does is in `handlers.py`.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from contextlib import suppress

from everthread.core.background import CpuShare
from everthread.core.cancellation import cancel_count
from everthread.core.errors import EverthreadError, StoreError
from everthread.core.jobs import Job, JobHandler, JobQueue, Jobs, Pace, error_text, pause_before_next
from everthread.core.timings import TimingsByLabel

_LOG = logging.getLogger("everthread.worker")

MAX_PAUSE_SECONDS = 30.0
"""While the database cannot be reached, it is retried at least this often."""
_RESTART_SECONDS = 1.0
"""The pause before a loop that ended with an error is restarted, so that one that fails at once does not spin."""


class Worker:
    """The background worker of one open database. It starts with the first job, so that opening stays cheap."""

    def __init__(self, jobs: Jobs, work: Mapping[str, JobHandler], pace: Pace, timings: TimingsByLabel) -> None:
        self._jobs = jobs
        share = CpuShare(pace.cpu_share)
        self._work = {kind: _timed(do, pace, timings, share) for kind, do in work.items()}
        self._pace = pace
        self._stop: asyncio.Event | None = None
        self._running: asyncio.Task[None] | None = None

    async def stand_by(self) -> None:
        """Listen for jobs that are written here; start at once when some are left from before."""
        if self._stop is not None:
            return
        self._stop = asyncio.Event()
        self._jobs.on_put(self.start)
        with suppress(StoreError):  # damaged, or away: who reads or writes will be told
            if await self._jobs.is_any_left():
                self.start()

    def start(self) -> None:
        """Begin to work, unless it has begun or was stopped."""
        if self._running is None and self._stop is not None:
            self._running = asyncio.create_task(self._jobs.run(self._work, self._pace, self._stop))

    async def stop(self) -> None:
        """Wait for running jobs to end within their bound. Jobs that had to be cancelled are given back."""
        self._jobs.on_put(None)
        stop, self._stop = self._stop, None
        running, self._running = self._running, None
        if stop is not None and running is not None:
            stop.set()
            await running


def _timed(do: JobHandler, pace: Pace, timings: TimingsByLabel, share: CpuShare) -> JobHandler:
    """A handler that is kept to its share of time, and whose time is counted by the job's outcome; time of a job
    that is given back is not counted."""

    async def do_timed(job: Job) -> None:
        started = time.perf_counter()
        try:
            with share.applied():
                await do(job)
        except Exception:
            outcome = "dead" if pause_before_next(job.attempts, pace) is None else "retried"
            timings.observe(time.perf_counter() - started, job.kind, outcome)
            raise
        timings.observe(time.perf_counter() - started, job.kind, "done")

    return do_timed


async def run_jobs(
    queue: JobQueue, work: Mapping[str, JobHandler], pace: Pace, stop: asyncio.Event, wakeup: asyncio.Event
) -> None:
    """Take jobs and do them until `stop` is set. `wakeup` is set when one was put in this process."""

    def start_loop(pause: float = 0.0) -> asyncio.Task[None]:
        return asyncio.create_task(_loop(queue, work, pace, stop, wakeup, pause))

    loops = {start_loop() for _ in range(pace.concurrency)}
    stopped = asyncio.create_task(stop.wait())
    try:
        while not stop.is_set():
            ended, _ = await asyncio.wait({stopped, *loops}, return_when=asyncio.FIRST_COMPLETED)
            for loop in loops & ended if not stop.is_set() else ():
                _LOG.error("a loop of the worker ended; restarting: %s", _describe_end(loop))
                loops = {start_loop(_RESTART_SECONDS), *loops - {loop}}
        await asyncio.wait(loops, timeout=pace.stop_seconds)
    finally:
        for task in (stopped, *loops):
            task.cancel()
        await asyncio.gather(stopped, *loops, return_exceptions=True)


def _describe_end(loop: asyncio.Task[None]) -> str:
    problem = None if loop.cancelled() else loop.exception()
    return "it was cancelled" if problem is None else error_text(problem)


async def _loop(
    queue: JobQueue,
    work: Mapping[str, JobHandler],
    pace: Pace,
    stop: asyncio.Event,
    wakeup: asyncio.Event,
    pause: float = 0.0,
) -> None:
    """Take jobs and do them, one after the other."""
    failures = 0
    if pause:
        await _wait_for_any(stop, wakeup, pause)
    while not stop.is_set():
        try:
            wakeup.clear()  # cleared before looking: what is put after it sets it again
            job = await queue.claim(list(work), pace)
            if job is not None:
                await _run_job(queue, job, work[job.kind], pace)
                wait = 0.0
            else:
                due = await queue.next_due()
                wait = pace.poll_seconds if due is None else min(max(due, 0.01), pace.poll_seconds)
            failures = 0
        except EverthreadError as problem:  # the database is away or full: nothing is lost by waiting
            failures += 1
            wait = min(MAX_PAUSE_SECONDS, 2.0**failures / 10)
            _LOG.warning("cannot take jobs, trying again in %.1f s: %s", wait, problem)
        if wait:
            await _wait_for_any(stop, wakeup, wait)


async def _run_job(queue: JobQueue, job: Job, do: JobHandler, pace: Pace) -> None:
    """Do a job and say how it ended; when cancelled, give it back."""
    heartbeats = asyncio.create_task(_send_heartbeats(queue, job, pace))
    before = cancel_count()
    try:
        await do(job)
    except asyncio.CancelledError as problem:
        if cancel_count() > before:
            with suppress(EverthreadError):  # the lease will run out
                await asyncio.shield(queue.give_back(job))
            raise
        await _fail_job(queue, job, problem, pace)  # nobody cancelled us: the job raised it by itself
    except Exception as problem:  # noqa: BLE001 - the worker loop: whatever a job raises is its error, and the next one's turn
        await _fail_job(queue, job, problem, pace)
    else:
        await queue.done(job)
    finally:
        heartbeats.cancel()


async def _fail_job(queue: JobQueue, job: Job, problem: BaseException, pace: Pace) -> None:
    _LOG.warning("job %s of %r failed: %s", job.kind, job.ref.id, type(problem).__name__)
    await queue.fail(job, error_text(problem), pause_before_next(job.attempts, pace))


async def _send_heartbeats(queue: JobQueue, job: Job, pace: Pace) -> None:
    while True:
        await asyncio.sleep(pace.heartbeat_seconds)
        with suppress(EverthreadError):  # the next one may get through; without any the lease runs out
            await queue.heartbeat(job, pace)


async def _wait_for_any(one: asyncio.Event, other: asyncio.Event, seconds: float) -> None:
    """Wait until one of two events is set, or the time is over."""
    waiting = [asyncio.create_task(one.wait()), asyncio.create_task(other.wait())]
    try:
        await asyncio.wait(waiting, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in waiting:
            task.cancel()
