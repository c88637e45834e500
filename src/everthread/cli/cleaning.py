"""The command that removes idle workspaces: clean."""

from __future__ import annotations

from typing import Annotated

import typer

from everthread.cli.app import app, command
from everthread.cli.door import Door
from everthread.cli.output import moment, size


@command(app)
async def clean(
    door: Door,
    days: Annotated[
        float | None, typer.Option(min=0, metavar="N", help="Idle for so long; the setting if none.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would go.")] = False,
) -> None:
    """Remove the files of workspaces that nobody used for days; never of one in use. Messages stay."""
    async with door.open() as et:
        report = await et.workspaces.clean(idle_days=days, dry_run=dry_run)
    if door.out.json:
        door.out.document(
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
        door.out.table(
            ("conversation", ">files", ">size", "last used"),
            [(one.ref.id, one.files, size(one.size_bytes), moment(one.used_at)) for one in report.removed],
        )
    done = "would be removed" if dry_run else "removed"
    door.out.text(
        f"{len(report.removed)} workspaces {done} ({size(report.size_bytes)}); {report.in_use} are in use, "
        f"{report.recent} were used lately"
    )
