"""Cut a long message into the passages by which it is found and shown; a short one is one passage, whole.

An answer stands in a paragraph or two, and a request has room for little: of a page of code or advice only the part
that has to do with the question shall come back. Passages follow each other without gap or overlap, and end where the
text does: at an empty line, else at a line's end, else at a sentence's, else anywhere between two characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

WHOLE_TOKENS = 210
"""A message up to this comes whole; it is also about what a small embedding model reads of a text."""
PASSAGE_TOKENS = 180
"""What a passage of a longer message counts to at most."""
_PLAIN_CHARACTERS = 4
"""Characters of a token where words are spaced; elsewhere each counts as one."""

_wide = re.compile(r"[\u2e80-\ua4cf\uac00-\ud7ff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]").findall
_ENDS = (re.compile(r"\n[^\S\n]*\n\s*"), re.compile(r"\n\s*"), re.compile(r"(?<=[.!?;])\s+|(?<=[。！？；])"))


class Span(NamedTuple):
    """Where a passage stands in its message's text, by characters."""

    start: int
    end: int


def estimated_tokens(text: str) -> int:
    """About what a text counts to: exact enough to cut by, a hundred times as fast as counting."""
    if text.isascii():
        return -(-len(text) // _PLAIN_CHARACTERS)
    wide = len(_wide(text))
    return wide - (wide - len(text)) // _PLAIN_CHARACTERS


def passages(text: str) -> list[Span]:
    """The passages of a message's text, in order; one, of the whole, unless it is long."""
    if estimated_tokens(text) <= WHOLE_TOKENS:
        return [Span(0, len(text))]
    return list(_packed(text, _pieces(text, Span(0, len(text)), 0)))


def _pieces(text: str, span: Span, level: int) -> Iterator[Span]:
    """What is small enough, cut at the strongest ends that make it so."""
    if estimated_tokens(text[span.start : span.end]) <= PASSAGE_TOKENS:
        yield span
    elif level < len(_ENDS):
        start = span.start
        for end in (*(found.end() for found in _ENDS[level].finditer(text, *span)), span.end):
            if end > start:
                yield from _pieces(text, Span(start, end), level + 1)
                start = end
    else:
        wide = _PLAIN_CHARACTERS if text[span.start : span.end].isascii() else 1
        step = PASSAGE_TOKENS * wide
        yield from (Span(at, min(at + step, span.end)) for at in range(span.start, span.end, step))


def _packed(text: str, pieces: Iterator[Span]) -> Iterator[Span]:
    """Neighbouring pieces together, as many as go into a passage."""
    held = next(pieces)
    for piece in pieces:
        joined = Span(held.start, piece.end)
        if estimated_tokens(text[joined.start : joined.end]) <= PASSAGE_TOKENS:
            held = joined
        else:
            yield held
            held = piece
    yield held
