"""A long text as an excerpt: its head, its tail, and a note that says how to see the rest.

What comes back is within the tokens it was given, by the same count that will be made of the request, and the same
for the same input. Cuts fall between characters as a reader sees them, never inside one.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import Any

from everthread.context.budget import TokenCounter
from everthread.context.dialect import INVALID_ARGUMENTS, as_json, as_text, map_strings, read_arguments
from everthread.context.tokens import count_tokens

HEAD_SHARE = 2 / 3
"""The head of an output says what it is, the tail how it ended; the head mostly says more."""
CHARS_PER_TOKEN = 16
"""Ordinary text has fewer: the search for the longest excerpt begins here."""
SHORTEST = "…"
SMALLEST_ARGUMENT_TOKENS = 8
"""Below this a shortened argument says nothing any more."""


def excerpt(text: str, max_tokens: int, *, seq: int | None = None, count: TokenCounter = count_tokens) -> str:
    """Head and tail of the text around a note of what is missing; the text itself when it fits."""
    if count(text) <= max_tokens:
        return text
    for note in (text_reference(text, seq), "[…]", SHORTEST):
        if count(note) <= max_tokens:
            return _around(text, note, max_tokens, count)
    return ""


def text_reference(text: str, seq: int | None = None) -> str:
    """How much there is, and how to see it."""
    size = len(text.encode("utf-8", "surrogatepass"))
    opened = f"; history_open(seq={seq}) shows all of it" if seq is not None else ""
    return f"[… shown in part, {size:,} bytes in all{opened} …]"


def _around(text: str, note: str, max_tokens: int, count: TokenCounter) -> str:
    """About the most characters that fit around the note, by halves. A longer text may count to less, so a little more
    might have fitted; what is returned has been counted."""
    low, high = 0, min(len(text) - 1, max_tokens * CHARS_PER_TOKEN)
    while low < high:
        middle = (low + high + 1) // 2
        if count(_joined(text, note, middle)) <= max_tokens:
            low = middle
        else:
            high = middle - 1
    return _joined(text, note, low)


def _joined(text: str, note: str, kept: int) -> str:
    head = int(kept * HEAD_SHARE)
    start, end = safe_cut(text, head), safe_cut(text, len(text) - (kept - head), forward=True)
    return "\n".join(part for part in (text[:start], note, text[end:]) if part)


def safe_cut(text: str, index: int, *, forward: bool = False) -> int:
    """The nearest place at or before the index (or after it) that splits no surrogate pair and tears no accent or
    joined emoji from what it belongs to."""
    while 0 < index < len(text) and _are_one(text[index - 1], text[index]):
        index += 1 if forward else -1
    return index


def _are_one(before: str, after: str) -> bool:
    if "\ud800" <= before <= "\udbff" and "\udc00" <= after <= "\udfff":
        return True
    return "\u200d" in (before, after) or after == "\ufe0f" or unicodedata.combining(after) != 0


def short_arguments(
    arguments: object, max_tokens: int, *, seq: int | None = None, count: TokenCounter = count_tokens
) -> Mapping[str, Any]:
    """A call's arguments as an object within the tokens: its long texts get shorter first; one that is long by its
    structure becomes an excerpt of itself; in no room at all it is empty."""
    whole = read_arguments(arguments)
    if whole is None:
        whole = {INVALID_ARGUMENTS: as_text(arguments)}
    cap = max_tokens
    while cap >= SMALLEST_ARGUMENT_TOKENS:
        shorter: Mapping[str, Any] = map_strings(whole, _Shorten(cap, seq, count))
        if count(as_json(shorter)) <= max_tokens:
            return shorter
        cap //= 2
    return _elided(as_json(whole), max_tokens, seq, count)


def _elided(text: str, max_tokens: int, seq: int | None, count: TokenCounter) -> Mapping[str, Any]:
    """JSON escapes what it quotes, so the excerpt is made smaller until the quoted one fits."""
    room = max_tokens
    while room > 0:
        elided = {"elided": excerpt(text, room, seq=seq, count=count)}
        if count(as_json(elided)) <= max_tokens:
            return elided
        room = room * 3 // 4
    return {}


class _Shorten:
    """`excerpt` with its bounds fixed, for every text inside a value."""

    def __init__(self, cap: int, seq: int | None, count: TokenCounter) -> None:
        self.cap, self.seq, self.count = cap, seq, count

    def __call__(self, text: str) -> str:
        return excerpt(text, self.cap, seq=self.seq, count=self.count)
