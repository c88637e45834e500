"""Private methods of procrastinate's worker, overridden so that it runs our jobs as our own loop would.

`_periodic_deferrer` also takes back the jobs of dead workers, and `_process_job` looks for the next job of the same
conversation at once instead of at the next poll; to remove, use `procrastinate.worker.Worker` as it is and run both
from a task of ours. A module of its own also because procrastinate is slow to import.

procrastinate would put a failed job back itself, but cannot where one like it waits already: the two collide on the
queueing lock and the job stays "doing" for ever. So a job never fails in its eyes, except for the last time: what is
to be tried again is deferred anew, with what is known of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

import asyncpg
import psycopg
from procrastinate import App, JobContext, PsycopgConnector
from procrastinate.worker import Worker

from everthread.adapters.jobs import postgres_statements as sql
from everthread.adapters.jobs.postgres import defer, level_of
from everthread.adapters.stores.postgres.address import Address
from everthread.adapters.stores.postgres.pool import Connection, Pool
from everthread.core.cancellation import cancel_count
from everthread.core.clock import from_micros, system_clock, to_micros
from everthread.core.jobs import LOST, Job, JobHandler, JobState, Pace, error_text, pause_before_next
from everthread.core.nouns import Ref

_OPEN_SECONDS = 5.0
_NOTICE_DROPPED_PACKETS = {
    "keepalives_idle": "30", "keepalives_interval": "10", "keepalives_count": "3", "tcp_user_timeout": "60000",
}  # fmt: skip
"""A worker that listens would not notice for hours that the network drops what is sent."""


class JobDead(Exception):
    """Tells procrastinate that a job is dead."""


async def run_worker(pool: Pool, work: Mapping[str, JobHandler], pace: Pace, stop: asyncio.Event) -> None:
    """Work until `stop` is set or the server goes away."""
    home = await pool.read(lambda connection: connection.fetchval(sql.WHICH_HOME))
    app = App(connector=_connector(pool.address, pace))
    running: set[int] = set()
    for kind, do in work.items():
        task = _JobTask(pool=pool, kind=kind, do=do, pace=pace, running=running)
        app.task(name=f"everthread:{kind}", queue=f"{kind}@{home}", pass_context=True)(task.as_task())
    async with asyncio.timeout(_OPEN_SECONDS):
        await app.open_async()
    try:
        worker = _Worker(app, pool, pace, running, [f"{kind}@{home}" for kind in work])
        await _run_until(stop, worker)
    finally:
        await app.close_async()


async def _run_until(stop: asyncio.Event, worker: _Worker) -> None:
    working = asyncio.create_task(worker.run())  # type: ignore[no-untyped-call]
    stopped = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait((working, stopped), return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopped.cancel()
        worker.stop()  # type: ignore[no-untyped-call]
        await working


class _Worker(Worker):
    """procrastinate's worker, which also takes back what dead ones held, and keeps no job of a conversation waiting."""

    def __init__(self, app: App, pool: Pool, pace: Pace, running: set[int], queues: list[str]) -> None:
        is_pooled = pool.address.statement_cache_size == 0  # a pooler does not carry notifications
        super().__init__(
            app,
            queues=queues,
            name=None,
            concurrency=pace.concurrency,
            fetch_job_polling_interval=pace.poll_seconds,
            shutdown_graceful_timeout=pace.stop_seconds,
            listen_notify=not is_pooled,
            delete_jobs="successful",
            install_signal_handlers=False,
            update_heartbeat_interval=pace.heartbeat_seconds,
            stalled_worker_timeout=pace.lease_seconds,
        )
        self._pool = pool
        self._pace = pace
        self._running_ids = running

    async def _periodic_deferrer(self) -> None:
        """We have no periodic tasks. This side task must not end: when one does, the others are watched no more, and
        a worker without heartbeat or listener would go on."""
        while True:
            await self._pool.write(self._take_back_lost)
            await asyncio.sleep(self._pace.heartbeat_seconds)

    async def _process_job(self, context: JobContext) -> None:
        """Look again when one has ended: another of its conversation may have come meanwhile and could not begin, and
        procrastinate itself would find it at its next round."""
        try:
            await super()._process_job(context)
        finally:
            self._new_job_event.set()

    async def _take_back_lost(self, connection: Connection) -> None:
        lost = await connection.fetch(sql.LOCK_LOST, self._pace.lease_seconds, self.worker_id, list(self._running_ids))
        for id, queueing_lock, attempts in lost:
            if pause_before_next(attempts, self._pace) is None:
                await connection.execute(sql.NOTE_ERROR, id, LOST, to_micros(system_clock()))
                await connection.execute(sql.BURY, queueing_lock)
                await connection.execute(sql.GIVE_UP, id)
            else:
                await _requeue(connection, id)


async def _requeue(connection: Connection, id: int) -> None:
    await connection.execute("SAVEPOINT job")
    try:
        await connection.execute(sql.TAKE_BACK, id)
    except asyncpg.UniqueViolationError:  # one like it waits, and knows more
        await connection.execute("ROLLBACK TO job")
        await connection.execute(sql.DELETE, id)
    await connection.execute("RELEASE job")


@dataclass(frozen=True, slots=True, kw_only=True)
class _JobTask:
    """What procrastinate calls a task: one job, done and accounted for."""

    pool: Pool
    kind: str
    do: JobHandler
    pace: Pace
    running: set[int]
    """The ids of the jobs at work in this process."""

    def as_task(self) -> Callable[..., Awaitable[None]]:
        async def task(context: JobContext, **arguments: Any) -> None:
            assert context.job.id is not None
            self.running.add(context.job.id)
            try:
                await self._run(context, arguments)
            finally:
                self.running.discard(context.job.id)

        return task

    async def _run(self, context: JobContext, arguments: Mapping[str, Any]) -> None:
        job = self._job(context, arguments)
        before = cancel_count()
        try:
            await self.do(job)
        except asyncio.CancelledError as problem:
            if cancel_count() > before:  # the worker is stopped: the job goes back, as if it had not been begun
                await self._defer_again(context, arguments)
            else:
                await self._fail(context, arguments, job, error_text(problem))
        except Exception as problem:  # noqa: BLE001 - the worker loop: whatever a job raises is its error
            await self._fail(context, arguments, job, error_text(problem))
        else:
            await self.pool.write(lambda c: c.execute(sql.BURY, context.job.queueing_lock))

    async def _fail(self, context: JobContext, arguments: Mapping[str, Any], job: Job, error: str) -> None:
        pause = pause_before_next(job.attempts, self.pace)
        if pause is not None:
            again = {**arguments, "attempts": job.attempts, "error": error}
            await self._defer_again(context, again, system_clock() + timedelta(seconds=pause))
            return

        async def work(connection: Connection) -> None:
            await connection.execute(sql.BURY, context.job.queueing_lock)
            await connection.execute(sql.NOTE_ERROR, job.id, error, to_micros(system_clock()))

        await self.pool.write(work)
        raise JobDead(error)

    async def _defer_again(self, context: JobContext, arguments: Mapping[str, Any], at: datetime | None = None) -> None:
        conversation = int((context.job.lock or "").rpartition(":")[2])
        priority = context.job.priority
        await self.pool.write(lambda c: defer(c, self.kind, conversation, priority, arguments, at))

    def _job(self, context: JobContext, arguments: Mapping[str, Any]) -> Job:
        assert context.job.id is not None
        return Job(
            id=context.job.id,
            kind=self.kind,
            ref=Ref(arguments["owner"], arguments["id"]),
            priority=level_of(context.job.priority),
            details=arguments["details"],
            state=JobState.RUNNING,
            attempts=context.job.attempts + arguments.get("attempts", 0) + 1,
            error=arguments.get("error"),
            due_at=context.job.scheduled_at,
            put_at=from_micros(arguments["put_at"]),
        )


def _connector(address: Address, pace: Pace) -> PsycopgConnector:
    return PsycopgConnector(
        conninfo=conninfo(address),
        kwargs={"prepare_threshold": 5 if address.statement_cache_size else None},
        min_size=1,
        max_size=pace.concurrency + 2,
        name="everthread-worker",
    )


def conninfo(address: Address) -> str:
    """The address as libpq takes it: a setting of the server is an option there, and the tables are in their schema."""
    parts = urlsplit(address.dsn)
    parameters = dict(parse_qsl(parts.query))
    known = {option.keyword.decode() for option in psycopg.pq.Conninfo.get_defaults()}
    settings = {name: parameters.pop(name) for name in list(parameters) if name not in known}
    settings["search_path"] = sql.SCHEMA
    flags = [f"-c {name}={_escape(value)}" for name, value in settings.items()]
    parameters["options"] = " ".join([*filter(None, [parameters.get("options")]), *flags])
    parameters["connect_timeout"] = str(address.connect_timeout)
    parameters = {**_NOTICE_DROPPED_PACKETS, **parameters}
    return urlunsplit(parts._replace(query=urlencode(parameters, quote_via=quote)))


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace(" ", "\\ ")
