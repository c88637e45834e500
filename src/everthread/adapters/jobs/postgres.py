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
from everthread.core.clock import from_micros
from everthread.core.errors import NotFound
from everthread.core.failpoints import reach
from everthread.core.jobs import Job, JobHandler, JobReport, JobState, NewJob, Pace
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
        arguments = {"owner": ref.owner, "id": ref.id, "details": dict(job.details), "put_at": now}
        if not await connection.fetchval(sql.LEARN, job.kind, conversation, job.priority, json.dumps(job.details)):
            await defer(connection, job.kind, conversation, job.priority, arguments)
        reach("job.written")


async def defer(
    connection: Connection,
    kind: str,
    conversation: int,
    priority: int,
    arguments: Mapping[str, Any],
    at: datetime | None = None,
) -> None:
    """Let a job wait, unless one like it does: a worker may have put it back since we looked."""
    await connection.execute("SAVEPOINT job")
    try:
        await connection.execute(sql.DEFER, kind, conversation, priority, json.dumps(arguments), at)
    except asyncpg.UniqueViolationError:
        await connection.execute("ROLLBACK TO job")
    await connection.execute("RELEASE job")


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
                _LOG.warning("the worker stopped (%s), and begins again", type(problem).__name__)
            with suppress(TimeoutError):
                async with asyncio.timeout(min(MAX_PAUSE_SECONDS, 2.0**failures / 10)):
                    await stop.wait()

    async def report(self, limit: int) -> JobReport:
        async def work(connection: Connection) -> JobReport:
            counts = {_STATES[row[0]]: row[1] for row in await connection.fetch(sql.COUNTS)}
            jobs = [_job(row) for row in await connection.fetch(sql.LISTING, limit)]
            waiting, running, dead = (counts.get(state, 0) for state in _STATES.values())
            return JobReport(waiting=waiting, running=running, dead=dead, jobs=jobs)

        return await self._pool().read(work)

    async def retry(self, id: int) -> None:
        async def work(connection: Connection) -> None:
            row = await connection.fetchrow(sql.LOCK_DEAD, id)
            if row is None:
                raise NotFound(f"no dead job {id}")
            kind, conversation, priority, arguments = row
            fresh = {name: value for name, value in json.loads(arguments).items() if name not in ("attempts", "error")}
            await connection.execute(sql.DELETE, id)
            await defer(connection, kind, conversation, priority, fresh)

        await self._pool().write(work)
        self.ring()


def _job(row: Row) -> Job:
    id, kind, priority, status, attempts, scheduled_at, arguments = row
    known = json.loads(arguments)
    return Job(
        id=id,
        kind=kind,
        ref=Ref(known["owner"], known["id"]),
        priority=priority,
        details=known["details"],
        state=_STATES[status],
        attempts=attempts + known.get("attempts", 0),
        error=known.get("error"),
        due_at=scheduled_at,
        put_at=from_micros(known["put_at"]),
    )
