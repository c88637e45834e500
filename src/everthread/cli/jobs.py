"""Background jobs: worker, jobs, reindex."""

from __future__ import annotations

import asyncio
import signal
from dataclasses import fields
from typing import Annotated, Any

import typer

from everthread.cli.app import app, command
from everthread.cli.invocation import Invocation
from everthread.cli.output import format_time
from everthread.core.jobs import Job, Pace

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
    retry: Annotated[int | None, typer.Option(metavar="ID", help="First requeue this dead job.")] = None,
) -> None:
    """List waiting, running and dead jobs of all owners, with the errors of the dead."""
    async with cli.open() as et:
        if retry is not None:
            await et.retry_job(retry)
        found = await et.jobs(limit=limit)
    if cli.out.json:
        counts = {"waiting": found.waiting, "running": found.running, "dead": found.dead}
        cli.out.document({**counts, "jobs": [_as_json(job) for job in found.jobs]})
        return
    cli.out.table(
        (">id", "state", "kind", "owner", "conversation", ">tries", "due", "error"),
        [
            (job.id, job.state, job.kind, *job.ref, job.attempts, format_time(job.due_at), job.error or "")
            for job in found.jobs
        ],
    )
    cli.out.note(f"{found.waiting} waiting, {found.running} running, {found.dead} dead")


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
        cli.out.note(f"{made:,} passages embedded")


def _as_json(job: Job) -> dict[str, Any]:
    shown = {field.name: getattr(job, field.name) for field in fields(job) if field.name not in ("ref", "token")}
    return {**shown, "owner": job.ref.owner, "conversation": job.ref.id}
