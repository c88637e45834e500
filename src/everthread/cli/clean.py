"""Remove files that nothing uses any more: clean (workspaces), sweep (blobs)."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from everthread.cli.app import app, command
from everthread.cli.invocation import Invocation
from everthread.cli.output import counted, format_bytes, format_time

if TYPE_CHECKING:
    pass


@command(app)
async def clean(
    cli: Invocation,
    days: Annotated[
        float | None, typer.Option(min=0, metavar="N", help="Idle for this many days; default: the setting.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be removed.")] = False,
) -> None:
    """Remove the files of workspaces that have been idle for days. Messages stay, and workspaces in use."""
    async with cli.open() as et:
        report = await et.workspaces.clean(idle_days=days, dry_run=dry_run)
    if cli.out.json:
        cli.out.document(
            {
                "dry_run": report.dry_run,
                "removed": [
                    {
                        "owner": one.ref.owner,
                        "conversation_id": one.ref.id,
                        "path": str(one.path),
                        "files": one.files,
                        "bytes": one.size_bytes,
                        "used_at": one.used_at,
                    }
                    for one in report.removed
                ],
                "in_use": report.in_use,
                "recent": report.recent,
            }
        )
        return
    if report.removed:
        cli.out.table(
            ("conversation", ">files", ">size", "last used"),
            [(one.ref.id, one.files, format_bytes(one.size_bytes), format_time(one.used_at)) for one in report.removed],
        )
    done = "would be removed" if dry_run else "removed"
    cli.out.text(
        f"{counted(len(report.removed), 'workspace')} {done} ({format_bytes(report.size_bytes)}); "
        f"{report.in_use:,} are in use, "
        f"{report.recent} were used recently"
    )


@command(app)
async def sweep(
    cli: Invocation,
    hours: Annotated[
        float, typer.Option("--older-than", metavar="HOURS", min=0, help="Leave blobs newer than this.")
    ] = 24,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be deleted.")] = False,
) -> None:
    """Delete blobs that nothing refers to, such as a crash between writing a blob and its commit leaves."""
    async with cli.open() as et:
        gone = await et.sweep_blobs(older_than=timedelta(hours=hours), dry_run=dry_run)
    if cli.out.json:
        for one in gone:
            cli.out.document({"name": one.name, "bytes": one.size_bytes, "written_at": one.written_at})
    else:
        done = "would be deleted" if dry_run else "deleted"
        cli.out.text(f"{counted(len(gone), 'blob')} {done}, {format_bytes(sum(one.size_bytes for one in gone))}")
