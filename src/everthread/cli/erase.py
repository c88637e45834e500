"""Erase for good: erase owner, conversation, message; and erasures, the list of what was erased."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from everthread.cli.app import app, command
from everthread.cli.invocation import Invocation
from everthread.cli.options import ConversationArgument, YesOption, confirm

if TYPE_CHECKING:
    from everthread.core.nouns import EraseReport

erase = typer.Typer(no_args_is_help=True, help="Destroy text for good. It cannot be undone.")
app.add_typer(erase, name="erase")


@command(erase, "owner")
def erase_owner(
    cli: Invocation, name: Annotated[str, typer.Argument(metavar="NAME", help="The owner.")], yes: YesOption = False
) -> None:
    """Erase every conversation of an owner."""
    confirm(f"Erase every conversation of the owner {name!r}?", yes)
    print_report(cli, asyncio.run(_erase(cli, name, None, None)))


@command(erase, "conversation")
def erase_conversation(cli: Invocation, conversation: ConversationArgument, yes: YesOption = False) -> None:
    """Erase one conversation."""
    confirm(f"Erase the conversation {conversation!r} of the owner {cli.owner!r}?", yes)
    print_report(cli, asyncio.run(_erase(cli, cli.owner, conversation, None)))


@command(erase, "message")
def erase_message(
    cli: Invocation,
    conversation: ConversationArgument,
    message: Annotated[str, typer.Argument(metavar="MESSAGE", help="The message's id.")],
    yes: YesOption = False,
) -> None:
    """Erase one message with all its revisions."""
    confirm(f"Erase the message {message!r} of the conversation {conversation!r}?", yes)
    print_report(cli, asyncio.run(_erase(cli, cli.owner, conversation, message)))


async def _erase(cli: Invocation, owner: str, conversation: str | None, message: str | None) -> EraseReport:
    async with cli.open() as et:
        with cli.out.busy("erasing"):
            return await et.erase(owner=owner, conversation=conversation, message=message)


def print_report(cli: Invocation, report: EraseReport) -> None:
    """Print what an erase reached, and what it cannot reach."""
    if cli.out.json:
        cli.out.document(asdict(report))
        return
    if report.memory_id is None:
        cli.out.text(f"erased {report.entries} entries in {report.conversations} whole conversations")
    else:
        cli.out.text(f"erased the memory {report.memory_id}")
    cli.out.table(("reached", ">rows"), list(report.reached.items()))
    cli.out.text("what cannot be reached from here:")
    for place in report.cannot_reach:
        cli.out.text(f"- {place}")


@command(app)
async def erasures(cli: Invocation) -> None:
    """Print what was erased, to be kept elsewhere: one JSON line each, for `restore --erasures`."""
    async with cli.open() as et:
        for owner, conversation, message, erased_at in await et.store.maintenance.erasures():
            row = {"owner": owner, "conversation_id": conversation, "message_id": message, "erased_at": erased_at}
            cli.out.document(row)
