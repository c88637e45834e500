"""What a request is made from, and how much of the record before the window goes into it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from everthread.context.budget import message_tokens
from everthread.context.excerpt import excerpt
from everthread.context.quote import quoted, record
from everthread.context.tokens import count_tokens
from everthread.core import payloads

Source = TypeVar("Source")

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
class Summed:
    """A summary that stands for a stretch of the path."""

    id: str
    first_seq: int
    last_seq: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ingredients:
    """Everything a request is made of."""

    system: str | None = None
    summaries: Sequence[Summed] = ()
    pinned: Sequence[Stored] = ()
    """Pinned messages that are before the window."""
    window: Sequence[Stored] = ()
    passed_over: tuple[int, int] | None = None
    """The stretch between the summaries and the window, when the window had to jump."""
    old_before: int = 0
    """How many messages of the window are old, so that their long tool output is shown in part."""
    live_calls: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Quotes:
    """What the record quotes; false when it is nothing."""

    summaries: tuple[Summed, ...] = ()
    pinned: tuple[Stored, ...] = ()
    blocks: tuple[str, ...] = ()
    """The summaries, then the pinned messages, each between its tags."""

    def __bool__(self) -> bool:
        return bool(self.blocks)

    @property
    def pinned_tokens(self) -> int:
        return sum(map(count_tokens, self.blocks[len(self.summaries) :]))


def quotes_within(summaries: Sequence[Summed], pinned: Sequence[Stored], room: int | None = None) -> Quotes:
    """The record's quotations; with a `room`, as many as count to no more: of the pinned messages the newest in up
    to half of it, then whole summaries, the newest first and without a gap."""
    cap = PINNED_TOKENS
    if room is None:
        return _quotes(
            [(summary, summary_block(summary)) for summary in summaries],
            [(stored, pinned_block(stored, cap)) for stored in pinned],
        )
    left = room - message_tokens(record(()))
    pins = _newest(((stored, pinned_block(stored, min(cap, left // 4))) for stored in reversed(pinned)), left // 2)
    left -= sum(count_tokens(block) + 1 for _, block in pins)
    told = _newest(((summary, summary_block(summary)) for summary in reversed(summaries)), left)
    return _quotes(told, pins)


def _quotes(summaries: Sequence[tuple[Summed, str]], pinned: Sequence[tuple[Stored, str]]) -> Quotes:
    return Quotes(
        summaries=tuple(summary for summary, _ in summaries),
        pinned=tuple(stored for stored, _ in pinned),
        blocks=(*(block for _, block in summaries), *(block for _, block in pinned)),
    )


def _newest(newest_first: Iterable[tuple[Source, str]], room: int) -> list[tuple[Source, str]]:
    kept: list[tuple[Source, str]] = []
    for source, block in newest_first:
        room -= count_tokens(block) + 1
        if room < 0:
            break
        kept.append((source, block))
    return kept[::-1]


def summary_block(summary: Summed) -> str:
    return quoted("summary", summary.text, messages=f"{summary.first_seq}-{summary.last_seq}")


def pinned_block(stored: Stored, max_tokens: int) -> str:
    text = payloads.text(stored.payload)
    return quoted(
        "pinned",
        text if stored.tokens <= max_tokens else excerpt(text, max(max_tokens, 1), seq=stored.seq),
        message=stored.seq,
        speaker=payloads.name(stored.payload) or payloads.role(stored.payload),
        said=stored.said or None,
    )
