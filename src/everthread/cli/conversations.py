"""Read and write conversations: ls, show, search, append, fork, copy, pin, delete."""

from __future__ import annotations

import asyncio
import json
import sys
from collections import deque
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from everthread.cli.app import app, command
from everthread.cli.invocation import Invocation
from everthread.cli.options import BranchOption, ConversationArgument, SecretsOption, branch_name
from everthread.cli.output import Styled, counted, format_time
from everthread.core import payloads
from everthread.core.compactions import FRAMEWORK, Compaction
from everthread.core.errors import Invalid, NotFound
from everthread.core.ids import new_id
from everthread.core.nouns import MAX_PAGE, Branch, Message, Receipt, Ref
from everthread.imports.find import find_conversation
from everthread.text.printable import one_line, printable
from everthread.text.secrets import redact_secrets

if TYPE_CHECKING:
    from everthread.conversation import Conversation
    from everthread.instance import Everthread

_NAMED_BRANCHES = 10
FOLDED_LINES = 8
FOLDED_CHARACTERS = 700
_THOUGHTS = ("thinking", "redacted_thinking", "reasoning")


@command(app)
async def ls(
    cli: Invocation,
    limit: Annotated[int, typer.Option(min=1, help="The maximum number.")] = 50,
    deleted: Annotated[bool, typer.Option("--deleted", help="Include deleted ones.")] = False,
    parent: Annotated[str | None, typer.Option(metavar="ID", help="Only children of this conversation.")] = None,
) -> None:
    """List conversations, those in which something was said last first."""
    async with cli.open() as et:
        shown = [one async for one in _list(et, cli.owner, limit, deleted, parent)]
    if cli.out.json:
        for conversation in shown:
            cli.out.document(_row(conversation))
    else:
        cli.out.table(
            ("^id", "~title", ">messages", "?last said", ""),
            [(c.id, c.title or "", c.info.message_count, format_time(c.info.last_said_at), _state(c)) for c in shown],
        )
    if len(shown) == limit:
        cli.out.note(f"the newest {limit}; --limit shows more")


async def _list(
    et: Everthread, owner: str, limit: int, deleted: bool, parent: str | None
) -> AsyncIterator[Conversation]:
    cursor = None
    while limit > 0:
        page = await et.conversations.list(
            owner, limit=min(limit, MAX_PAGE), cursor=cursor, include_deleted=deleted, parent_id=parent, order="said"
        )
        for conversation in page.items:
            yield conversation
        limit -= len(page.items)
        cursor = page.next_cursor
        if cursor is None:
            return


def _state(conversation: Conversation) -> str:
    if conversation.is_deleted:
        return "deleted"
    return "off the record" if conversation.off_record else "" if conversation.is_active else "not active"


def _row(conversation: Conversation) -> dict[str, Any]:
    info = conversation.info
    return {
        "owner": info.owner,
        "id": info.id,
        "parent_id": info.parent_id,
        "title": info.title,
        "metadata": info.metadata,
        "is_active": info.is_active,
        "is_deleted": conversation.is_deleted,
        "off_record": info.off_record,
        "entry_count": info.entry_count,
        "message_count": info.message_count,
        "last_said_at": info.last_said_at,
        "created_at": info.created_at,
        "updated_at": info.updated_at,
    }


@command(app)
async def show(
    cli: Invocation,
    conversation: ConversationArgument,
    full: Annotated[bool, typer.Option("--full", help="Do not shorten long messages.")] = False,
    tail: Annotated[int | None, typer.Option(min=0, metavar="N", help="Only the latest N messages.")] = None,
    after: Annotated[int, typer.Option(min=0, metavar="SEQ", help="Only messages after this seq.")] = 0,
    limit: Annotated[int | None, typer.Option(min=0, metavar="N", help="The maximum number.")] = None,
    branch: BranchOption = None,
    revisions: Annotated[bool, typer.Option("--revisions", help="Include older revisions.")] = False,
    deleted: Annotated[bool, typer.Option("--deleted", help="Include deleted messages.")] = False,
    level: Annotated[
        int | None,
        typer.Option(min=1, metavar="L", help="Show summaries of this level instead of the messages they cover."),
    ] = None,
) -> None:
    """Show the messages of a conversation. They are streamed, so its length does not matter."""
    if tail is not None and (after or limit is not None or revisions):
        raise typer.BadParameter("--tail cannot be combined with --after, --limit or --revisions")
    if level is not None and (tail is not None or after):
        raise typer.BadParameter("--level starts at the beginning: it cannot be combined with --tail or --after")
    from everthread.history.framework_summaries import of_frameworks  # noqa: PLC0415 - startup

    async with cli.open() as et:
        found = await find_conversation(et, cli.owner, conversation)
        if level is not None:
            after = _print_summaries(cli, await found.summaries(branch=branch_name(branch), level=level))
        if tail is not None:
            messages = _each(await found.tail(tail, branch=branch_name(branch), include_deleted=deleted))
        else:
            messages = found.messages(
                after=after, limit=limit, branch=branch_name(branch), revisions=revisions, include_deleted=deleted
            )
        if cli.out.json:
            async for message in messages:
                cli.out.document(_as_json(message))
            return
        theirs = await of_frameworks(et.store.log, Ref(found.owner, found.id))
        async for pieces in _with_their_summaries(messages, theirs, full):
            cli.out.pieces(pieces)
        if branch is None:
            others = [one async for one in found.branches() if not one.is_active and one.leaf_seq > one.fork_seq]
            _note_branches(cli, others)


async def _with_their_summaries(
    messages: AsyncIterator[Message], theirs: list[Compaction], full: bool
) -> AsyncIterator[Iterator[Styled]]:
    """Each message, and behind the last one that it covers a summary that an agent or a framework made for itself."""
    shown, left = 0, deque(theirs)
    async for message in messages:
        while left and left[0].last_seq < message.seq:
            one = left.popleft()
            if 0 < shown <= one.last_seq:
                yield _summary_as_text(one)
        shown = message.seq
        yield _as_text(message, full)
    for one in left:
        if one.last_seq == shown:
            yield _summary_as_text(one)


def _note_branches(cli: Invocation, others: Sequence[Branch]) -> None:
    """Say that there is more than what was shown."""
    if others:
        named = ", ".join(f"{one.id} (to seq {one.leaf_seq})" for one in others[:_NAMED_BRANCHES])
        more = f" and {len(others) - _NAMED_BRANCHES} more" if len(others) > _NAMED_BRANCHES else ""
        cli.out.note(f"not shown: what is said on other branches: {named}{more}; --branch NAME shows one")


def _print_summaries(cli: Invocation, summaries: Sequence[Compaction]) -> int:
    """Print summaries; returns the seq of the last message they cover."""
    for one in summaries:
        if cli.out.json:
            cli.out.document(
                {
                    "kind": "summary",
                    "compaction_id": one.id,
                    "level": one.level,
                    "first_seq": one.first_seq,
                    "last_seq": one.last_seq,
                    "text": one.summary,
                    "tokens": one.tokens_after,
                }
            )
        else:
            cli.out.pieces(_summary_as_text(one))
    return summaries[-1].last_seq if summaries else 0


def _summary_as_text(one: Compaction) -> Iterator[Styled]:
    yield f"{one.first_seq:>6} ", "dim"
    by, level = (f" by {one.strategy}", "") if one.trigger == FRAMEWORK else ("", f"  level {one.level}")
    yield f"to {one.last_seq}, summarised{by}", "bold cyan"
    yield f"{level}  {one.id}\n", "dim"
    yield from ((f"       {line}\n", "") for line in printable(one.summary).split("\n"))


async def _each(messages: list[Message]) -> AsyncIterator[Message]:
    for message in messages:
        yield message


def _as_json(message: Message) -> dict[str, Any]:
    return {
        "seq": message.seq,
        "id": message.id,
        "role": message.role,
        "name": message.name,
        "text": message.text,
        "tokens": message.tokens,
        "created_at": message.created_at,
        "said_at": message.said_at,
        "updated_at": message.updated_at,
        "parent_seq": message.parent_seq,
        "entry_seq": message.entry_seq,
        "revision": message.revision,
        "is_deleted": message.is_deleted,
        "is_pinned": message.is_pinned,
        "is_quarantined": message.is_quarantined,
        "is_removed": message.is_removed,
        "origin": message.origin,
        "has_secret": message.has_secret,
        "payload": message.payload,
    }


def _as_text(message: Message, full: bool) -> Iterator[Styled]:

    yield f"{message.seq:>6} ", "dim"
    yield one_line(message.role), "bold"
    if message.name is not None:
        yield f" ({one_line(message.name)})", ""
    # When an imported message was written here says nothing about when it was said.
    at = message.said_at or (None if message.origin == "import" else message.created_at)
    yield f"  {format_time(at) or '–'}  {one_line(message.id)}", "dim"
    for mark in _flags(message):
        yield f"  [{mark}]", "yellow"
    yield "\n", ""
    from everthread.context.content_blocks import media_labels  # noqa: PLC0415 - startup

    labels = media_labels(payloads.fields(message.payload))
    text = printable("\n".join((payloads.searchable(message.payload), *labels))).lstrip("\n")
    if not text and _is_thought(message):
        text = "[thinking]"
    yield from ((f"       {line}\n", "") for line in (text if full else folded(text)).split("\n"))


def _is_thought(message: Message) -> bool:
    content = message.payload.get("content")
    blocks = content if isinstance(content, list) else ()
    return any(isinstance(one, dict) and one.get("type") in _THOUGHTS for one in blocks)


def _flags(message: Message) -> Iterator[str]:
    if message.revision > 1:
        yield f"revision {message.revision}"
    if message.is_pinned:
        yield "pinned"
    if message.is_deleted:
        yield "deleted"
    if message.is_quarantined:
        yield "quarantined"
    if message.is_removed:
        yield "removed from its file" if message.origin == "import" else "removed by its framework"
    if message.has_secret:
        yield "holds a secret"


def folded(text: str) -> str:
    """The beginning of a long text, and how much follows."""
    shown = "\n".join(text[:FOLDED_CHARACTERS].split("\n")[:FOLDED_LINES])
    left = len(text) - len(shown)
    return text if left <= 0 else f"{shown}\n… {left:,} more characters (--full shows them)"


@command(app)
async def search(
    cli: Invocation,
    words: Annotated[list[str], typer.Argument(metavar="WORDS…", help="Words to search for, in any language.")],
    conversation: Annotated[str | None, typer.Option(metavar="ID", help="Only in this conversation.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=MAX_PAGE, help="The maximum number.")] = 20,
    meaning: Annotated[
        bool, typer.Option("--meaning", help="Also find messages that say the same in other words.")
    ] = False,
    show_secrets: SecretsOption = False,
) -> None:
    """Search messages by words, best match first."""
    from everthread.instance import found_messages  # noqa: PLC0415 - startup

    text = " ".join(words)
    if not text.strip():
        raise typer.BadParameter("give words to search for, such as: everthread search passport")
    async with cli.open() as et:
        if conversation is not None:
            conversation = (await find_conversation(et, cli.owner, conversation)).id
        hits = await et.search(
            text, owner=cli.owner, conversation=conversation, limit=limit, meaning=meaning, show_secrets=show_secrets
        )
        found = [
            {
                **asdict(hit),
                "conversation_title": one.title if show_secrets else redact_secrets(one.title or "") or None,
                "role": message.role,
                "name": message.name,
                "said_at": message.said_at or message.created_at,
            }
            for hit, one, message in await found_messages(et, cli.owner, hits)
        ]
    if cli.out.json:
        cli.out.document(
            {
                "hits": found,
                "truncated": hits.truncated,
                "by_meaning": hits.by_meaning,
                "why_words_alone": hits.why_words_alone,
                "is_behind": hits.is_behind,
            }
        )
        return
    cli.out.table(
        ("^conversation", "~title", ">seq", "role", "?said", "*text"),
        [
            (hit["conversation_id"], hit["conversation_title"] or "", hit["seq"], hit["role"],
             format_time(hit["said_at"]), hit["snippet"])
            for hit in found
        ],
    )  # fmt: skip
    if hits and all(hit.match == "weak" for hit in hits):
        cli.out.note("only weak matches: no message has all of what you search for")
    if hits.truncated:
        cli.out.note("many messages match and only the newest were ranked; add words to narrow the search")
    if hits.why_words_alone:
        cli.out.note(f"searched by words only: {hits.why_words_alone}")
    elif hits.is_behind:
        cli.out.note("some messages have no vectors yet and are found by words only; to make them: everthread reindex")


MessageArgument = Annotated[str, typer.Argument(metavar="MESSAGE", help="The message's id, or its seq.")]


@command(app)
def append(
    cli: Invocation,
    conversation: Annotated[
        str | None,
        typer.Argument(metavar="[CONVERSATION]", help="The id; created if new. Without it, a new conversation."),
    ] = None,
    title: Annotated[str | None, typer.Option(help="The title of a new conversation.")] = None,
    parent: Annotated[str | None, typer.Option(metavar="ID", help="The parent of a new conversation.")] = None,
    branch: BranchOption = None,
    key: Annotated[str | None, typer.Option(help="An idempotency key: a retry with the same key adds nothing.")] = None,
    expected_head: Annotated[
        int | None, typer.Option(min=0, metavar="SEQ", help="The seq the branch must end at; 0 if empty.")
    ] = None,
) -> None:
    """Append messages from stdin, all or none: a JSON array, one JSON object, or one object per line."""
    if sys.stdin.isatty():
        cli.out.note("reading JSON messages from the terminal; end with Ctrl-D")
    # Read before the event loop runs: inside it, Ctrl-C would wait for the end of the input.
    messages = _messages(sys.stdin.buffer.read())
    id = new_id() if conversation is None else conversation
    new = {"title": title, "parent_id": parent}
    how = {"idempotency_key": key, "expected_head": expected_head, "branch": branch_name(branch)}
    receipts = asyncio.run(_append(cli, id, new, messages, how))
    if cli.out.json:
        cli.out.document({"conversation_id": id, "receipts": [receipt._asdict() for receipt in receipts]})
    else:
        count = sum(receipt.new for receipt in receipts)
        cli.out.text(f"{id}: {count:,} new of {counted(len(receipts), 'message')}")


async def _append(
    cli: Invocation, id: str, new: dict[str, Any], messages: list[Any], how: dict[str, Any]
) -> list[Receipt]:
    async with cli.open(create=True) as et:
        found = await et.conversations.ensure(id, cli.owner, **new)
        return await found.append(messages, **how)


def _messages(given: bytes) -> list[Any]:
    """An object alone or on a line is kept byte for byte; one in an array as it decodes."""
    try:
        value = json.loads(given)
    except (ValueError, RecursionError):
        messages: list[Any] = [line for line in given.split(b"\n") if line.strip()]
    else:
        messages = value if isinstance(value, list) else [given.strip()]
    if not messages:
        raise Invalid("no message on stdin; nothing was stored")
    return messages


@command(app)
async def fork(
    cli: Invocation,
    conversation: ConversationArgument,
    seq: Annotated[int, typer.Argument(min=0, metavar="SEQ", help="The last message to share; 0 for none.")],
    activate: Annotated[bool, typer.Option("--activate", help="Make it the active branch.")] = False,
) -> None:
    """Create a branch that shares everything up to a message."""
    async with cli.open() as et:
        found = await find_conversation(et, cli.owner, conversation)
        branch = await found.fork(seq, activate=activate)
    if cli.out.json:
        cli.out.document(asdict(branch))
    else:
        cli.out.text(f"branch {branch.id}, from seq {branch.fork_seq}{', active' if branch.is_active else ''}")


@command(app)
async def copy(
    cli: Invocation,
    conversation: ConversationArgument,
    title: Annotated[str | None, typer.Option(help="The title of the copy.")] = None,
) -> None:
    """Copy a conversation, so that it goes on here while the original stays as it is."""
    async with cli.open() as et:
        found = await find_conversation(et, cli.owner, conversation)
        copied = await found.copy(title=title)
    if cli.out.json:
        cli.out.document(_row(copied))
    else:
        cli.out.text(f"{copied.id}: a copy of {found.id} with {counted(copied.info.message_count, 'message')}")


@command(app)
async def pin(
    cli: Invocation,
    conversation: ConversationArgument,
    message: MessageArgument,
    remove: Annotated[bool, typer.Option("--remove", help="Unpin it.")] = False,
) -> None:
    """Pin a message: it stays in the model's view whatever is compacted."""
    async with cli.open() as et:
        found = await find_conversation(et, cli.owner, conversation)
        id = await message_id_of(et, found, message)
        await (found.unpin(id) if remove else found.pin(id))
    _print_mark(cli, found.id, id, "is_pinned", not remove, "pinned" if not remove else "unpinned")


@command(app)
async def delete(
    cli: Invocation,
    conversation: ConversationArgument,
    message: Annotated[str | None, typer.Argument(metavar="[MESSAGE]", help="Only this message, by id or seq.")] = None,
    undo: Annotated[bool, typer.Option("--undo", help="Restore it.")] = False,
) -> None:
    """Hide a conversation or a message. Nothing is removed: --undo brings it back."""
    async with cli.open() as et:
        found = await find_conversation(et, cli.owner, conversation)
        id = None if message is None else await message_id_of(et, found, message)
        if id is None:
            await (found.restore() if undo else found.delete())
        else:
            await (found.restore_message(id) if undo else found.delete_message(id))
    _print_mark(cli, found.id, id, "is_deleted", not undo, "deleted" if not undo else "restored")


async def message_id_of(et: Everthread, conversation: Conversation, given: str) -> str:
    """The id of a message named by its id or, if no message has that id, by its seq."""
    try:
        return (await conversation.message(given)).id
    except NotFound:
        if not given.isdecimal():
            raise
    ref = Ref(conversation.owner, conversation.id)
    for entry in await et.store.log.find(ref, seqs=[int(given)]):
        return entry.id
    raise NotFound(f"no message with the id or seq {given!r} in conversation {conversation.id!r}")


def _print_mark(cli: Invocation, conversation: str, message: str | None, name: str, value: bool, word: str) -> None:
    if cli.out.json:
        cli.out.document({"conversation_id": conversation, "message_id": message, name: value})
    else:
        cli.out.text(f"{word} {message or conversation}")
