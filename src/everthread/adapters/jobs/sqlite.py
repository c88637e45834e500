"""Jobs in the SQLite file, taken and given back through the engine's one writer: a claim is a short transaction, so
two processes never hold the same job. Leases go by the machine's clock, which all processes of a file share.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from everthread.core.clock import from_micros
from everthread.core.entries import SEQ_BITS
from everthread.core.errors import NotFound
from everthread.core.failpoints import reach
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

if TYPE_CHECKING:
    from everthread.adapters.stores.sqlite.engine import Engine

_STATES = (JobState.WAITING, JobState.RUNNING, JobState.DEAD)
"""By their numbers in the table."""

_PASSED = """max(
    coalesce((SELECT max(rank) FROM jobs WHERE state = 1 AND priority = :priority), 0),
    coalesce((SELECT round - 1 FROM jobs WHERE state = 0 AND priority = :priority ORDER BY rank, number LIMIT 1), 0))"""
_OF_OWNER = """
coalesce((SELECT max(round) FROM jobs WHERE state < 2 AND owner = :owner AND priority = :priority), 0)"""

PLACE = f"SELECT {_PASSED}, {_OF_OWNER}"
"""The round that a level has come to, and that of an owner's last job in it."""

WAITING = "SELECT number, priority, details = '{}' FROM jobs WHERE conversation = ? AND kind = ? AND state = 0"
"""The job of a kind and conversation that waits, and whether it could be told more."""

PUT = """
INSERT INTO jobs
    (conversation, owner, kind, priority, round, rank, details, state, attempts, due_at, leased_until, put_at)
VALUES (?, ?, ?, ?, ?, ?, ?, 0, 0, ?, 0, ?)"""
"""Let a job wait."""

RAISE = "UPDATE jobs SET priority = ?, round = ?, rank = ? WHERE number = ?"
"""Let a job that waits be as urgent as the one that was put after it."""

TELL = "UPDATE jobs SET details = ? WHERE number = ?"
"""Let a job that waits know what the one knew that was put after it."""

FORGET = "DELETE FROM jobs WHERE conversation = ?"
"""Take out the jobs of an erased conversation."""

FORGET_ERRORS = "UPDATE jobs SET error = NULL WHERE conversation = ? AND error IS NOT NULL"
"""Take out what may quote an erased message."""

IS_ANY_LEFT = "SELECT EXISTS (SELECT 1 FROM jobs WHERE state < 2)"
"""Whether one waits or runs."""

_NEXT = """
SELECT j.number FROM jobs j
WHERE j.state = 0 AND j.due_at <= :now AND j.kind IN (SELECT value FROM json_each(:kinds))
  AND NOT EXISTS (SELECT 1 FROM jobs r WHERE r.conversation = j.conversation AND r.state = 1)
ORDER BY j.priority DESC, j.rank, j.number LIMIT 1"""
"""Read in the order of the index, so that it costs the same however many wait."""

IS_ANY_DUE = f"""
SELECT EXISTS ({_NEXT}) OR EXISTS (SELECT 1 FROM jobs WHERE state = 1 AND leased_until < :now)"""
"""Whether one can be taken, or taken back."""

COUNTS = "SELECT state, count(*) FROM jobs GROUP BY state"
"""How many there are."""

OLDEST_WAITING = "SELECT put_at FROM jobs NOT INDEXED WHERE state = 0 ORDER BY number LIMIT 1"
"""Since when the oldest has been waiting: numbers are given in the order of putting, so the first that waits is it."""

BACKLOG = """
SELECT kind, priority, count(*), min(put_at) FROM jobs NOT INDEXED WHERE state = 0
GROUP BY kind, priority ORDER BY 1, 2"""
"""What waits; the whole table is read in its order, which is quicker than to follow an index through it."""

UNSUMMARISED = f"""
SELECT coalesce(sum(max(0, c.leaf_depth - coalesce((
    SELECT e.depth FROM compactions s CROSS JOIN entries e
    ON e.key = s.conversation << {SEQ_BITS} | s.last_seq
    WHERE s.conversation = c.number AND s.undone_at IS NULL AND s.invalid_at IS NULL
    ORDER BY s.last_seq DESC LIMIT 1), 0))), 0)
FROM jobs j CROSS JOIN conversations c ON c.number = j.conversation WHERE j.state = 0 AND j.kind = '{COMPACT}'"""
"""How many messages are in no summary, where a compaction waits; after a fork, a summary on any branch counts."""

_JOB = (
    "j.number, j.kind, c.owner, c.id, j.priority, j.details, j.state, j.attempts, j.error, "
    "j.due_at, j.put_at, j.died_at, j.token"
)
_JOBS = f"SELECT {_JOB} FROM jobs j JOIN conversations c ON c.number = j.conversation"

LISTING = f"{_JOBS} WHERE j.state = ? ORDER BY j.priority DESC, j.rank, j.number LIMIT ?"
"""The first jobs in a state, in the order of execution."""

ONE = f"{_JOBS} WHERE j.number = ?"
"""One job."""

_LIKE_IT_WAITS = """
EXISTS (SELECT 1 FROM jobs w WHERE w.conversation = jobs.conversation AND w.kind = jobs.kind AND w.state = 0)"""

GIVE_UP_LOST = (
    "UPDATE jobs SET state = 2, error = ?, token = NULL, died_at = ? "
    "WHERE state = 1 AND leased_until < ? AND attempts >= ?"
)
"""A job that outlived so many workers is not given to another."""

DROP_LOST = f"DELETE FROM jobs WHERE state = 1 AND leased_until < ? AND {_LIKE_IT_WAITS}"
"""A job whose worker died is not needed where one like it waits."""

TAKE_BACK_LOST = "UPDATE jobs SET state = 0, token = NULL, due_at = 0 WHERE state = 1 AND leased_until < ?"
"""Let the other jobs of dead workers wait again."""

CLAIM = f"""
UPDATE jobs SET state = 1, attempts = attempts + 1, token = :token, leased_until = :until
WHERE number = ({_NEXT}) RETURNING number"""
"""Take the next job whose conversation has none running."""

HEARTBEAT = "UPDATE jobs SET leased_until = ? WHERE number = ? AND token = ?"
"""Renew a lease."""

DONE = "DELETE FROM jobs WHERE number = ? AND token = ? RETURNING conversation, kind"
"""It is done."""

BURY = "DELETE FROM jobs WHERE conversation = ? AND kind = ? AND state = 2"
"""What died before is made up for, or dies again."""

HELD = "SELECT conversation, kind FROM jobs WHERE number = ? AND token = ?"
"""Whose a job is, while we hold it."""

DIE = "UPDATE jobs SET state = 2, error = ?, token = NULL, due_at = 0, died_at = ? WHERE number = ?"
"""Give it up."""

DROP_IF_LIKE_IT_WAITS = f"DELETE FROM jobs WHERE number = ? AND {_LIKE_IT_WAITS}"
"""Of two that would wait, the later one knows more."""

WAIT_AGAIN = """
UPDATE jobs SET state = 0, error = coalesce(?, error), due_at = ?, attempts = attempts + ?, token = NULL
WHERE number = ?"""
"""Let it wait until a time."""

TAKE_OUT_DEAD = "DELETE FROM jobs WHERE state = 2 AND number = ? RETURNING conversation, owner, kind, priority, details"
"""Take out one that was given up."""

ALL_DEAD = "SELECT number FROM jobs WHERE state = 2 ORDER BY priority DESC, rank, number"
"""Those that were given up."""

NEXT_DUE = """
SELECT min(at) FROM (
    SELECT min(j.due_at) AS at FROM jobs j WHERE j.state = 0 AND j.due_at > 0
      AND NOT EXISTS (SELECT 1 FROM jobs r WHERE r.conversation = j.conversation AND r.state = 1)
    UNION ALL SELECT min(leased_until) FROM jobs WHERE state = 1)"""
"""When the next pause or lease is over. Those of a busy conversation are looked at when what runs has ended."""


def put(connection: sqlite3.Connection, conversation: int, owner: str, jobs: Sequence[NewJob], now: int) -> None:
    """Write jobs, in the transaction that caused them. One like it that waits may learn from a new one, and is written
    only then."""
    for job in jobs:
        details = json.dumps(dict(job.details))
        waiting = connection.execute(WAITING, (conversation, job.kind)).fetchone()
        if waiting is None:
            due = _micros(job.gather_seconds) if job.gather_seconds else 0
            place = _place(connection, owner, job.priority, job.size)
            values = (conversation, owner, job.kind, job.priority, *place, details, due, now)
            connection.execute(PUT, values)
        else:
            number, priority, is_untold = waiting
            if job.priority > priority:
                place = _place(connection, owner, job.priority, job.size)
                connection.execute(RAISE, (job.priority, *place, number))
            if is_untold and job.details:
                connection.execute(TELL, (details, number))
        reach("job.written")


def _place(connection: sqlite3.Connection, owner: str, priority: int, size: int) -> tuple[int, int]:
    """The round and rank of a job that is put now."""
    round = next_round(*connection.execute(PLACE, {"owner": owner, "priority": priority}).fetchone())
    return round, round + rounds_behind(size)


class SqliteJobs:
    """The jobs of one database file."""

    def __init__(self, engine: Callable[[], Engine]) -> None:
        self._engine = engine
        self._wakeup: asyncio.Event | None = None
        self._wake: Callable[[], None] | None = None
        self._wake_filter = WakeFilter()

    def ring(self, jobs: Sequence[NewJob] = ()) -> None:
        """Jobs were committed by this process."""
        if not self._wake_filter.should_wake(jobs):
            return
        if self._wakeup is not None:
            self._wakeup.set()
        if self._wake is not None:
            self._wake()

    def on_put(self, wake: Callable[[], None] | None) -> None:
        self._wake = wake

    async def is_any_left(self) -> bool:
        return bool(await self._engine().read(lambda c: c.execute(IS_ANY_LEFT).fetchone()[0]))

    async def run(self, work: Mapping[str, JobHandler], pace: Pace, stop: asyncio.Event) -> None:
        self._wakeup = asyncio.Event()
        await run_jobs(self, work, pace, stop, self._wakeup)

    async def report(self, limit: int, state: JobState | None = None) -> JobReport:
        return await self._engine().read(lambda c: _report(c, limit, state))

    async def backlog(self) -> Backlog:
        return await self._engine().read(_backlog)

    async def retry(self, id: int) -> None:
        await self._engine().write(lambda c: _revive(c, id, Priority.MANUAL))
        self.ring()

    async def retry_all(self) -> int:
        count = await self._engine().write(_revive_all)
        if count:
            self.ring()
        return count

    async def discard(self, id: int) -> None:
        await self._engine().write(lambda c: _take_out_dead(c, id))

    # -- the queue -----------------------------------------------------------------------------------------

    async def claim(self, kinds: Sequence[str], pace: Pace) -> Job | None:
        due = {"now": _micros(), "kinds": json.dumps(list(kinds))}
        if not await self._engine().read(lambda c: c.execute(IS_ANY_DUE, due).fetchone()[0]):
            return None  # the writer is for those who have something to write
        return await self._engine().write(lambda c: _claim(c, kinds, pace))

    async def heartbeat(self, job: Job, pace: Pace) -> None:
        until = _micros(pace.lease_seconds)
        await self._engine().write(lambda c: c.execute(HEARTBEAT, (until, job.id, job.token)).rowcount)

    async def done(self, job: Job) -> None:
        await self._engine().write(lambda c: _done(c, job))

    async def fail(self, job: Job, error: str, again_in: float | None) -> None:
        await self._engine().write(lambda c: _fail(c, job, error, again_in))

    async def give_back(self, job: Job) -> None:
        await self._engine().write(lambda c: _wait_again(c, job, None, 0, -1))

    async def next_due(self) -> float | None:
        at = await self._engine().read(lambda c: c.execute(NEXT_DUE).fetchone()[0])
        return None if at is None else (at - _micros()) / 1e6


def _micros(after_seconds: float = 0.0) -> int:
    return int((time.time() + after_seconds) * 1e6)


def _claim(connection: sqlite3.Connection, kinds: Sequence[str], pace: Pace) -> Job | None:
    now = _micros()
    connection.execute(GIVE_UP_LOST, (LOST, now, now, pace.most_attempts))
    connection.execute(DROP_LOST, (now,))
    connection.execute(TAKE_BACK_LOST, (now,))
    until = _micros(pace.lease_seconds)
    values = {"token": new_id(), "until": until, "now": now, "kinds": json.dumps(list(kinds))}
    claimed = connection.execute(CLAIM, values).fetchall()
    return _job(connection.execute(ONE, claimed[0]).fetchone()) if claimed else None


def _done(connection: sqlite3.Connection, job: Job) -> None:
    for row in connection.execute(DONE, (job.id, job.token)).fetchall():
        connection.execute(BURY, row)


def _fail(connection: sqlite3.Connection, job: Job, error: str, again_in: float | None) -> None:
    if again_in is not None:
        _wait_again(connection, job, error, _micros(again_in), 0)
        return
    for row in connection.execute(HELD, (job.id, job.token)).fetchall():
        connection.execute(BURY, row)
        connection.execute(DIE, (error, _micros(), job.id))


def _wait_again(connection: sqlite3.Connection, job: Job, error: str | None, due: int, begun: int) -> None:
    if connection.execute(HELD, (job.id, job.token)).fetchone() is None:
        return
    if not connection.execute(DROP_IF_LIKE_IT_WAITS, (job.id,)).rowcount:
        connection.execute(WAIT_AGAIN, (error, due, begun, job.id))


def _take_out_dead(connection: sqlite3.Connection, id: int) -> Sequence[Any]:
    found = connection.execute(TAKE_OUT_DEAD, (id,)).fetchall()
    if not found:
        raise NotFound(f"no dead job {id}")
    row: Sequence[Any] = found[0]
    return row


def _revive(connection: sqlite3.Connection, id: int, at_least: int) -> None:
    """As if it were put now: where one like it waits, that one is raised."""
    conversation, owner, kind, priority, details = _take_out_dead(connection, id)
    job = NewJob(kind=kind, priority=max(priority, at_least), details=json.loads(details))
    put(connection, conversation, owner, [job], _micros())


def _revive_all(connection: sqlite3.Connection) -> int:
    dead = connection.execute(ALL_DEAD).fetchall()
    for (id,) in dead:
        _revive(connection, id, Priority.WHEN_IDLE)
    return len(dead)


def _report(connection: sqlite3.Connection, limit: int, state: JobState | None) -> JobReport:
    counts = dict(connection.execute(COUNTS).fetchall())
    waiting, running, dead = (counts.get(number, 0) for number in range(len(_STATES)))
    jobs: list[Job] = []
    for number, one in reversed(list(enumerate(_STATES))):
        if state in (None, one):
            jobs += [_job(row) for row in connection.execute(LISTING, (number, limit - len(jobs)))]
    oldest = connection.execute(OLDEST_WAITING).fetchone() if waiting else None
    return JobReport(
        waiting=waiting,
        running=running,
        dead=dead,
        jobs=jobs,
        oldest_put_at=None if oldest is None else from_micros(oldest[0]),
    )


def _backlog(connection: sqlite3.Connection) -> Backlog:
    waiting = [
        WaitingJobs(kind=kind, priority=priority, count=count, oldest_put_at=from_micros(oldest))
        for kind, priority, count, oldest in connection.execute(BACKLOG)
    ]
    return Backlog(waiting=waiting, unsummarised_messages=connection.execute(UNSUMMARISED).fetchone()[0])


def _job(row: Sequence[Any]) -> Job:
    number, kind, owner, id, priority, details, state, attempts, error, due_at, put_at, died_at, token = row
    return Job(
        id=number,
        kind=kind,
        ref=Ref(owner, id),
        priority=priority,
        details=json.loads(details),
        state=_STATES[state],
        attempts=attempts,
        error=error,
        due_at=datetime.fromtimestamp(due_at / 1e6, UTC) if due_at else None,
        put_at=from_micros(put_at),
        died_at=None if died_at is None else from_micros(died_at),
        token=token or "",
    )
