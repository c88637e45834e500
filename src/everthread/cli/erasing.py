"""Commands that erase for good: erase owner | conversation | message, and the list of erasures."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import asdict
from typing import Annotated

import typer

from everthread.cli.app import app, command
from everthread.cli.door import Door
from everthread.cli.errors import ExitCode
from everthread.cli.reading import ConversationArgument
from everthread.core.errors import Invalid
from everthread.core.nouns import EraseReport

YesOption = Annotated[bool, typer.Option("--yes", help="Do not ask.")]

erase = typer.Typer(no_args_is_help=True, help="Destroy text for good. It cannot be undone.")
app.add_typer(erase, name="erase")


@command(erase, "owner")
def erase_owner(
    door: Door, name: Annotated[str, typer.Argument(metavar="NAME", help="The owner.")], yes: YesOption = False
) -> None:
    """Erase every conversation of an owner."""
    confirm(f"Erase every conversation of the owner {name!r}?", yes)
    tell(door, asyncio.run(_erase(door, name, None, None)))


@command(erase, "conversation")
def erase_conversation(door: Door, conversation: ConversationArgument, yes: YesOption = False) -> None:
    """Erase one conversation."""
    confirm(f"Erase the conversation {conversation!r} of the owner {door.owner!r}?", yes)
    tell(door, asyncio.run(_erase(door, door.owner, conversation, None)))


@command(erase, "message")
def erase_message(
    door: Door,
    conversation: ConversationArgument,
    message: Annotated[str, typer.Argument(metavar="MESSAGE", help="The message's id.")],
    yes: YesOption = False,
) -> None:
    """Erase one message in all its revisions."""
    confirm(f"Erase the message {message!r} of the conversation {conversation!r}?", yes)
    tell(door, asyncio.run(_erase(door, door.owner, conversation, message)))


def confirm(question: str, yes: bool) -> None:
    """Asked before the event loop runs, so that Ctrl-C ends it."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise Invalid("nothing was erased: there is no terminal to ask on, so say --yes")
    print(f"{question} It cannot be undone. [y/N]", end=" ", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        print("nothing was erased", file=sys.stderr)
        raise typer.Exit(ExitCode.ERROR)


async def _erase(door: Door, owner: str, conversation: str | None, message: str | None) -> EraseReport:
    async with door.open() as et:
        return await et.erase(owner=owner, conversation=conversation, message=message)


def tell(door: Door, report: EraseReport) -> None:
    """Say what an erase reached, and what it cannot."""
    if door.out.json:
        door.out.document(asdict(report))
        return
    if report.memory_id is None:
        door.out.text(f"erased {report.entries} entries in {report.conversations} whole conversations")
    else:
        door.out.text(f"erased the memory {report.memory_id}")
    door.out.table(("reached", ">rows"), list(report.reached.items()))
    door.out.text("what cannot be reached from here:")
    for place in report.cannot_reach:
        door.out.text(f"- {place}")


@command(app)
async def erasures(door: Door) -> None:
    """Print what was erased, to be kept elsewhere. A line of JSON each, for `restore --erasures`."""
    async with door.open() as et:
        for owner, conversation, message, erased_at in await et.store.erasures():
            row = {"owner": owner, "conversation_id": conversation, "message_id": message, "erased_at": erased_at}
            door.out.document(row)
