"""What is not to be trusted: where a message went (spread), and taking it out of every view (quarantine)."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from everthread.cli.app import app, command
from everthread.cli.conversations import MessageArgument, message_id_of
from everthread.cli.invocation import Invocation
from everthread.cli.options import ConversationArgument
from everthread.imports.find import find_conversation
from everthread.recall.provenance import Spread


@command(app)
async def spread(cli: Invocation, conversation: ConversationArgument, message: MessageArgument) -> None:
    """List every summary, memory and request to a model that a message reached."""
    async with cli.open() as et:
        found = await find_conversation(et, cli.owner, conversation)
        reached = await found.spread(await message_id_of(et, found, message))
    _show(cli, reached)


@command(app)
async def quarantine(
    cli: Invocation,
    conversation: ConversationArgument,
    message: MessageArgument,
    undo: Annotated[bool, typer.Option("--undo", help="Show it again, as it was.")] = False,
) -> None:
    """Take a message out of every view at once, with the summaries and memories it is in. --undo brings it back."""
    async with cli.open() as et:
        found = await find_conversation(et, cli.owner, conversation)
        id = await message_id_of(et, found, message)
        if undo:
            await found.release(id)
        reached = await found.spread(id) if undo else await found.quarantine(id)
    if not cli.out.json:
        cli.out.text(f"{'released' if undo else 'quarantined'} {id}; it had reached:")
    _show(cli, reached)


def _show(cli: Invocation, reached: Spread) -> None:
    if cli.out.json:
        cli.out.document(as_json(reached))
        return
    rows = [
        *(("summary", reached.conversation_id, id, "") for id in reached.summaries),
        *(("memory", memory.conversation_id or "", memory.id, memory.text) for memory in reached.memories),
        *(("request", conversation, id, "") for conversation, id in reached.requests),
    ]
    cli.out.table(("what", "conversation", "id", "text"), rows)


def as_json(reached: Spread) -> dict[str, Any]:
    """Where a message went, for programs."""
    return {
        "conversation_id": reached.conversation_id,
        "seq": reached.seq,
        "summaries": reached.summaries,
        "memories": [memory.id for memory in reached.memories],
        "requests": [{"conversation_id": conversation, "id": id} for conversation, id in reached.requests],
    }
