"""The command that takes over what a saver of LangGraph's has kept so far: adopt."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import asdict
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Any

import typer

from everthread.cli.app import app, command
from everthread.cli.door import Door
from everthread.cli.output import size
from everthread.core.errors import Invalid, MissingExtra

if TYPE_CHECKING:
    from everthread.langgraph.adopting import ThreadAdoption, ThreadReport
    from everthread.langgraph.foreign import Foreign

SaverOption = Annotated[
    str, typer.Option("--saver", metavar="URL", help="Its database: sqlite:///file or postgresql://…")
]


@command(app)
async def adopt(
    door: Door,
    saver: SaverOption,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only look, and say what there is.")] = False,
    prune: Annotated[
        bool, typer.Option("--prune", help="Then remove the saver's older checkpoints, and free their space.")
    ] = False,
) -> None:
    """Archive all threads of a SqliteSaver or PostgresSaver, from all their checkpoints. Once more changes nothing."""
    if dry_run and prune:
        raise Invalid("a dry run prunes nothing; leave one of them out", field="--prune")
    if any(find_spec(f"langgraph.checkpoint.{kind}") is None for kind in ("sqlite", "postgres")):
        raise MissingExtra("adopting needs an extra: pip install 'everthread[adopt]'")
    from everthread.langgraph.foreign import foreign_at  # noqa: PLC0415 - an extra

    with foreign_at(saver, read_only=not prune) as found:
        if dry_run:
            _tell_reports(door, await _looked_at(door, found))
        else:
            _tell_adoptions(door, await _adopted(door, found), await _pruned(door, found) if prune else None)


async def _looked_at(door: Door, found: Foreign) -> list[ThreadReport]:
    from everthread.langgraph.adopting import report  # noqa: PLC0415 - an extra

    threads = found.threads()
    with door.out.progress("looking", sum(len(found.checkpoints(thread)) for thread in threads)) as step:
        return [await asyncio.to_thread(report, found, thread, step) for thread in threads]


async def _adopted(door: Door, found: Foreign) -> list[ThreadAdoption]:
    from everthread.langgraph.adopting import Adoption  # noqa: PLC0415 - an extra

    threads = found.threads()
    async with door.open(create=True) as et:
        adoption = Adoption(et, found, door.owner)
        with door.out.progress("adopting", sum(len(found.checkpoints(thread)) for thread in threads)) as step:
            return [await adoption.adopt(thread, step) for thread in threads]


async def _pruned(door: Door, found: Foreign) -> dict[str, Any]:
    """Only what was adopted is pruned: a failure before this leaves the saver as it is."""
    threads = found.threads()
    before = sum(found.size_bytes(thread)[0] for thread in threads)
    kept = [thread for thread in threads if not await asyncio.to_thread(found.prune, thread)]
    await asyncio.to_thread(found.shrink)
    after = sum(found.size_bytes(thread)[0] for thread in threads)
    return {"freed_bytes": before - after, "not_pruned": kept}


def _tell_reports(door: Door, reports: Sequence[ThreadReport]) -> None:
    if door.out.json:
        door.out.document({"threads": [asdict(one) for one in reports]})
        return
    rows = [
        (one.thread_id, one.checkpoints, one.messages, one.lost, size(one.size_bytes), size(one.prunable_bytes))
        for one in reports
    ]
    door.out.table((("thread"), ">checkpoints", ">messages", ">lost from its state", ">size", ">a prune frees"), rows)
    total = sum(one.size_bytes for one in reports)
    freed = sum(one.prunable_bytes for one in reports)
    door.out.text(
        f"{len(reports)} threads, {sum(one.messages for one in reports)} messages, of which "
        f"{sum(one.lost for one in reports)} are no longer in the newest states; "
        f"{size(total)}, a prune would free {size(freed)}"
    )


def _tell_adoptions(door: Door, adoptions: Sequence[ThreadAdoption], pruned: dict[str, Any] | None) -> None:
    if door.out.json:
        door.out.document({"threads": [asdict(one) for one in adoptions], "pruned": pruned})
        return
    door.out.table(
        ("thread", ">messages", ">new entries"), [(one.thread_id, one.messages, one.entries) for one in adoptions]
    )
    door.out.text(f"{len(adoptions)} threads adopted, {sum(one.entries for one in adoptions)} new entries in the log")
    if pruned is not None:
        door.out.text(f"pruned: {size(pruned['freed_bytes'])} freed")
        for thread in pruned["not_pruned"]:
            door.out.note(f"not pruned: {thread} has checkpoints of a format that does not tell what they need")
