"""Legal holds: hold add, ls, release."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from getpass import getuser
from typing import TYPE_CHECKING, Annotated

import typer

from everthread.cli.app import app, command
from everthread.cli.invocation import Invocation
from everthread.cli.output import format_time

if TYPE_CHECKING:
    from everthread.history.holds import Hold

hold = typer.Typer(no_args_is_help=True, help="Protect data from erasure (legal hold).")
app.add_typer(hold, name="hold")
ByOption = Annotated[str | None, typer.Option("--by", metavar="NAME", help="Who orders the hold; by default you.")]


@command(hold, "add")
async def add_hold(
    cli: Invocation,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why, for those who come after you.")],
    conversation: Annotated[
        str | None, typer.Argument(metavar="CONVERSATION", help="Without it, everything of the owner.")
    ] = None,
    by: ByOption = None,
) -> None:
    """Refuse to erase a conversation, or everything of the owner, until the hold is released."""
    async with cli.open() as et:
        made = await et.holds.add(cli.owner, conversation, reason=reason, by=by or getuser())
    _show(cli, [made])


@command(hold, "ls")
async def list_holds(
    cli: Invocation,
    everything: Annotated[bool, typer.Option("--all", help="Of all owners, released ones too.")] = False,
) -> None:
    """List the holds in force, newest first."""
    async with cli.open() as et:
        found = await et.holds.list(None if everything else cli.owner, include_released=everything)
    _show(cli, found)


@command(hold, "release")
async def release_hold(
    cli: Invocation, id: Annotated[str, typer.Argument(metavar="HOLD", help="The hold's id.")], by: ByOption = None
) -> None:
    """Release a hold. Its record stays, with who released it."""
    async with cli.open() as et:
        released = await et.holds.release(id, by=by or getuser())
    _show(cli, [released])


def _show(cli: Invocation, holds: Sequence[Hold]) -> None:
    if cli.out.json:
        for one in holds:
            cli.out.document(asdict(one))
        return
    rows = [
        (
            one.id,
            one.owner,
            one.conversation_id or "(everything)",
            one.held_by,
            format_time(one.held_at),
            "" if one.released_at is None else f"{one.released_by}, {format_time(one.released_at)}",
            one.reason,
        )
        for one in holds
    ]
    cli.out.table(("hold", "owner", "conversation", "by", "since", "released", "reason"), rows)
