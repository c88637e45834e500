"""Work that is done later, off the turn's path: a job is written in the transaction that caused it (`Decision.jobs`),
waits in the database, and is done by whichever process takes it first.

- Of one kind and conversation at most one waits; of one conversation at most one runs.
- A job belongs to its worker for the time of a lease, which the worker renews. When it dies, another takes the job.
- One that fails is tried again after a pause that doubles; after the last attempt it is *dead* and keeps its error.
- What is taken next: the highest `Priority`; within it owners take turns (`next_round`); small jobs before large ones.

So a job may be begun more than once. What it does must be there once all the same: a compaction is, by its span.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum, StrEnum
from typing import Any, Protocol

from everthread.core.errors import Invalid
from everthread.core.nouns import Ref

COMPACT = "compact"
"""Check whether a compaction is due, and make it."""

IF_AHEAD = "if_ahead"
"""In the details of a `COMPACT` job that an append wrote: only if the conversation is set to be compacted ahead."""

REMEMBER = "remember"
"""Extract memories from what the user said."""

EMBED = "embed"
"""Embed the messages that have no vectors yet."""

OF_OWNER = "of_owner"
"""In the details of an `EMBED` job: of all that the conversation's owner has."""

TITLE = "title"
"""Give an untitled conversation a title, from its first question."""

LOST = "its worker died, or lost the database, each time it was tried"
"""The error of a job whose worker disappeared at every attempt."""

_ERROR_CHARACTERS = 2000


class Priority(IntEnum):
    """How urgent a job is: no job is taken while one of a higher level could be.

    A job that waits is raised to the level of a later one of its kind and conversation, and never lowered.

    ```python
    urgent = [job for job in (await et.jobs()).jobs if job.priority >= everthread.Priority.WAITED_FOR]
    ```
    """

    MANUAL = 30
    """A person asked for just this job, such as a dead one that is retried."""
    WAITED_FOR = 20
    """Somebody waits: a turn of the conversation is open, or its context was still over the hard limit."""
    IN_USE = 10
    """The next request will want it: a context over its threshold, vectors that a recall missed, a title."""
    AUTOMATIC = 0
    """Nobody waits: a compaction that is made ahead, memories to extract."""
    WHEN_IDLE = -10
    """Nobody notices: vectors made ahead; their messages are found by their words until then."""


def priority_name(priority: int) -> str:
    """The name of a level, such as `waited_for`; of one that is not ours, its number."""
    return Priority(priority).name.lower() if priority in Priority.__members__.values() else str(priority)


_MESSAGES_IN_A_SMALL_JOB = 100
_MOST_ROUNDS_BEHIND = 8


def next_round(passed: int, of_owner: int) -> int:
    """The round of a new job. In each round of a level every owner has one job, so that one with many does not keep
    the others waiting: `passed` is the round that the level has come to, `of_owner` that of the owner's last job."""
    return max(passed, of_owner) + 1


def rounds_behind(size: int) -> int:
    """By how many rounds a large job comes later: by one for each doubling from 100 messages on, and so by few enough
    that a stream of small ones never keeps it waiting for ever."""
    return min(_MOST_ROUNDS_BEHIND, (size // _MESSAGES_IN_A_SMALL_JOB).bit_length())


class JobState(StrEnum):
    """The state of a job: `waiting`, `running`, or `dead` after its last attempt. A finished job is deleted.

    ```python
    dead = [job for job in (await et.jobs()).jobs if job.state is everthread.JobState.DEAD]
    ```
    """

    WAITING = "waiting"
    RUNNING = "running"
    DEAD = "dead"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewJob:
    """A job to be added: work to do later for one conversation."""

    kind: str
    priority: int = Priority.AUTOMATIC
    """One of `Priority`; a number, so that jobs of a later version with other levels are done in their place."""
    size: int = 1
    """About how many messages it has to read. Of equally urgent jobs small ones run first."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """Arguments as JSON values. Of two equal waiting jobs one is kept, with the details of whichever has some."""
    gather_seconds: float = 0.0
    """How long to wait for more work before starting, where starting is what costs. A store may ignore this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job in the database: something to be done in the background for one conversation.

    ```python
    for job in (await et.jobs()).jobs:
        print(job.id, job.kind, job.state, job.attempts, job.error)
    ```
    """

    id: int
    kind: str
    ref: Ref
    priority: int
    details: Mapping[str, Any]
    state: JobState
    attempts: int
    """How often it was started."""
    error: str | None
    """The error of the last attempt."""
    due_at: datetime | None
    """When it may run next; None for at once."""
    put_at: datetime
    died_at: datetime | None = None
    """When it was given up; None unless it is dead."""
    token: str = field(default="", repr=False)
    """Identifies the worker that holds it; others cannot report on it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobReport:
    """How many jobs wait, run and were given up, and the jobs themselves.

    ```python
    report = await et.jobs(state=everthread.JobState.DEAD)
    for job in report.jobs:
        print(job.kind, job.ref.owner, job.ref.id, job.attempts, job.error, job.died_at)
    ```
    """

    waiting: int
    running: int
    dead: int
    jobs: Sequence[Job]
    """Dead ones first, then running, then waiting ones, each group in the order of execution."""
    oldest_put_at: datetime | None = None
    """Since when the oldest of those that wait has been waiting; None when none does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingJobs:
    """The waiting jobs of one kind and priority."""

    kind: str
    priority: int
    count: int
    oldest_put_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """What waits, for metrics."""

    waiting: Sequence[WaitingJobs]
    unsummarised_messages: int
    """Messages that no summary covers, in conversations whose compaction waits."""


JobHandler = Callable[[Job], Awaitable[None]]
"""Runs a job. An exception it raises becomes the job's error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How fast a worker works: concurrency, leases, polling and retries.

    ```python
    et = everthread.open("memory://", worker=everthread.Pace(concurrency=4, most_attempts=3))
    ```
    """

    concurrency: int = 2
    """How many jobs run at once, each for a different conversation."""
    cpu_share: float = 1 / 3
    """How much of one core it takes at most for what it computes itself; 1 for as much as there is."""
    lease_seconds: float = 60.0
    """How long after a worker's last heartbeat another may take its job."""
    poll_seconds: float = 10.0
    """How often it looks for jobs of other processes; it learns of its own process's jobs at once."""
    stop_seconds: float = 2.0
    """How long a running job may take to finish when the worker stops; then it is cancelled and requeued."""
    most_attempts: int = 5
    pause_seconds: float = 2.0
    """The pause before the second attempt; it doubles with each further one."""

    def __post_init__(self) -> None:
        _at_least("concurrency", self.concurrency, 1)
        _at_least("most_attempts", self.most_attempts, 1)
        for name in ("cpu_share", "lease_seconds", "poll_seconds"):
            _at_least(name, getattr(self, name), 0.05)
        if self.cpu_share > 1:
            raise Invalid(f"must be at most 1, not {self.cpu_share!r}", field="cpu_share")
        for name in ("stop_seconds", "pause_seconds"):
            _at_least(name, getattr(self, name), 0)

    @property
    def heartbeat_seconds(self) -> float:
        """How often a running job's lease is renewed."""
        return self.lease_seconds / 4


class WakeFilter:
    """Whether a worker must be woken for jobs that were put. Of those that gather only the first wakes it: when that
    one is due, it finds the others too. Waking it for each would cost more than the work."""

    def __init__(self) -> None:
        self._until = 0.0

    def should_wake(self, jobs: Sequence[NewJob]) -> bool:
        """Called once for the jobs of one commit; a call without jobs always wakes."""
        seconds = min((job.gather_seconds for job in jobs), default=0.0)
        now = time.monotonic()
        if seconds and now < self._until:
            return False
        self._until = max(self._until, now + seconds)
        return True


def _at_least(name: str, value: float, least: float) -> None:
    if value < least:
        raise Invalid(f"must be at least {least:g}, not {value!r}", field=name)


def pause_before_next(attempts: int, pace: Pace) -> float | None:
    """Return the seconds until the next attempt after this many failed ones; None when there is no further attempt."""
    if attempts >= pace.most_attempts:
        return None
    return pace.pause_seconds * 2.0 ** min(attempts - 1, 20)


def error_text(problem: BaseException) -> str:
    """The text of an exception as stored in a job's `error`."""
    return f"{type(problem).__name__}: {problem}"[:_ERROR_CHARACTERS].replace("\x00", "\\x00")


class Jobs(Protocol):
    """The jobs of one database."""

    def on_put(self, wake: Callable[[], None] | None) -> None:
        """Register a callback that is called, in the writer's event loop, after each commit that added a job through
        this store; None removes it."""

    async def is_any_left(self) -> bool:
        """Return whether any job, of any process, is waiting or running."""

    async def run(self, work: Mapping[str, JobHandler], pace: Pace, stop: asyncio.Event) -> None:
        """Claim and run jobs of these kinds until `stop` is set. Jobs running then have `stop_seconds` to end."""

    async def report(self, limit: int, state: JobState | None = None) -> JobReport:
        """Return how many jobs wait, run and are dead, with up to `limit` of them, all or those in one state."""

    async def backlog(self) -> Backlog:
        """Return what waits, by kind and priority."""

    async def retry(self, id: int) -> None:
        """Return a dead job to the queue as if it were new, before all automatic ones. Raises NotFound when there is
        no dead job with this id."""

    async def retry_all(self) -> int:
        """Do that with every dead job, and return how many there were. They are not more urgent than others."""

    async def discard(self, id: int) -> None:
        """Delete a dead job. Raises NotFound when there is no dead job with this id."""


class JobQueue(Protocol):
    """A queue of jobs for stores whose worker is our own (`jobs/worker.py`)."""

    async def claim(self, kinds: Sequence[str], pace: Pace) -> Job | None:
        """Claim the next job for the time of a lease and return it; None when no job is due."""

    async def heartbeat(self, job: Job, pace: Pace) -> None:
        """Renew the lease of a claimed job."""

    async def done(self, job: Job) -> None:
        """Delete a finished job, and a dead job of the same kind and conversation with it."""

    async def fail(self, job: Job, error: str, again_in: float | None) -> None:
        """Record a failed attempt: the job waits for `again_in` seconds or, with None, is dead."""

    async def give_back(self, job: Job) -> None:
        """Return a job to the queue as if it had not been started."""

    async def next_due(self) -> float | None:
        """Return the seconds until the next waiting job is due; None when no job waits."""
