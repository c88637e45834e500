"""What a request is made from, and how much of the record before the window goes into it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any, NamedTuple, TypeVar

from everthread.context.excerpt import excerpt, text_reference
from everthread.context.quote import MEMORY_INTRODUCTION, frame_tokens, quoted, quoted_tokens
from everthread.context.shape import leading
from everthread.context.tokens import count_tokens
from everthread.core import payloads

Source = TypeVar("Source")

_SEAM_TOKENS = 4
"""Two texts joined may count to a little more than each by itself."""
_LEAST_SHOWN_TOKENS = 50
"""Less of a summary says nothing."""
PINNED_TOKENS = 1_000
"""A pinned message above this is an excerpt: it is carried in every request from then on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A message of the log, as assembling needs it."""

    seq: int
    entry_seq: int
    payload: Mapping[str, Any]
    tokens: int
    said: str = ""
    """When it was said, for a quotation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """A passage of an earlier message that has to do with what is asked now."""

    stored: Stored
    start: int
    end: int
    """Where it stands in the message's text, by characters."""

    @property
    def text(self) -> str:
        whole = payloads.text(self.stored.payload)
        is_part = self.start > 0 or self.end < len(whole)
        passage = whole[self.start : self.end]
        return f"{passage}\n{text_reference(whole, self.stored.seq)}" if is_part else passage


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """A memory, as a request quotes it: by what of it never changes."""

    id: str
    text: str
    tokens: int | None = None
    """What the text counts to, where that is known."""
    noted: str = ""
    """When it was written down."""
    conversation: str | None = None
    """Where it is from, when that is another conversation."""
    message: int | None = None
    """The message of this conversation that it is from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summed:
    """A summary that stands for a stretch of the path."""

    id: str
    first_seq: int
    last_seq: int
    text: str
    tokens: int | None = None
    """What the text counts to, where that is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ingredients:
    """Everything a request is made of."""

    system: str | None = None
    standing: Sequence[Stored] = ()
    """System messages of the log that are before the window: they go into the system slot, after `system`."""
    tools: Sequence[Mapping[str, Any]] = ()
    """The schemas sent beside the messages; the budget has left room for them."""
    memories: Sequence[Remembered] = ()
    """What is known of the user whatever is asked, as it was when the window last began anew."""
    summaries: Sequence[Summed] = ()
    pinned: Sequence[Stored] = ()
    """Pinned messages that are before the window."""
    window: Sequence[Stored] = ()
    recalled: Sequence[Recalled] = ()
    reminded: Sequence[Remembered] = ()
    """Memories that have to do with what is asked now, or are new."""
    passed_over: tuple[int, int] | None = None
    """The stretch between the summaries and the window, when the window had to jump."""
    old_before: int = 0
    """How many messages of the window are old, so that their long tool output is shown in part."""
    live_calls: frozenset[str] = frozenset()

    @property
    def leading(self) -> int:
        """How many messages of the window are instructions that the path begins with."""
        is_later = self.summaries or self.standing or self.passed_over
        return 0 if is_later else leading(stored.payload for stored in self.window)


class Quoted(NamedTuple):
    """A quotation between its tags, and what it counts to with the line break after it."""

    block: str
    tokens: int


_SHOWN_ID_CHARACTERS = 8


@cache
def _introduction() -> Quoted:
    """What stands before memories. Counted when it is first needed: the vocabulary takes 70 ms to load."""
    return Quoted(MEMORY_INTRODUCTION, count_tokens(MEMORY_INTRODUCTION) + 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Quotes:
    """What the record quotes; false when it is nothing."""

    memories: tuple[Remembered, ...] = ()
    summaries: tuple[Summed, ...] = ()
    pinned: tuple[Stored, ...] = ()
    quoted: tuple[Quoted, ...] = ()
    """What is said before the memories, and they; the summaries; the pinned messages."""

    def __bool__(self) -> bool:
        return bool(self.quoted)

    @property
    def blocks(self) -> list[str]:
        return [one.block for one in self.quoted]

    @property
    def tokens(self) -> int:
        """What the record counts to: its parts together, which is what the whole does or a little more."""
        return frame_tokens() + sum(one.tokens for one in self.quoted)

    @property
    def memory_tokens(self) -> int:
        return sum(one.tokens for one in self.quoted[: len(self.memories) + 1]) if self.memories else 0

    @property
    def pinned_tokens(self) -> int:
        return sum(one.tokens for one in self.quoted[len(self.quoted) - len(self.pinned) :])


def quotes_within(given: Ingredients, room: int | None = None) -> Quotes:
    """The record's quotations; with a `room`, as many as count to no more: the newest memories in up to a quarter of
    it, of the pinned messages the newest in up to half of the rest, then whole summaries, the newest first and without
    a gap."""
    cap = PINNED_TOKENS
    memories, summaries, pinned = given.memories, given.summaries, given.pinned
    if room is None:
        return _quotes(
            [(memory, memory_block(memory)) for memory in memories],
            [(summary, summary_block(summary)) for summary in summaries],
            [(stored, pinned_block(stored, cap)) for stored in pinned],
        )
    left = room - frame_tokens()
    known = _newest(
        ((memory, memory_block(memory)) for memory in reversed(memories)), left // 4 - _introduction().tokens
    )
    left -= sum(one.tokens for _, one in known) + (_introduction().tokens if known else 0)
    pins = _newest(((stored, pinned_block(stored, min(cap, left // 4))) for stored in reversed(pinned)), left // 2)
    left -= sum(one.tokens for _, one in pins)
    told = _newest(((summary, summary_block(summary)) for summary in reversed(summaries)), left)
    return _quotes(known, told or _in_part(summaries[-1:], left), pins)


def _in_part(newest: Sequence[Summed], room: int) -> list[tuple[Summed, Quoted]]:
    """The newest summary by as much as there is room for, where it is not for the whole: a summary is as long as the
    policy says, whatever model it was first made for."""
    for summary in newest:
        frame = summary_block(replace(summary, text="", tokens=None)).tokens
        shown = room - frame - _SEAM_TOKENS
        block = summary_block(replace(summary, text=excerpt(summary.text, max(0, shown)), tokens=None))
        if shown >= _LEAST_SHOWN_TOKENS and block.tokens <= room:
            return [(summary, block)]
    return []


def _quotes(
    memories: Sequence[tuple[Remembered, Quoted]],
    summaries: Sequence[tuple[Summed, Quoted]],
    pinned: Sequence[tuple[Stored, Quoted]],
) -> Quotes:
    told = [_introduction(), *(one for _, one in memories)] if memories else []
    return Quotes(
        memories=tuple(memory for memory, _ in memories),
        summaries=tuple(summary for summary, _ in summaries),
        pinned=tuple(stored for stored, _ in pinned),
        quoted=(*told, *(one for _, one in summaries), *(one for _, one in pinned)),
    )


def _newest(newest_first: Iterable[tuple[Source, Quoted]], room: int) -> list[tuple[Source, Quoted]]:
    kept: list[tuple[Source, Quoted]] = []
    for source, one in newest_first:
        room -= one.tokens
        if room < 0:
            break
        kept.append((source, one))
    return kept[::-1]


def memory_block(memory: Remembered) -> Quoted:
    block = quoted(
        "memory",
        memory.text,
        id=short(memory.id),
        message=memory.message,
        conversation=None if memory.conversation is None else short(memory.conversation),
        noted=memory.noted or None,
    )
    return Quoted(block, quoted_tokens(block, memory.text, memory.tokens) + 1)


def short(id: str) -> str:
    """An id as a model is shown it: the end of a long one, which is enough to tell it from the others."""
    return id if len(id) <= _SHOWN_ID_CHARACTERS else id[-_SHOWN_ID_CHARACTERS:]


def memories_tokens(memories: Sequence[Remembered]) -> int:
    """What memories count to with what is said before them."""
    return sum(memory_block(one).tokens for one in memories) + _introduction().tokens if memories else 0


@lru_cache(maxsize=512)
def summary_block(summary: Summed) -> Quoted:
    """The same in every request until it is condensed, so it is remembered: stores clear that when they erase."""
    block = quoted("summary", summary.text, messages=f"{summary.first_seq}-{summary.last_seq}")
    return Quoted(block, quoted_tokens(block, summary.text, summary.tokens) + 1)


def recalled_block(recalled: Recalled) -> Quoted:
    stored = recalled.stored
    block = quoted(
        "recalled",
        recalled.text,
        message=stored.seq,
        speaker=payloads.name(stored.payload) or payloads.role(stored.payload),
        said=stored.said or None,
    )
    return Quoted(block, count_tokens(block) + 1)


def pinned_block(stored: Stored, max_tokens: int) -> Quoted:
    text = payloads.text(stored.payload)
    block = quoted(
        "pinned",
        text if stored.tokens <= max_tokens else excerpt(text, max(max_tokens, 1), seq=stored.seq),
        message=stored.seq,
        speaker=payloads.name(stored.payload) or payloads.role(stored.payload),
        said=stored.said or None,
    )
    return Quoted(block, count_tokens(block) + 1)
