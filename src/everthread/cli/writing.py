"""Commands that write to a conversation: append, fork, pin, delete."""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import asdict
from typing import Annotated, Any

import typer

from everthread.cli.app import app, command
from everthread.cli.door import Door
from everthread.cli.reading import BranchOption, ConversationArgument, branch_name
from everthread.conversation import Conversation
from everthread.core.errors import Invalid, NotFound
from everthread.core.ids import new_id
from everthread.core.nouns import Receipt, Ref
from everthread.instance import Everthread

MessageArgument = Annotated[str, typer.Argument(metavar="MESSAGE", help="The message's id, or its seq.")]


@command(app)
def append(
    door: Door,
    conversation: Annotated[
        str | None, typer.Argument(metavar="[CONVERSATION]", help="Its id; made if it is new. None: a new one.")
    ] = None,
    title: Annotated[str | None, typer.Option(help="The title of a new conversation.")] = None,
    parent: Annotated[str | None, typer.Option(metavar="ID", help="The parent of a new conversation.")] = None,
    branch: BranchOption = None,
    key: Annotated[str | None, typer.Option(help="An idempotency key: a retry with it adds nothing.")] = None,
    expected_head: Annotated[
        int | None, typer.Option(min=0, metavar="SEQ", help="The seq the branch must end at; 0: still empty.")
    ] = None,
) -> None:
    """Append messages from stdin, all or none. They are a JSON array, one JSON object, or one object a line."""
    if sys.stdin.isatty():
        door.out.note("reading messages as JSON; end them with Ctrl-D")
    # Before the event loop runs, because there Ctrl-C would wait for the end of the input.
    messages = _messages(sys.stdin.buffer.read())
    id = new_id() if conversation is None else conversation
    new = {"title": title, "parent_id": parent}
    how = {"idempotency_key": key, "expected_head": expected_head, "branch": branch_name(branch)}
    receipts = asyncio.run(_append(door, id, new, messages, how))
    if door.out.json:
        door.out.document({"conversation_id": id, "receipts": [receipt._asdict() for receipt in receipts]})
    else:
        count = sum(receipt.new for receipt in receipts)
        door.out.text(f"{id}: {count} new of {len(receipts)} messages")


async def _append(door: Door, id: str, new: dict[str, Any], messages: list[Any], how: dict[str, Any]) -> list[Receipt]:
    async with door.open(create=True) as et:
        found = await et.conversations.ensure(id, door.owner, **new)
        return await found.append(messages, **how)


def _messages(given: bytes) -> list[Any]:
    """What came in as a line or alone is kept in its very bytes; what came in an array, as it decodes."""
    try:
        value = json.loads(given)
    except (ValueError, RecursionError):
        messages: list[Any] = [line for line in given.split(b"\n") if line.strip()]
    else:
        messages = value if isinstance(value, list) else [given.strip()]
    if not messages:
        raise Invalid("there is no message on stdin; nothing was stored")
    return messages


@command(app)
async def fork(
    door: Door,
    conversation: ConversationArgument,
    seq: Annotated[int, typer.Argument(min=0, metavar="SEQ", help="The last message to share; 0: none.")],
    activate: Annotated[
        bool, typer.Option("--activate", help="Make it the branch that is shown and extended.")
    ] = False,
) -> None:
    """Make a branch that shares everything up to a message."""
    async with door.open() as et:
        found = await et.conversations.get(conversation, door.owner)
        branch = await found.fork(seq, activate=activate)
    if door.out.json:
        door.out.document(asdict(branch))
    else:
        door.out.text(f"branch {branch.id}, from seq {branch.fork_seq}{', active' if branch.is_active else ''}")


@command(app)
async def pin(
    door: Door,
    conversation: ConversationArgument,
    message: MessageArgument,
    remove: Annotated[bool, typer.Option("--remove", help="Unpin it.")] = False,
) -> None:
    """Keep a message in the model's view, whatever is compacted."""
    async with door.open() as et:
        found = await et.conversations.get(conversation, door.owner)
        id = await _message_id(et, found, message)
        await (found.unpin(id) if remove else found.pin(id))
    _tell_mark(door, conversation, id, "is_pinned", not remove, "pinned" if not remove else "unpinned")


@command(app)
async def delete(
    door: Door,
    conversation: ConversationArgument,
    message: Annotated[str | None, typer.Argument(metavar="[MESSAGE]", help="One message of it, by id or seq.")] = None,
    undo: Annotated[bool, typer.Option("--undo", help="Bring it back.")] = False,
) -> None:
    """Hide a conversation or a message. Nothing is removed: --undo brings it back."""
    async with door.open() as et:
        found = await et.conversations.get(conversation, door.owner)
        id = None if message is None else await _message_id(et, found, message)
        if id is None:
            await (found.restore() if undo else found.delete())
        else:
            await (found.restore_message(id) if undo else found.delete_message(id))
    _tell_mark(door, conversation, id, "is_deleted", not undo, "deleted" if not undo else "restored")


async def _message_id(et: Everthread, conversation: Conversation, given: str) -> str:
    """The id of a message given by its id or, where no message has that id, by its seq."""
    try:
        return (await conversation.message(given)).id
    except NotFound:
        if not given.isdecimal():
            raise
    ref = Ref(conversation.owner, conversation.id)
    for entry in await et.store.find(ref, seqs=[int(given)]):
        return entry.id
    raise NotFound(f"no message with the id or seq {given!r} in conversation {conversation.id!r}")


def _tell_mark(door: Door, conversation: str, message: str | None, name: str, value: bool, word: str) -> None:
    if door.out.json:
        door.out.document({"conversation_id": conversation, "message_id": message, name: value})
    else:
        door.out.text(f"{word} {message or conversation}")
