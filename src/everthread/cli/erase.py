"""Erase for good: erase owner, conversation, message; and erasures, the list of what was erased."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from everthread.cli.app import app, command
from everthread.cli.conversations import MessageArgument, message_id_of
from everthread.cli.invocation import Invocation
from everthread.cli.options import YesOption, confirm
from everthread.cli.output import counted
from everthread.core.errors import Erased, EverthreadError, Invalid, NotFound
from everthread.imports.find import find_conversation

if TYPE_CHECKING:
    from everthread.core.nouns import EraseReport
    from everthread.instance import Everthread

WholeIdArgument = Annotated[
    str, typer.Argument(metavar="CONVERSATION", help="The conversation's whole id: what is erased is not guessed.")
]
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
def erase_conversation(cli: Invocation, conversation: WholeIdArgument, yes: YesOption = False) -> None:
    """Erase one conversation."""
    confirm(f"Erase the conversation {conversation!r} of the owner {cli.owner!r}?", yes)
    print_report(cli, asyncio.run(_erase(cli, cli.owner, conversation, None)))


@command(erase, "message")
def erase_message(
    cli: Invocation,
    conversation: WholeIdArgument,
    message: MessageArgument,
    yes: YesOption = False,
) -> None:
    """Erase one message with all its revisions."""
    id = asyncio.run(_message_id(cli, conversation, message))
    named = f"{id!r}" if id == message else f"{message} ({id!r})"
    confirm(f"Erase the message {named} of the conversation {conversation!r}?", yes)
    print_report(cli, asyncio.run(_erase(cli, cli.owner, conversation, id)))


async def _message_id(cli: Invocation, conversation: str, given: str) -> str:
    """The id of a message named by its id or seq; as given where nothing is found, which may be erased to its end."""
    async with cli.open() as et:
        try:
            return await message_id_of(et, await et.conversations.get(conversation, cli.owner), given)
        except (NotFound, Erased):
            return given


async def _erase(cli: Invocation, owner: str, conversation: str | None, message: str | None) -> EraseReport:
    async with cli.open() as et:
        try:
            with cli.out.busy("erasing"):
                return await et.erase(owner=owner, conversation=conversation, message=message)
        except NotFound as problem:
            if conversation is None or message is not None:
                raise
            raise await _with_whole_ids(et, owner, conversation, problem) from problem


async def _with_whole_ids(et: Everthread, owner: str, given: str, problem: NotFound) -> EverthreadError:
    """What to give instead, where only the beginning of an id was given."""
    try:
        begun = (await find_conversation(et, owner, given)).id
    except NotFound:
        return problem
    except Invalid as several:
        return NotFound(f"erase wants a whole id: {several}")
    return NotFound(f"erase wants a whole id, and {given!r} only begins one: {begun}")


def print_report(cli: Invocation, report: EraseReport) -> None:
    """Print what an erase reached, and what it cannot reach."""
    if cli.out.json:
        cli.out.document(asdict(report))
        return
    if report.memory_id is None:
        whole = counted(report.conversations, "whole conversation")
        cli.out.text(f"erased {counted(report.entries, 'entry', 'entries')} in {whole}")
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
