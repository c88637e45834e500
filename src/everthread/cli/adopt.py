"""`everthread adopt`: archive the threads that a LangGraph saver holds."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import asdict
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Any

import typer

from everthread.cli.app import app, command
from everthread.cli.invocation import Invocation
from everthread.cli.output import counted, format_bytes
from everthread.core.errors import Invalid, MissingExtra

if TYPE_CHECKING:
    from everthread.langgraph.adopt import ThreadAdoption, ThreadReport
    from everthread.langgraph.foreign_savers import SaverDatabase


SaverOption = Annotated[
    str, typer.Option("--saver", metavar="URL", help="The saver's database: sqlite:///file or postgresql://…")
]


@command(app)
async def adopt(
    cli: Invocation,
    saver: SaverOption,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only report; write nothing.")] = False,
    prune: Annotated[
        bool, typer.Option("--prune", help="Then remove the saver's older checkpoints and free their space.")
    ] = False,
) -> None:
    """Archive all threads of a SqliteSaver or PostgresSaver, from all their checkpoints. Safe to repeat."""
    if dry_run and prune:
        raise Invalid("cannot be combined with --dry-run", field="--prune")
    if any(find_spec(f"langgraph.checkpoint.{kind}") is None for kind in ("sqlite", "postgres")):
        raise MissingExtra("adopting needs an extra: pip install 'everthread[adopt]'")
    from everthread.langgraph.foreign_savers import open_saver_database  # noqa: PLC0415 - an extra

    with open_saver_database(saver, read_only=not prune) as found:
        if dry_run:
            _print_reports(cli, await _report(cli, found))
        else:
            _print_adoptions(cli, await _adopt(cli, found), await _prune(cli, found) if prune else None)


async def _report(cli: Invocation, found: SaverDatabase) -> list[ThreadReport]:
    from everthread.langgraph.adopt import report_thread  # noqa: PLC0415 - an extra

    threads = found.threads()
    with cli.out.progress("looking", sum(len(found.checkpoints(thread)) for thread in threads)) as step:
        return [await asyncio.to_thread(report_thread, found, thread, step) for thread in threads]


async def _adopt(cli: Invocation, found: SaverDatabase) -> list[ThreadAdoption]:
    from everthread.langgraph.adopt import Adopter  # noqa: PLC0415 - an extra

    threads = found.threads()
    async with cli.open(create=True) as et:
        adoption = Adopter(et, found, cli.owner)
        with cli.out.progress("adopting", sum(len(found.checkpoints(thread)) for thread in threads)) as step:
            return [await adoption.adopt(thread, step) for thread in threads]


async def _prune(cli: Invocation, found: SaverDatabase) -> dict[str, Any]:
    """Runs after the adoption: a failure before leaves the saver as it is."""
    threads = found.threads()
    before = sum(found.size_bytes(thread)[0] for thread in threads)
    kept = [thread for thread in threads if not await asyncio.to_thread(found.prune, thread)]
    await asyncio.to_thread(found.shrink)
    after = sum(found.size_bytes(thread)[0] for thread in threads)
    return {"freed_bytes": before - after, "not_pruned": kept}


def _print_reports(cli: Invocation, reports: Sequence[ThreadReport]) -> None:
    if cli.out.json:
        cli.out.document({"threads": [asdict(one) for one in reports]})
        return
    rows = [
        (
            one.thread_id,
            one.checkpoints,
            one.messages,
            one.lost,
            format_bytes(one.size_bytes),
            format_bytes(one.prunable_bytes),
        )
        for one in reports
    ]
    cli.out.table((("thread"), ">checkpoints", ">messages", ">lost from its state", ">size", ">a prune frees"), rows)
    total = sum(one.size_bytes for one in reports)
    freed = sum(one.prunable_bytes for one in reports)
    cli.out.text(
        f"{counted(len(reports), 'thread')}, {counted(sum(one.messages for one in reports), 'message')}, of which "
        f"{sum(one.lost for one in reports)} are no longer in the newest states; "
        f"{format_bytes(total)}, a prune would free {format_bytes(freed)}"
    )


def _print_adoptions(cli: Invocation, adoptions: Sequence[ThreadAdoption], pruned: dict[str, Any] | None) -> None:
    if cli.out.json:
        cli.out.document({"threads": [asdict(one) for one in adoptions], "pruned": pruned})
        return
    cli.out.table(
        ("thread", ">messages", ">new entries"), [(one.thread_id, one.messages, one.entries) for one in adoptions]
    )
    entries = counted(sum(one.entries for one in adoptions), "new entry", "new entries")
    cli.out.text(f"{counted(len(adoptions), 'thread')} adopted, {entries} in the log")
    if pruned is not None:
        cli.out.text(f"pruned: {format_bytes(pruned['freed_bytes'])} freed")
        for thread in pruned["not_pruned"]:
            cli.out.note(f"not pruned: {thread} has checkpoints in a format that does not say what they need")
