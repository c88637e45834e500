"""Jobs in memory, for the store that is: the reference of what a queue does. Nothing survives the process."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from everthread.core.clock import from_micros, system_clock, to_micros
from everthread.core.errors import NotFound
from everthread.core.ids import new_id
from everthread.core.jobs import (
    COMPACT,
    LOST,
    Backlog,
    Job,
    JobHandler,
    JobReport,
    JobState,
    NewJob,
    Pace,
    Priority,
    WaitingJobs,
    WakeFilter,
    next_round,
    rounds_behind,
)
from everthread.core.nouns import Ref
from everthread.jobs.worker import run_jobs

_ORDER = (JobState.DEAD, JobState.RUNNING, JobState.WAITING)


@dataclass(slots=True)
class _Kept:
    job: Job
    round: int
    rank: int
    """Its place in the order of its level: its round, and those that it lets go first because it is large."""
    due: float = 0.0
    leased_until: float = 0.0

    @property
    def order(self) -> tuple[int, int, int]:
        return -self.job.priority, self.rank, self.job.id


@dataclass(slots=True)
class InMemoryJobs:
    """The jobs of one store. Everything runs between two awaits."""

    unsummarised: Callable[[Ref], int]
    """How many messages of a conversation no summary covers."""
    _kept: dict[int, _Kept] = field(default_factory=dict)
    _count: int = 0
    _wakeup: asyncio.Event | None = None
    _wake: Callable[[], None] | None = None
    _wake_filter: WakeFilter = field(default_factory=WakeFilter)

    # -- written and erased by the store -------------------------------------------------------------------

    def put_all(self, ref: Ref, jobs: Sequence[NewJob], now: int) -> None:
        """Write them, and wake the worker."""
        for job in jobs:
            self.put(ref, job, now)
        if jobs:
            self.ring(jobs)

    def put(self, ref: Ref, new: NewJob, now: int) -> None:
        waiting = self._find(ref, new.kind, JobState.WAITING)
        if waiting is not None:
            job = waiting.job
            if new.priority > job.priority:
                waiting.round, waiting.rank = self._place(ref.owner, new.priority, new.size)
            waiting.job = replace(
                job, priority=max(job.priority, new.priority), details=job.details or dict(new.details)
            )
            return
        self._count += 1
        job = Job(
            id=self._count,
            kind=new.kind,
            ref=ref,
            priority=new.priority,
            details=dict(new.details),
            state=JobState.WAITING,
            attempts=0,
            error=None,
            due_at=None,
            put_at=from_micros(now),
        )
        self._kept[job.id] = _Kept(job, *self._place(ref.owner, job.priority, new.size))
        if new.gather_seconds:
            self._wait_until(self._kept[job.id], job, time.time() + new.gather_seconds)

    def _place(self, owner: str, priority: int, size: int) -> tuple[int, int]:
        """The round and rank of a job that is put now."""
        level = [kept for kept in self._kept.values() if kept.job.priority == priority]
        waiting = [kept for kept in level if kept.job.state is JobState.WAITING]
        running = [kept for kept in level if kept.job.state is JobState.RUNNING]
        first = min(waiting, key=lambda kept: kept.order, default=None)
        passed = max([0 if first is None else first.round - 1, *(kept.rank for kept in running)])
        of_owner = max([0, *(kept.round for kept in (*waiting, *running) if kept.job.ref.owner == owner)])
        round = next_round(passed, of_owner)
        return round, round + rounds_behind(size)

    def ring(self, jobs: Sequence[NewJob] = ()) -> None:
        """Jobs were committed."""
        if not self._wake_filter.should_wake(jobs):
            return
        if self._wakeup is not None:
            self._wakeup.set()
        if self._wake is not None:
            self._wake()

    def forget(self, ref: Ref, *, only_errors: bool) -> int:
        """Take out what is kept of an erased conversation; of an erased message, what an error may quote."""
        found = [kept for kept in self._kept.values() if kept.job.ref == ref]
        for kept in found:
            kept.job = replace(kept.job, error=None)
            if not only_errors:
                del self._kept[kept.job.id]
        return 0 if only_errors else len(found)

    # -- jobs ----------------------------------------------------------------------------------------------

    def on_put(self, wake: Callable[[], None] | None) -> None:
        self._wake = wake

    async def is_any_left(self) -> bool:
        return any(kept.job.state is not JobState.DEAD for kept in self._kept.values())

    async def run(self, work: Mapping[str, JobHandler], pace: Pace, stop: asyncio.Event) -> None:
        self._wakeup = asyncio.Event()
        await run_jobs(self, work, pace, stop, self._wakeup)

    async def report(self, limit: int, state: JobState | None = None) -> JobReport:
        kept = sorted(self._kept.values(), key=lambda one: (_ORDER.index(one.job.state), *one.order))
        count = {state: sum(one.job.state is state for one in kept) for state in JobState}
        wanted = [one.job for one in kept if state in (None, one.job.state)]
        waiting_since = (one.job.put_at for one in kept if one.job.state is JobState.WAITING)
        return JobReport(
            waiting=count[JobState.WAITING],
            running=count[JobState.RUNNING],
            dead=count[JobState.DEAD],
            jobs=wanted[:limit],
            oldest_put_at=min(waiting_since, default=None),
        )

    async def backlog(self) -> Backlog:
        waiting = [kept.job for kept in self._kept.values() if kept.job.state is JobState.WAITING]
        groups: dict[tuple[str, int], list[Job]] = {}
        for job in waiting:
            groups.setdefault((job.kind, job.priority), []).append(job)
        return Backlog(
            waiting=[
                WaitingJobs(
                    kind=kind, priority=priority, count=len(jobs), oldest_put_at=min(job.put_at for job in jobs)
                )
                for (kind, priority), jobs in sorted(groups.items())
            ],
            unsummarised_messages=sum(self.unsummarised(job.ref) for job in waiting if job.kind == COMPACT),
        )

    async def retry(self, id: int) -> None:
        self._revive(self._dead(id), Priority.MANUAL)
        self.ring()

    async def retry_all(self) -> int:
        dead = [kept for kept in self._kept.values() if kept.job.state is JobState.DEAD]
        for kept in dead:
            self._revive(kept, kept.job.priority)
        if dead:
            self.ring()
        return len(dead)

    async def discard(self, id: int) -> None:
        del self._kept[self._dead(id).job.id]

    def _dead(self, id: int) -> _Kept:
        kept = self._kept.get(id)
        if kept is None or kept.job.state is not JobState.DEAD:
            raise NotFound(f"no dead job {id}")
        return kept

    def _revive(self, kept: _Kept, priority: int) -> None:
        """As if it were put now: where one like it waits, that one is raised."""
        del self._kept[kept.job.id]
        job = kept.job
        new = NewJob(kind=job.kind, priority=priority, details=job.details)
        self.put(job.ref, new, to_micros(system_clock()))

    # -- the queue -----------------------------------------------------------------------------------------

    async def claim(self, kinds: Sequence[str], pace: Pace) -> Job | None:
        now = time.time()
        for kept in [kept for kept in self._running() if kept.leased_until < now]:
            if kept.job.attempts >= pace.most_attempts:
                await self.fail(kept.job, LOST, None)
            else:
                self._wait_again(kept, kept.job, 0.0)
        busy = {kept.job.ref for kept in self._running()}
        free = [
            kept
            for kept in self._kept.values()
            if kept.job.state is JobState.WAITING
            and kept.due <= now
            and kept.job.kind in kinds
            and kept.job.ref not in busy
        ]
        if not free:
            return None
        kept = min(free, key=lambda one: one.order)
        kept.job = replace(kept.job, state=JobState.RUNNING, attempts=kept.job.attempts + 1, token=new_id())
        kept.leased_until = now + pace.lease_seconds
        return kept.job

    async def heartbeat(self, job: Job, pace: Pace) -> None:
        for kept in self._held_jobs(job):
            kept.leased_until = time.time() + pace.lease_seconds

    async def done(self, job: Job) -> None:
        for kept in self._held_jobs(job):
            del self._kept[kept.job.id]
            self._bury(job)

    async def fail(self, job: Job, error: str, again_in: float | None) -> None:
        for kept in self._held_jobs(job):
            failed = replace(kept.job, error=error)
            if again_in is None:
                self._bury(job)
                kept.job = replace(failed, state=JobState.DEAD, token="", due_at=None, died_at=system_clock())
            else:
                self._wait_again(kept, failed, time.time() + again_in)

    async def give_back(self, job: Job) -> None:
        for kept in self._held_jobs(job):
            self._wait_again(kept, replace(kept.job, attempts=kept.job.attempts - 1), 0.0)

    async def next_due(self) -> float | None:
        busy = {kept.job.ref for kept in self._running()}
        waiting = [kept for kept in self._kept.values() if kept.job.state is JobState.WAITING]
        times = [kept.due for kept in waiting if kept.due and kept.job.ref not in busy]
        times += [kept.leased_until for kept in self._running()]
        return min(times) - time.time() if times else None

    def _running(self) -> list[_Kept]:
        return [kept for kept in self._kept.values() if kept.job.state is JobState.RUNNING]

    def _held_jobs(self, job: Job) -> Iterable[_Kept]:
        kept = self._kept.get(job.id)
        return [kept] if kept is not None and kept.job.token == job.token else []

    def _find(self, ref: Ref, kind: str, state: JobState) -> _Kept | None:
        alike = (kept for kept in self._kept.values() if (kept.job.ref, kept.job.kind) == (ref, kind))
        return next((kept for kept in alike if kept.job.state is state), None)

    def _wait_again(self, kept: _Kept, job: Job, due: float) -> None:
        """Back to those that wait, unless one like it waits there already."""
        if self._find(job.ref, job.kind, JobState.WAITING) is not None:
            del self._kept[job.id]
            return
        self._wait_until(kept, job, due)

    def _wait_until(self, kept: _Kept, job: Job, due: float) -> None:
        due_at = datetime.fromtimestamp(due, UTC) if due else None
        kept.job = replace(job, state=JobState.WAITING, token="", due_at=due_at)
        kept.due = due

    def _bury(self, job: Job) -> None:
        dead = self._find(job.ref, job.kind, JobState.DEAD)
        if dead is not None:
            del self._kept[dead.job.id]
