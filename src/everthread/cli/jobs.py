"""Background jobs: worker, jobs, reindex."""

from __future__ import annotations

import asyncio
import signal
from dataclasses import fields
from typing import Annotated, Any

import typer

from everthread.cli.app import app, command
from everthread.cli.invocation import Invocation
from everthread.cli.output import counted, format_age, format_time
from everthread.core.jobs import Job, JobState, Pace, priority_name

_STOP_SECONDS = 10.0
"""Process managers send SIGKILL after 10 to 30 seconds."""


@command(app)
async def worker(
    cli: Invocation,
    concurrency: Annotated[
        int, typer.Option(metavar="N", min=1, max=64, help="Jobs to run at once, each of a different conversation.")
    ] = Pace().concurrency,
) -> None:
    """Run background jobs, such as compactions, until interrupted by Ctrl-C or SIGTERM."""
    async with cli.open(worker=Pace(concurrency=concurrency, stop_seconds=_STOP_SECONDS)) as et:
        cli.out.note(f"running jobs of {cli.shown_url}; stop with Ctrl-C")
        # A signal only ends the wait. Closing the database then lets running jobs finish within their time, and puts
        # the others back in the queue; a second signal does not cut that short.
        stopped = asyncio.Event()
        for one in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(one, stopped.set)
        et.start_worker()
        await stopped.wait()


@command(app)
async def jobs(
    cli: Invocation,
    limit: Annotated[int, typer.Option(metavar="N", min=0, max=1000, help="The maximum number.")] = 50,
    dead: Annotated[bool, typer.Option("--dead", help="Only jobs that failed for good.")] = False,
    retry: Annotated[int | None, typer.Option(metavar="ID", help="First requeue this dead job.")] = None,
    retry_all: Annotated[bool, typer.Option("--retry-all", help="First requeue all dead jobs.")] = False,
    discard: Annotated[int | None, typer.Option(metavar="ID", help="First delete this dead job.")] = None,
) -> None:
    """List waiting, running and dead jobs of all owners, with the errors of the dead."""
    async with cli.open() as et:
        if retry is not None:
            await et.retry_job(retry)
        if discard is not None:
            await et.discard_job(discard)
        if retry_all:
            cli.out.note(f"{await et.retry_dead_jobs()} requeued")
        found = await et.jobs(limit=limit, state=JobState.DEAD if dead else None)
        now = et.runtime.clock()
    age_seconds = None if found.oldest_put_at is None else max(0.0, (now - found.oldest_put_at).total_seconds())
    if cli.out.json:
        counts = {"waiting": found.waiting, "running": found.running, "dead": found.dead}
        shown = [_as_json(job) for job in found.jobs]
        cli.out.document({**counts, "oldest_waiting_seconds": age_seconds, "jobs": shown})
        return
    cli.out.table(
        (">id", "state", "kind", "?priority", "?owner", "^conversation", ">tries", "due or died", "error"),
        [
            (
                job.id,
                job.state,
                job.kind,
                priority_name(job.priority),
                *job.ref,
                job.attempts,
                format_time(job.died_at or job.due_at),
                job.error or "",
            )
            for job in found.jobs
        ],
    )
    oldest = "" if age_seconds is None else f", the oldest for {format_age(age_seconds)}"
    cli.out.note(f"{found.waiting} waiting{oldest}, {found.running} running, {found.dead} dead")


@command(app)
async def reindex(
    cli: Invocation,
    conversation: Annotated[
        str | None, typer.Argument(metavar="[CONVERSATION]", help="Only this conversation.")
    ] = None,
    anew: Annotated[bool, typer.Option("--anew", help="Rebuild all vectors, not only missing ones.")] = False,
) -> None:
    """Make the missing vectors for search by meaning: of messages, memories and documents of all owners."""
    async with cli.open() as et:
        total = (await et.stats())["entries"]
        with cli.out.progress("indexing", total) as step:
            owner = None if conversation is None else cli.owner
            made = await et.reindex(owner=owner, conversation=conversation, anew=anew, on_entries=step)
    if cli.out.json:
        cli.out.document({"passages": made})
    else:
        cli.out.note(f"{counted(made, 'passage')} embedded")


def _as_json(job: Job) -> dict[str, Any]:
    shown = {field.name: getattr(job, field.name) for field in fields(job) if field.name not in ("ref", "token")}
    return {**shown, "priority": priority_name(job.priority), "owner": job.ref.owner, "conversation": job.ref.id}
