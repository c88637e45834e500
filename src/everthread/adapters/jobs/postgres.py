"""Jobs in PostgreSQL, with procrastinate: deferred by its own function on our connection, inside the transaction that
caused them; taken and done by its worker.

`lock` keeps a conversation to one job at a time, `queueing_lock` keeps one of a kind waiting. Ours is what it leaves
to its users: errors that are kept, second attempts, and taking back what a dead worker held (`procrastinate_worker`).
Its tables are in a schema of their own (migration 0009).
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any

import asyncpg

from everthread.adapters.jobs import postgres_statements as sql
from everthread.core.cancellation import wait_for_event
from everthread.core.clock import from_micros, system_clock, to_micros
from everthread.core.errors import NotFound
from everthread.core.failpoints import reach
from everthread.core.jobs import (
    Backlog,
    Job,
    JobHandler,
    JobReport,
    JobState,
    NewJob,
    Pace,
    Priority,
    WaitingJobs,
    next_round,
    rounds_behind,
)
from everthread.core.nouns import Ref
from everthread.jobs.worker import MAX_PAUSE_SECONDS

if TYPE_CHECKING:
    from everthread.adapters.stores.postgres.pool import Connection, Pool, Row

_LOG = logging.getLogger("everthread.worker")

_STATES = {"todo": JobState.WAITING, "doing": JobState.RUNNING, "failed": JobState.DEAD}


async def put(connection: Connection, conversation: int, ref: Ref, jobs: Sequence[NewJob], now: int) -> None:
    """Write jobs, in the transaction that caused them. Those that would gather begin at once: for what is due later
    procrastinate looks every `poll_seconds` only, and here nobody waits for a single writer."""
    for job in jobs:
        await _put(connection, conversation, ref, job, now)
        reach("job.written")


async def _put(connection: Connection, conversation: int, ref: Ref, job: NewJob, now: int) -> None:
    """One like it that waits may learn from a new one, and is written only then."""
    while (waiting := await connection.fetchrow(sql.WAITING, job.kind, conversation)) is None:
        round, priority = await _place(connection, ref.owner, job.priority, job.size)
        place = {"level": job.priority, "round": round}
        arguments = {"owner": ref.owner, "id": ref.id, "details": dict(job.details), "put_at": now, **place}
        if await defer(connection, job.kind, conversation, priority, arguments):
            return
    id, level, is_untold = waiting
    if job.priority > level:
        round, priority = await _place(connection, ref.owner, job.priority, job.size)
        await connection.execute(sql.RAISE, id, priority, job.priority, round)
    if is_untold and job.details:
        await connection.execute(sql.TELL, id, json.dumps(dict(job.details)))


async def _place(connection: Connection, owner: str, level: int, size: int) -> tuple[int, int]:
    """The round of a job that is put now, and the priority by which procrastinate takes it in its place."""
    found = await connection.fetchrow(sql.PLACE, owner, level)
    assert found is not None
    round = next_round(*found)
    rank = min(round + rounds_behind(size), sql.RANKS - 1)
    return round, level * sql.RANKS - rank


async def defer(
    connection: Connection,
    kind: str,
    conversation: int,
    priority: int,
    arguments: Mapping[str, Any],
    at: datetime | None = None,
) -> bool:
    """Let a job wait, unless one like it does: a worker may have put it back since we looked. Gives whether it does."""
    await connection.execute("SAVEPOINT job")
    is_first = True
    try:
        await connection.execute(sql.DEFER, kind, conversation, priority, json.dumps(arguments), at)
    except asyncpg.UniqueViolationError:
        is_first = False
        await connection.execute("ROLLBACK TO job")
    await connection.execute("RELEASE job")
    return is_first


def level_of(priority: int) -> int:
    """Our priority, from procrastinate's."""
    return -(-priority // sql.RANKS)


class PostgresJobs:
    """The jobs of one database."""

    def __init__(self, pool: Callable[[], Pool]) -> None:
        self._pool = pool
        self._wake: Callable[[], None] | None = None

    def ring(self, jobs: Sequence[NewJob] = ()) -> None:
        """Jobs were committed by this process. A worker that runs hears of them from PostgreSQL."""
        if self._wake is not None:
            self._wake()

    def on_put(self, wake: Callable[[], None] | None) -> None:
        self._wake = wake

    async def is_any_left(self) -> bool:
        return bool(await self._pool().read(lambda c: c.fetchval(sql.IS_ANY_LEFT)))

    async def run(self, work: Mapping[str, JobHandler], pace: Pace, stop: asyncio.Event) -> None:
        from everthread.adapters.jobs.procrastinate_worker import run_worker  # noqa: PLC0415 - only where work is done

        failures = 0
        while not stop.is_set():
            try:
                await run_worker(self._pool(), work, pace, stop)
                failures = 0
            except Exception as problem:  # noqa: BLE001 - the worker loop: a server that went away comes back
                failures += 1
                _LOG.warning("the worker stopped (%s); restarting", type(problem).__name__)
            await wait_for_event(stop, min(MAX_PAUSE_SECONDS, 2.0**failures / 10))

    async def report(self, limit: int, state: JobState | None = None) -> JobReport:
        async def work(connection: Connection) -> JobReport:
            counts = {_STATES[row[0]]: row[1:] for row in await connection.fetch(sql.COUNTS)}
            jobs: list[Job] = []
            for status, one in reversed(_STATES.items()):
                if state in (None, one):
                    rows = await connection.fetch(sql.LISTING.format(status=status), limit - len(jobs))
                    jobs += map(_job, rows)
            (waiting, oldest), (running, _), (dead, _) = (counts.get(one, (0, None)) for one in _STATES.values())
            oldest_put_at = None if oldest is None else from_micros(oldest)
            return JobReport(waiting=waiting, running=running, dead=dead, jobs=jobs, oldest_put_at=oldest_put_at)

        return await self._pool().read(work)

    async def backlog(self) -> Backlog:
        async def work(connection: Connection) -> Backlog:
            waiting = [
                WaitingJobs(kind=kind, priority=level, count=count, oldest_put_at=from_micros(oldest))
                for kind, level, count, oldest in await connection.fetch(sql.BACKLOG)
            ]
            return Backlog(waiting=waiting, unsummarised_messages=await connection.fetchval(sql.UNSUMMARISED))

        return await self._pool().read(work)

    async def retry(self, id: int) -> None:
        await self._pool().write(lambda c: _revive(c, id, Priority.MANUAL))
        self.ring()

    async def retry_all(self) -> int:
        async def work(connection: Connection) -> int:
            count = 0
            for (id,) in await connection.fetch(sql.ALL_DEAD):
                with suppress(NotFound):  # another process came first
                    await _revive(connection, id, Priority.WHEN_IDLE)
                    count += 1
            return count

        count = await self._pool().write(work)
        if count:
            self.ring()
        return count

    async def discard(self, id: int) -> None:
        await self._pool().write(lambda c: _take_out_dead(c, id))


async def _take_out_dead(connection: Connection, id: int) -> Row:
    row = await connection.fetchrow(sql.LOCK_DEAD, id)
    if row is None:
        raise NotFound(f"no dead job {id}")
    await connection.execute(sql.DELETE, id)
    return row


async def _revive(connection: Connection, id: int, at_least: int) -> None:
    """As if it were put now: where one like it waits, that one is raised."""
    kind, conversation, level, arguments = await _take_out_dead(connection, id)
    known = json.loads(arguments)
    job = NewJob(kind=kind, priority=max(level, at_least), details=known["details"])
    await _put(connection, conversation, Ref(known["owner"], known["id"]), job, to_micros(system_clock()))


def _job(row: Row) -> Job:
    id, kind, level, status, attempts, scheduled_at, arguments = row
    known = json.loads(arguments)
    return Job(
        id=id,
        kind=kind,
        ref=Ref(known["owner"], known["id"]),
        priority=level,
        details=known["details"],
        state=_STATES[status],
        attempts=attempts + known.get("attempts", 0),
        error=known.get("error"),
        due_at=scheduled_at,
        put_at=from_micros(known["put_at"]),
        died_at=from_micros(known["died_at"]) if "died_at" in known else None,
    )
