"""Commands that read: ls, show, search, stats."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Annotated, Any

import typer

from everthread.cli.app import app, command
from everthread.cli.door import Door
from everthread.cli.output import Styled, moment, one_line, printable, size
from everthread.conversation import Conversation
from everthread.core import payloads
from everthread.core.compactions import Compaction
from everthread.core.nouns import Message
from everthread.instance import MAX_PAGE, Everthread

FOLDED_LINES = 8
FOLDED_CHARACTERS = 700

ConversationArgument = Annotated[str, typer.Argument(metavar="CONVERSATION", help="The conversation's id.")]
BranchOption = Annotated[
    str | None, typer.Option("--branch", metavar="NAME", help="A branch (main, b1 …) or the seq it ends at.")
]


@command(app)
async def ls(
    door: Door,
    limit: Annotated[int, typer.Option(min=1, help="How many at most.")] = 50,
    deleted: Annotated[bool, typer.Option("--deleted", help="Show deleted ones too.")] = False,
    parent: Annotated[str | None, typer.Option(metavar="ID", help="Only the children of this conversation.")] = None,
) -> None:
    """List conversations, newest first."""
    async with door.open() as et:
        shown = [found async for found in _listed(et, door.owner, limit, deleted, parent)]
    if door.out.json:
        for conversation in shown:
            door.out.document(_row(conversation))
    else:
        door.out.table(
            ("id", "title", ">entries", "updated", ""),
            [(c.id, c.title or "", c.info.entry_count, moment(c.updated_at), _standing(c)) for c in shown],
        )
    if len(shown) == limit:
        door.out.note(f"the newest {limit}; --limit shows more")


async def _listed(
    et: Everthread, owner: str, limit: int, deleted: bool, parent: str | None
) -> AsyncIterator[Conversation]:
    cursor = None
    while limit > 0:
        page = await et.conversations.list(
            owner, limit=min(limit, MAX_PAGE), cursor=cursor, include_deleted=deleted, parent_id=parent
        )
        for conversation in page.items:
            yield conversation
        limit -= len(page.items)
        cursor = page.next_cursor
        if cursor is None:
            return


def _standing(conversation: Conversation) -> str:
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
        "created_at": info.created_at,
        "updated_at": info.updated_at,
    }


@command(app)
async def show(
    door: Door,
    conversation: ConversationArgument,
    full: Annotated[bool, typer.Option("--full", help="Show long messages whole.")] = False,
    tail: Annotated[int | None, typer.Option(min=0, metavar="N", help="Only the newest N messages.")] = None,
    after: Annotated[int, typer.Option(min=0, metavar="SEQ", help="Only what comes after this seq.")] = 0,
    limit: Annotated[int | None, typer.Option(min=0, metavar="N", help="How many at most.")] = None,
    branch: BranchOption = None,
    revisions: Annotated[bool, typer.Option("--revisions", help="Show older revisions too.")] = False,
    deleted: Annotated[bool, typer.Option("--deleted", help="Show deleted messages too.")] = False,
    level: Annotated[
        int | None, typer.Option(min=1, metavar="L", help="Summaries of this level in place of what they stand for.")
    ] = None,
) -> None:
    """Show the messages of a conversation. Any length needs little memory."""
    if tail is not None and (after or limit is not None or revisions):
        raise typer.BadParameter("--tail stands alone: leave out --after, --limit and --revisions")
    if level is not None and (tail is not None or after):
        raise typer.BadParameter("--level tells the history from its beginning: leave out --tail and --after")
    async with door.open() as et:
        found = await et.conversations.get(conversation, door.owner)
        if level is not None:
            after = _tell_summaries(door, await found.summaries(branch=branch_name(branch), level=level))
        if tail is not None:
            messages = _each(await found.tail(tail, branch=branch_name(branch), include_deleted=deleted))
        else:
            messages = found.messages(
                after=after, limit=limit, branch=branch_name(branch), revisions=revisions, include_deleted=deleted
            )
        async for message in messages:
            if door.out.json:
                door.out.document(_as_json(message))
            else:
                door.out.pieces(_as_text(message, full))


def _tell_summaries(door: Door, told: Sequence[Compaction]) -> int:
    """Show them; gives the seq of the last message they stand for."""
    for one in told:
        if door.out.json:
            door.out.document(
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
            door.out.pieces(_summary_as_text(one))
    return told[-1].last_seq if told else 0


def _summary_as_text(one: Compaction) -> Iterator[Styled]:
    yield f"{one.first_seq:>6} ", "dim"
    yield f"to {one.last_seq}, summed up", "bold cyan"
    yield f"  level {one.level}  {one.id}\n", "dim"
    yield from ((f"       {line}\n", "") for line in printable(one.summary).split("\n"))


async def _each(messages: list[Message]) -> AsyncIterator[Message]:
    for message in messages:
        yield message


def branch_name(given: str | None) -> str | int | None:
    """A branch's id, or the seq of a message."""
    return int(given) if given is not None and given.isdecimal() else given


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
        "has_secret": message.has_secret,
        "payload": message.payload,
    }


def _as_text(message: Message, full: bool) -> Iterator[Styled]:
    yield f"{message.seq:>6} ", "dim"
    yield one_line(message.role), "bold"
    if message.name is not None:
        yield f" ({one_line(message.name)})", ""
    yield f"  {moment(message.said_at or message.created_at)}  {one_line(message.id)}", "dim"
    for mark in _marks(message):
        yield f"  [{mark}]", "yellow"
    yield "\n", ""
    text = printable(payloads.searchable(message.payload))
    yield from ((f"       {line}\n", "") for line in (text if full else folded(text)).split("\n"))


def _marks(message: Message) -> Iterator[str]:
    if message.revision > 1:
        yield f"revision {message.revision}"
    if message.is_pinned:
        yield "pinned"
    if message.is_deleted:
        yield "deleted"
    if message.has_secret:
        yield "holds a secret"


def folded(text: str) -> str:
    """The beginning of a long text, and how much is left."""
    shown = "\n".join(text[:FOLDED_CHARACTERS].split("\n")[:FOLDED_LINES])
    left = len(text) - len(shown)
    return text if left <= 0 else f"{shown}\n… {left:,} more characters (--full shows them)"


@command(app)
async def search(
    door: Door,
    words: Annotated[list[str], typer.Argument(metavar="WORDS…", help="What to look for, in any language.")],
    conversation: Annotated[str | None, typer.Option(metavar="ID", help="Only in this conversation.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=MAX_PAGE, help="How many at most.")] = 20,
    meaning: Annotated[bool, typer.Option("--meaning", help="Also what says the same in other words.")] = False,
) -> None:
    """Find messages by their words, best first."""
    async with door.open() as et:
        text = " ".join(words)
        hits = await et.search(text, owner=door.owner, conversation=conversation, limit=limit, meaning=meaning)
    if door.out.json:
        door.out.document(
            {
                "hits": list(hits),
                "truncated": hits.truncated,
                "by_meaning": hits.by_meaning,
                "why_words_alone": hits.why_words_alone,
                "is_behind": hits.is_behind,
            }
        )
        return
    door.out.table(("conversation", ">seq", "text"), [(hit.conversation_id, hit.seq, hit.snippet) for hit in hits])
    if hits.truncated:
        door.out.note("many messages match: only the newest were ranked; more words find better")
    if hits.why_words_alone:
        door.out.note(f"words alone were searched: {hits.why_words_alone}")
    elif hits.is_behind:
        door.out.note("some messages are found by their words only until their vectors are made: everthread reindex")


@command(app)
async def stats(door: Door) -> None:
    """Count what the database holds, of all owners."""
    async with door.open() as et:
        counted = await et.stats()
    if door.out.json:
        door.out.document(dict(counted))
    else:
        door.out.table(
            ("", ""),
            [(name, size(count) if name.endswith("_bytes") else f"{count:,}") for name, count in counted.items()],
        )
