"""What is remembered about a user: memories ls, add, confirm, forget, erase, search."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from everthread.cli.app import app, command
from everthread.cli.erase import print_report
from everthread.cli.invocation import Invocation
from everthread.cli.options import YesOption, confirm
from everthread.cli.output import format_time
from everthread.core.nouns import MAX_PAGE
from everthread.core.trust import Trust

if TYPE_CHECKING:
    from everthread.core.memories import Memory
    from everthread.core.nouns import EraseReport

memories = typer.Typer(no_args_is_help=True, help="What is remembered about a user.")
app.add_typer(memories, name="memories")


InConversation = Annotated[
    str | None, typer.Option("--conversation", metavar="ID", help="Only memories of this conversation.")
]


@command(memories, "ls")
async def list_memories(
    cli: Invocation,
    conversation: InConversation = None,
    pinned: Annotated[bool, typer.Option("--pinned", help="Only pinned ones, which every context shows.")] = False,
    past: Annotated[bool, typer.Option("--past", help="Include superseded and forgotten ones.")] = False,
    habits: Annotated[bool, typer.Option("--habits", help="List the most used tools and skills instead.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=MAX_PAGE, help="The maximum number.")] = 100,
) -> None:
    """List what is remembered, newest first."""
    if habits:
        await _habits(cli, limit)
        return
    async with cli.open() as et:
        page = await et.memories.list(
            cli.owner, conversation=conversation, pinned=pinned, include_past=past, limit=limit
        )
    _show(cli, page.items)
    if page.next_cursor is not None:
        cli.out.note(f"the newest {limit}; --limit shows more")


async def _habits(cli: Invocation, limit: int) -> None:
    async with cli.open() as et:
        found = await et.memories.habits(cli.owner, limit=limit)
    if cli.out.json:
        for habit in found:
            cli.out.document(habit)
    else:
        rows = [(one.kind, one.name, one.uses, one.conversations, format_time(one.last_used_at)) for one in found]
        cli.out.table(("kind", "name", ">uses", ">conversations", "last used"), rows)


@command(memories, "add")
async def add_memory(
    cli: Invocation,
    words: Annotated[list[str], typer.Argument(metavar="WORDS…", help="What to remember.")],
    kind: Annotated[str, typer.Option(help="fact, preference, profile or instruction.")] = "fact",
    subject: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="What it is about; a newer memory of the same subject replaces it."),
    ] = None,
    conversation: Annotated[
        str | None, typer.Option("--conversation", metavar="ID", help="Remember it for this conversation only.")
    ] = None,
    pin: Annotated[bool, typer.Option("--pin", help="Show it in every context.")] = False,
) -> None:
    """Remember something."""
    async with cli.open(create=conversation is None) as et:
        made = await et.memories.add(
            cli.owner,
            " ".join(words),
            kind=kind,
            scope="user" if conversation is None else "conversation",
            conversation=conversation,
            subject=subject,
            pinned=pin or None,
        )
    if cli.out.json:
        cli.out.document(as_json(made))
    else:
        past = f", replacing {made.supersedes}" if made.supersedes else ""
        cli.out.text(f"remembered as {made.id}{past}")


@command(memories, "confirm")
async def confirm_memory(
    cli: Invocation, memory: Annotated[str, typer.Argument(metavar="MEMORY", help="The memory's id.")]
) -> None:
    """Confirm what an agent noted, in words that the user has not said, after reading files or tools."""
    async with cli.open() as et:
        confirmed = await et.memories.confirm(cli.owner, memory)
    if cli.out.json:
        cli.out.document(as_json(confirmed))
    else:
        cli.out.text(f"confirmed as {confirmed.id}")


@command(memories, "forget")
async def forget_memory(
    cli: Invocation,
    memory: Annotated[str, typer.Argument(metavar="MEMORY", help="The memory's id.")],
    undo: Annotated[bool, typer.Option("--undo", help="Restore it.")] = False,
) -> None:
    """Remove a memory from searches and contexts; its text is kept until it is erased."""
    async with cli.open() as et:
        changed = await (et.memories.restore if undo else et.memories.forget)(cli.owner, memory)
    if cli.out.json:
        cli.out.document(as_json(changed))
    else:
        cli.out.text(f"{changed.id} is {changed.state}")


@command(memories, "erase")
def erase_memory(
    cli: Invocation,
    memory: Annotated[str, typer.Argument(metavar="MEMORY", help="The memory's id.")],
    yes: YesOption = False,
) -> None:
    """Destroy a memory for good, including its search index and vector."""
    confirm(f"Erase the memory {memory!r} of the owner {cli.owner!r}?", yes)
    print_report(cli, asyncio.run(_erase(cli, memory)))


async def _erase(cli: Invocation, memory: str) -> EraseReport:
    async with cli.open() as et:
        return await et.memories.erase(cli.owner, memory)


@command(memories, "search")
async def search_memories(
    cli: Invocation,
    words: Annotated[list[str], typer.Argument(metavar="WORDS…", help="Words to search for, in any language.")],
    conversation: InConversation = None,
    limit: Annotated[int, typer.Option(min=1, max=MAX_PAGE, help="The maximum number.")] = 20,
) -> None:
    """Search memories by words, best match first."""
    async with cli.open() as et:
        hits = await et.memories.search(cli.owner, " ".join(words), conversation=conversation, limit=limit)
    _show(cli, [hit.memory for hit in hits])


def _show(cli: Invocation, found: Sequence[Memory]) -> None:
    if cli.out.json:
        for memory in found:
            cli.out.document(as_json(memory))
        return
    rows = [(one.id, one.kind, _state(one), one.text, _from(one), format_time(one.created_at)) for one in found]
    cli.out.table(("id", "kind", "?", "text", "from", "?noted"), rows)


def _state(memory: Memory) -> str:
    held = "" if memory.conversation_id is None else f"{memory.scope} {memory.conversation_id}"
    doubt = "unconfirmed" if memory.trust is Trust.DATA else ""
    pinned = "pinned" if memory.is_pinned else ""
    return " ".join(filter(None, [pinned, doubt, "" if memory.is_live else memory.state, held]))


def _from(memory: Memory) -> str:
    if memory.source is None:
        return ""
    return f"{memory.source.conversation} #{memory.source.seq}" if memory.source.seq else memory.source.conversation


def as_json(memory: Memory) -> dict[str, Any]:
    """A memory for programs."""
    source = memory.source
    return {
        "id": memory.id,
        "owner": memory.owner,
        "text": memory.text,
        "kind": memory.kind,
        "scope": memory.scope,
        "conversation_id": memory.conversation_id,
        "subject": memory.subject,
        "source": None if source is None else {"conversation_id": source.conversation, "seq": source.seq or None},
        "origin": memory.origin,
        "trust": memory.trust,
        "confidence": memory.confidence,
        "is_pinned": memory.is_pinned,
        "state": memory.state,
        "supersedes": memory.supersedes,
        "superseded_by": memory.superseded_by,
        "tokens": memory.tokens,
        "created_at": memory.created_at,
        "updated_at": memory.updated_at,
    }
