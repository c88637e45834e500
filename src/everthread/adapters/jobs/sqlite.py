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
from everthread.core.errors import NotFound
from everthread.core.failpoints import reach
from everthread.core.ids import new_id
from everthread.core.jobs import LOST, Job, JobHandler, JobReport, JobState, NewJob, Pace, WakeFilter
from everthread.core.nouns import Ref
from everthread.jobs.worker import run_jobs

if TYPE_CHECKING:
    from everthread.adapters.stores.sqlite.engine import Engine

_STATES = (JobState.WAITING, JobState.RUNNING, JobState.DEAD)
"""By their numbers in the table."""

PUT = """
INSERT INTO jobs (conversation, kind, priority, details, state, attempts, due_at, leased_until, put_at)
VALUES (?, ?, ?, ?, 0, 0, ?, 0, ?)
ON CONFLICT (conversation, kind) WHERE state = 0 DO UPDATE
SET priority = max(priority, excluded.priority), details = iif(details = '{}', excluded.details, details)
WHERE excluded.priority > priority OR details = '{}' AND excluded.details <> '{}'"""
"""Let a job wait; the one that waits already may learn from it, and is written only then."""

FORGET = "DELETE FROM jobs WHERE conversation = ?"
"""Take out the jobs of an erased conversation."""

FORGET_ERRORS = "UPDATE jobs SET error = NULL WHERE conversation = ? AND error IS NOT NULL"
"""Take out what may quote an erased message."""

IS_ANY_LEFT = "SELECT EXISTS (SELECT 1 FROM jobs WHERE state < 2)"
"""Whether one waits or runs."""

IS_ANY_DUE = """
SELECT EXISTS (SELECT 1 FROM jobs WHERE state = 0 AND due_at <= :now OR state = 1 AND leased_until < :now)"""
"""Whether one can be taken, or taken back."""

COUNTS = "SELECT state, count(*) FROM jobs GROUP BY state"
"""How many there are."""

_JOB = (
    "j.number, j.kind, c.owner, c.id, j.priority, j.details, j.state, j.attempts, j.error, j.due_at, j.put_at, j.token"
)
_JOBS = f"SELECT {_JOB} FROM jobs j JOIN conversations c ON c.number = j.conversation"

LISTING = f"{_JOBS} ORDER BY j.state DESC, j.priority DESC, j.number LIMIT ?"
"""The dead ones, those that run, those that wait."""

ONE = f"{_JOBS} WHERE j.number = ?"
"""One job."""

_LIKE_IT_WAITS = """
EXISTS (SELECT 1 FROM jobs w WHERE w.conversation = jobs.conversation AND w.kind = jobs.kind AND w.state = 0)"""

GIVE_UP_LOST = (
    "UPDATE jobs SET state = 2, error = ?, token = NULL WHERE state = 1 AND leased_until < ? AND attempts >= ?"
)
"""A job that outlived so many workers is not given to another."""

DROP_LOST = f"DELETE FROM jobs WHERE state = 1 AND leased_until < ? AND {_LIKE_IT_WAITS}"
"""A job whose worker died is not needed where one like it waits."""

TAKE_BACK_LOST = "UPDATE jobs SET state = 0, token = NULL, due_at = 0 WHERE state = 1 AND leased_until < ?"
"""Let the other jobs of dead workers wait again."""

CLAIM = """
UPDATE jobs SET state = 1, attempts = attempts + 1, token = ?, leased_until = ?
WHERE number = (
    SELECT j.number FROM jobs j
    WHERE j.state = 0 AND j.due_at <= ? AND j.kind IN (SELECT value FROM json_each(?))
      AND NOT EXISTS (SELECT 1 FROM jobs r WHERE r.conversation = j.conversation AND r.state = 1)
    ORDER BY j.priority DESC, j.number LIMIT 1)
RETURNING number"""
"""Take the next job whose conversation has none running."""

HEARTBEAT = "UPDATE jobs SET leased_until = ? WHERE number = ? AND token = ?"
"""Renew a lease."""

DONE = "DELETE FROM jobs WHERE number = ? AND token = ? RETURNING conversation, kind"
"""It is done."""

BURY = "DELETE FROM jobs WHERE conversation = ? AND kind = ? AND state = 2"
"""What died before is made up for, or dies again."""

HELD = "SELECT conversation, kind FROM jobs WHERE number = ? AND token = ?"
"""Whose a job is, while we hold it."""

DIE = "UPDATE jobs SET state = 2, error = ?, token = NULL WHERE number = ?"
"""Give it up."""

DROP_IF_LIKE_IT_WAITS = f"DELETE FROM jobs WHERE number = ? AND {_LIKE_IT_WAITS}"
"""Of two that would wait, the later one knows more."""

WAIT_AGAIN = """
UPDATE jobs SET state = 0, error = coalesce(?, error), due_at = ?, attempts = attempts + ?, token = NULL
WHERE number = ?"""
"""Let it wait until a time."""

REVIVE = "UPDATE jobs SET state = 0, error = NULL, due_at = 0, attempts = 0 WHERE number = ? AND state = 2"
"""Let a dead one wait again."""

NEXT_DUE = """
SELECT min(at) FROM (
    SELECT min(j.due_at) AS at FROM jobs j WHERE j.state = 0 AND j.due_at > 0
      AND NOT EXISTS (SELECT 1 FROM jobs r WHERE r.conversation = j.conversation AND r.state = 1)
    UNION ALL SELECT min(leased_until) FROM jobs WHERE state = 1)"""
"""When the next pause or lease is over. Those of a busy conversation are looked at when what runs has ended."""


def put(connection: sqlite3.Connection, conversation: int, jobs: Sequence[NewJob], now: int) -> None:
    """Write jobs, in the transaction that caused them."""
    for job in jobs:
        due = _micros(job.gather_seconds) if job.gather_seconds else 0
        connection.execute(PUT, (conversation, job.kind, job.priority, json.dumps(dict(job.details)), due, now))
        reach("job.written")


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

    async def report(self, limit: int) -> JobReport:
        return await self._engine().read(lambda c: _report(c, limit))

    async def retry(self, id: int) -> None:
        await self._engine().write(lambda c: _revive(c, id))
        self.ring()

    # -- the queue -----------------------------------------------------------------------------------------

    async def claim(self, kinds: Sequence[str], pace: Pace) -> Job | None:
        due = {"now": _micros()}
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
    connection.execute(GIVE_UP_LOST, (LOST, now, pace.most_attempts))
    connection.execute(DROP_LOST, (now,))
    connection.execute(TAKE_BACK_LOST, (now,))
    values = (new_id(), _micros(pace.lease_seconds), now, json.dumps(list(kinds)))
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
        connection.execute(DIE, (error, job.id))


def _wait_again(connection: sqlite3.Connection, job: Job, error: str | None, due: int, begun: int) -> None:
    if connection.execute(HELD, (job.id, job.token)).fetchone() is None:
        return
    if not connection.execute(DROP_IF_LIKE_IT_WAITS, (job.id,)).rowcount:
        connection.execute(WAIT_AGAIN, (error, due, begun, job.id))


def _revive(connection: sqlite3.Connection, id: int) -> None:
    row = connection.execute(ONE, (id,)).fetchone()
    if row is None or _STATES[row[6]] is not JobState.DEAD:
        raise NotFound(f"no dead job {id}")
    if not connection.execute(DROP_IF_LIKE_IT_WAITS, (id,)).rowcount:
        connection.execute(REVIVE, (id,))


def _report(connection: sqlite3.Connection, limit: int) -> JobReport:
    counts = dict(connection.execute(COUNTS).fetchall())
    waiting, running, dead = (counts.get(number, 0) for number in range(len(_STATES)))
    jobs = [_job(row) for row in connection.execute(LISTING, (limit,))]
    return JobReport(waiting=waiting, running=running, dead=dead, jobs=jobs)


def _job(row: Sequence[Any]) -> Job:
    number, kind, owner, id, priority, details, state, attempts, error, due_at, put_at, token = row
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
        token=token or "",
    )
