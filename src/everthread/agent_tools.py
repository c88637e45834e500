"""What an agent may do with its own past: search it, open it, have its context made smaller, and remember of its user
what is worth it.

Plain functions over a conversation, to be bound to any agent. A model writes their arguments, so nothing it writes
raises: what cannot be done comes back as a text that says what to do instead. What is found is quoted data between
tags, within a cap, with the very call that shows the rest. Excerpts and summaries name these functions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from everthread.context.clamp import SHOWN_BLOCKS, media_reference, safe_cut
from everthread.context.message_format import as_text, blocks_of, calls_of
from everthread.context.quotes import LOOKUP_INTRODUCTION, quote, short_id
from everthread.context.tokens import count_tokens
from everthread.conversation import Conversation
from everthread.core.compactions import Compaction
from everthread.core.errors import Conflict, Erased, Invalid, NotFound
from everthread.core.memories import MemoryKind, MemoryScope
from everthread.core.nouns import Message
from everthread.core.payloads import block_type
from everthread.core.trust import Trust
from everthread.recall.search import RecallHit
from everthread.text.secrets import find_secrets

MAX_TOKENS = 2_000
"""What an answer counts to at most, unless whoever binds the function says otherwise."""
MAX_HITS = 50
_MARGIN_TOKENS = 60
"""Kept free for the sentence that says how to go on."""
_CHARACTERS_PER_TOKEN = 8
_ECHO_CHARACTERS = 60
_ECHO_QUERY = 1_000
_LOOKED_BACK = 50
_QUERY_CHARACTERS = 2_000
_GONE = "this conversation can no longer be read"
_FIND = 'history_search(query="…") finds what was said'


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentToolAnswer:
    """What the model reads, and what the program may make of it."""

    text: str
    is_error: bool = False
    seqs: tuple[int, ...] = ()
    """The messages that are shown, in whole or in part."""
    go_on: str | None = None
    """The call that shows what comes next; the text names it too."""
    media: tuple[Mapping[str, Any], ...] = ()
    """Images and files of the message that was opened, as they came; the text has a line for each."""


class _Refused(Exception):
    """Arguments that make no sense, with what to do instead."""


async def compress_context(conversation: Conversation) -> AgentToolAnswer:
    """Summarise the older part of the conversation now, so that the context gets smaller. Nothing is lost."""
    try:
        outcome = await conversation.compact(trigger="manual")
    except (NotFound, Erased):
        return AgentToolAnswer(text=f"compress_context: {_GONE}.", is_error=True)
    made = outcome.compaction
    if outcome.compacted and made is not None:
        return AgentToolAnswer(
            text=f"Done: what came before message {made.last_seq + 1} is summarised; {outcome.original_count} messages "
            f"in view became {outcome.new_count}. Nothing is lost: history_open(summary_id={made.id!r}) shows what "
            "the newest summary stands for."
        )
    if outcome.error is not None:
        return AgentToolAnswer(
            text=f"Nothing was changed: {outcome.error}. Go on; it will be tried again when space runs short."
        )
    return AgentToolAnswer(text="Nothing was changed: all messages in view are recent. Continue without it.")


async def history_search(
    conversation: Conversation, query: object, *, limit: object = 10, max_tokens: int = MAX_TOKENS
) -> AgentToolAnswer:
    """Find what was said in this conversation, however long ago, best first."""
    try:
        return await _searched(conversation, _text(query, "query"), _whole(limit, "limit", 1, MAX_HITS), max_tokens)
    except _Refused as problem:
        return AgentToolAnswer(text=f"history_search: {problem}", is_error=True)
    except (NotFound, Erased):
        return AgentToolAnswer(text=f"history_search: {_GONE}.", is_error=True)


async def _searched(conversation: Conversation, query: str, limit: int, max_tokens: int) -> AgentToolAnswer:
    room = max_tokens - _MARGIN_TOKENS - count_tokens(LOOKUP_INTRODUCTION)
    hits = await conversation.recall(
        query[:_QUERY_CHARACTERS],
        limit=limit,
        max_tokens=max(room, 0),
        show_secrets=True,  # as in all that the model of this conversation is shown of it
    )
    if not hits:
        return AgentToolAnswer(
            text=f"Nothing found for {_echoed(query)}. Try fewer or different words, such as a name or a number."
        )
    blocks: list[str] = []
    seqs: list[int] = []
    shown: list[RecallHit] = []
    for hit in hits.in_order if hits.asks_for_several else hits:
        said = hit.said_at.isoformat(timespec="minutes")
        weak = None if hit.match == "strong" else "weak"
        block = quote(
            "found", hit.text, message=", ".join(map(str, hit.seqs)), speaker=hit.speaker, said=said, match=weak
        )
        room -= count_tokens(block) + 1
        if room < 0:
            break
        blocks.append(block)
        shown.append(hit)
        seqs += hit.seqs
    note = "All matches are weak: it was probably put differently, or never said." if hits.only_weak else ""
    cut = hits[0] if not shown else next((hit for hit in shown if hit.is_passage), None)
    if cut is not None:
        note += f" history_open(seq={cut.seqs[0]}) shows message {cut.seqs[0]} whole."
    if len(blocks) < len(hits) or len(hits) == limit:
        note += " There may be more; add a word to narrow it down."
    if hits.unanswered or hits.is_behind:
        note += " Some messages could be searched by their words only."
    return AgentToolAnswer(text="\n".join(filter(None, [LOOKUP_INTRODUCTION, *blocks, note.strip()])), seqs=tuple(seqs))


async def history_open(
    conversation: Conversation,
    *,
    seq: object = None,
    last_seq: object = None,
    message_id: object = None,
    summary_id: object = None,
    offset: object = 0,
    limit: object = None,
    max_tokens: int = MAX_TOKENS,
) -> AgentToolAnswer:
    """Show earlier messages as they were: one (`seq` or `message_id`), a stretch (`seq` to `last_seq`), or what a
    summary was made from (`summary_id`). A long message is shown by parts: `offset` and `limit` in characters."""
    try:
        room = _Room(max_tokens, _whole(offset, "offset", 0), _optional(limit, "limit", 1))
        if summary_id is not None:
            return await _sources(conversation, _text(summary_id, "summary_id"), room)
        if message_id is not None:
            return _one(await _by_id(conversation, _text(message_id, "message_id")), room)
        if seq is None:
            raise _Refused(f"name what to open: seq=12, or seq=12 with last_seq=20. {_FIND}")
        first, last = _whole(seq, "seq", 1), _optional(last_seq, "last_seq", 1)
        if last is None or last == first:
            return _one(await _at(conversation, first), room)
        if last < first:
            raise _Refused(f"last_seq must not be before seq: history_open(seq={last}, last_seq={first})")
        return await _stretch(conversation, first, last, room)
    except _Refused as problem:
        return AgentToolAnswer(text=f"history_open: {problem}.", is_error=True)
    except (NotFound, Erased):
        return AgentToolAnswer(text=f"history_open: {_GONE}.", is_error=True)


# --- one message ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Room:
    """How much may be shown, and from where."""

    max_tokens: int
    offset: int = 0
    limit: int | None = None

    @property
    def tokens(self) -> int:
        return max(1, self.max_tokens - _MARGIN_TOKENS - count_tokens(LOOKUP_INTRODUCTION))


def _one(message: Message, room: _Room) -> AgentToolAnswer:
    """A message, or the part of it that goes in."""
    whole = _readable(message)
    if room.offset >= max(1, len(whole)):
        last = max(0, len(whole) - 1)
        raise _Refused(f"message {message.seq} has {len(whole):,} characters; offset may be 0 to {last:,}")
    end = len(whole) if room.limit is None else min(len(whole), room.offset + room.limit)
    block, shown_to = _part(message, whole, room.offset, end, room.tokens)
    limit = "" if room.limit is None else f", limit={room.limit}"
    go_on = f"history_open(seq={message.seq}, offset={shown_to}{limit})" if shown_to < len(whole) else None
    note = f"Characters {room.offset:,} to {shown_to:,} of {len(whole):,}; {go_on} shows what follows." if go_on else ""
    media = tuple(one for one in blocks_of(message.payload) if block_type(one) not in SHOWN_BLOCKS)
    return AgentToolAnswer(
        text="\n".join(filter(None, [LOOKUP_INTRODUCTION, block, note])), seqs=(message.seq,), go_on=go_on, media=media
    )


def _part(message: Message, whole: str, start: int, end: int, max_tokens: int) -> tuple[str, int]:
    """As much as the tokens allow, and where it ends; at least one character, so that going on always gets on."""
    end = min(end, start + max_tokens * _CHARACTERS_PER_TOKEN)
    while True:
        block = quote("opened", whole[start:end], **_where(message))
        over = count_tokens(block) - max_tokens
        if over <= 0 or end <= start + 1:
            return block, end
        shorter = start + max(1, (end - start) * max_tokens // (max_tokens + over) - 1)
        end = max(start + 1, safe_cut(whole, shorter))


def _where(message: Message) -> dict[str, object]:
    said = message.said_at or message.created_at
    return {
        "message": message.seq,
        "speaker": message.name or message.role,
        "said": said.isoformat(timespec="minutes"),
    }


def _readable(message: Message) -> str:
    """All that it says, its calls and a line for each image or file."""
    payload = message.payload
    calls = [f"[calls {call.name} {as_text(call.arguments)}]" for call in calls_of(payload)]
    media = [media_reference(block) for block in blocks_of(payload) if block_type(block) not in SHOWN_BLOCKS]
    return "\n".join(part for part in (message.text, *calls, *media) if part)


async def _at(conversation: Conversation, seq: int) -> Message:
    try:
        return _open(await conversation.message_at(seq), f"message {seq}")
    except NotFound:
        raise _Refused(f"message {seq} not found. {_FIND}") from None


async def _by_id(conversation: Conversation, id: str) -> Message:
    try:
        return _open(await conversation.message(id), f"message {id!r}")
    except (NotFound, Invalid):
        raise _Refused(f"no message with the id {_echoed(id)}. {_FIND}") from None


def _open(message: Message, named: str) -> Message:
    if message.is_quarantined:
        raise _Refused(f"{named} was quarantined as untrustworthy and cannot be read. {_FIND}")
    if message.is_deleted:
        raise _Refused(f"{named} was deleted and cannot be read. {_FIND}")
    return message


# --- several --------------------------------------------------------------------------------------


async def _stretch(conversation: Conversation, first: int, last: int, room: _Room) -> AgentToolAnswer:
    """The messages between two places: of the active branch, or of the one that leads to the last."""
    found = [one async for one in conversation.messages(after=first - 1, limit=room.max_tokens) if one.seq <= last]
    if not found:
        found = await _leading_to(conversation, first, last, room)
    if not found:
        raise _Refused(f"no messages from {first} to {last}. {_FIND}")
    return _several(found, last, room)


async def _leading_to(conversation: Conversation, first: int, last: int, room: _Room) -> list[Message]:
    try:
        path = conversation.messages(after=first - 1, limit=room.max_tokens, branch=last)
        return [one async for one in path]
    except NotFound:
        return []


def _several(messages: Sequence[Message], last: int, room: _Room) -> AgentToolAnswer:
    """As many whole messages as go in; the first by its part when it alone does not."""
    blocks: list[str] = []
    shown: list[int] = []
    left = room.tokens
    for message in messages:
        block = quote("opened", _readable(message), **_where(message))
        left -= count_tokens(block) + 1
        if left < 0:
            break
        blocks.append(block)
        shown.append(message.seq)
    if not shown:
        return _one(messages[0], room)
    rest = messages[len(shown) :]
    go_on = f"history_open(seq={rest[0].seq}, last_seq={last})" if rest else None
    note = f"{go_on} shows what follows." if go_on else ""
    return AgentToolAnswer(
        text="\n".join(filter(None, [LOOKUP_INTRODUCTION, *blocks, note])), seqs=tuple(shown), go_on=go_on
    )


async def _sources(conversation: Conversation, id: str, room: _Room) -> AgentToolAnswer:
    """What a summary was made from: messages, or the summaries of the level below."""
    try:
        compaction = await conversation.compaction(id)
    except (NotFound, Invalid):
        raise _Refused(f"no summary {_echoed(id)}; history_open(seq=…, last_seq=…) opens its messages") from None
    if compaction.children:
        return await _children(conversation, compaction, room)
    found = await _leading_to(conversation, compaction.first_seq, compaction.last_seq, room)
    if not found:
        raise _Refused(f"the messages of summary {id!r} can no longer be read")
    return _several(found, compaction.last_seq, room)


async def _children(conversation: Conversation, parent: Compaction, room: _Room) -> AgentToolAnswer:
    blocks: list[str] = []
    left = room.tokens
    go_on = None
    for id in parent.children:
        child = await conversation.compaction(id)
        block = quote("summary", child.summary, id=child.id, messages=f"{child.first_seq}-{child.last_seq}")
        left -= count_tokens(block) + 1
        if left < 0:
            go_on = f"history_open(seq={child.first_seq}, last_seq={parent.last_seq})"
            break
        blocks.append(block)
    note = f"{go_on} shows what the rest stands for." if go_on else "history_open(summary_id=…) opens each of them."
    return AgentToolAnswer(text="\n".join([LOOKUP_INTRODUCTION, *blocks, note]), go_on=go_on)


# --- what is known of the user --------------------------------------------------------------------


async def remember(
    conversation: Conversation,
    text: object,
    *,
    kind: object = "fact",
    subject: object = None,
    scope: object = "user",
    has_read_documents: bool = False,
) -> AgentToolAnswer:
    """Remember something about the user for later conversations (or, with `scope`, for this one alone). What the user
    has not said, where the agent has read files or tools, is shown here only until the user confirms it."""
    try:
        said = _text(text, "text")
        if find_secrets(said):
            raise _Refused("this holds what looks like a password or a key; leave it out")
        memory = await conversation.remember(
            said,
            kind=_one_of(kind, "kind", MemoryKind),
            scope=_one_of(scope, "scope", MemoryScope),
            subject=None if subject is None else _text(subject, "subject"),
            seq=await _newest_question(conversation),
            origin="agent",
            has_read_documents=has_read_documents,
        )
    except _Refused as problem:
        return AgentToolAnswer(text=f"remember: {problem}.", is_error=True)
    except Invalid as problem:
        return AgentToolAnswer(text=f"remember: {problem}", is_error=True)
    except Conflict:
        return AgentToolAnswer(
            text="remember: this conversation is off the record; nothing from it is remembered.", is_error=True
        )
    except NotFound:
        return AgentToolAnswer(text=f"remember: {_GONE}.", is_error=True)
    past = " The earlier version is kept as history." if memory.supersedes else ""
    if memory.trust is Trust.DATA:
        past += " It is not in the user's own words, so other conversations see it only after the user confirms it."
    return AgentToolAnswer(text=f"Remembered.{past} forget(memory={short_id(memory.id)!r}) undoes this.")


async def forget(conversation: Conversation, memory: object) -> AgentToolAnswer:
    """Forget something remembered about the user, by the id shown with the memory or by its words."""
    try:
        wanted = _text(memory, "memory").strip()
        known = await conversation.remembered()
        found = [one for one in known if one.id == wanted or (len(wanted) >= 8 and one.id.endswith(wanted))]
        if len(found) == 1:
            await conversation.forget(found[0].id)
            return AgentToolAnswer(text="Forgotten: it will not be shown or found any more.")
        likely = await conversation.remembered(wanted[:_ECHO_QUERY])
    except _Refused as problem:
        return AgentToolAnswer(text=f"forget: {problem}.", is_error=True)
    except NotFound:
        return AgentToolAnswer(text=f"forget: {_GONE}.", is_error=True)
    if not likely:
        return AgentToolAnswer(text=f"forget: no memory matches {_echoed(wanted)}.", is_error=True)
    blocks = [quote("memory", one.text, id=short_id(one.id)) for one in likely[:5]]
    note = f"Nothing was forgotten yet: name one by its id, such as forget(memory={short_id(likely[0].id)!r})."
    return AgentToolAnswer(text="\n".join([LOOKUP_INTRODUCTION, *blocks, note]))


async def _newest_question(conversation: Conversation) -> int | None:
    """The message that what is remembered now is from: what the user said last."""
    recent = await conversation.tail(_LOOKED_BACK)
    return next((one.seq for one in reversed(recent) if one.role == "user"), None)


def _one_of(value: object, name: str, words: type[StrEnum]) -> str:
    for known in words:
        if str(value).strip().lower() == known:
            return str(known)
    raise _Refused(f"{name} must be one of {', '.join(words)}")


# --- what a model writes --------------------------------------------------------------------------


def _echoed(given: str) -> str:
    """What a model wrote, as an answer may repeat it: a long text by its beginning."""
    return repr(given if len(given) <= _ECHO_CHARACTERS else f"{given[:_ECHO_CHARACTERS]}…")


def _text(value: object, name: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise _Refused(f'{name} must be a text, such as {name}="budget"')
    return value


def _whole(value: object, name: str, least: int, most: int | None = None) -> int:
    """A whole number, also where it comes as `12.0` or `"12"`; above the most it is the most."""
    try:
        number = int(str(value).strip().removesuffix(".0"))
    except ValueError:
        raise _Refused(f"{name} must be a whole number, such as {name}={max(least, 12)}") from None
    if number < least or number >= 1 << 32:
        raise _Refused(f"{name} must be {least} or more and the number of a message or character")
    return number if most is None else min(number, most)


def _optional(value: object, name: str, least: int) -> int | None:
    return None if value is None else _whole(value, name, least)
