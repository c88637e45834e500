"""Cut from a message the line that shows why it was found, its matches marked.

Snippets are for people. The words are compared as the index compares them (`text.words`), so `Budgets` is marked for
`budget`; but the text itself is shown as it was written, except that white space and control characters become
single spaces, and a lone surrogate, which no terminal or JSON takes, becomes the replacement character.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from everthread.core.queries import Query
from everthread.history.search_query import excerpt
from everthread.text.numbers import number_pattern
from everthread.text.words import fold, part_spans, tokenize

MARK = "**"
"""Marks the start and end of each match."""

ELLIPSIS = "…"
"""Marks where the message continues beyond the snippet."""

_READ_CHARS = 4_000
_blank = re.compile(r"[\s\x00-\x1f\x7f-\x9f]+")
_surrogate = re.compile(r"[\ud800-\udfff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class _MatchSpan:
    """Where the text has a term of the query."""

    start: int
    end: int
    term: str


def snippet(text: str, query: Query, width: int = 160) -> str:
    """The `width` characters of a text with most of the query's terms; marks and ellipses come on top."""
    near = excerpt(text, query, max(_READ_CHARS, width))
    line = _blank.sub(" ", _surrogate.sub("\ufffd", near)).strip()
    matches = sorted([*_find_matches(line, query), *_find_numbers(line, query)], key=lambda match: match.start)
    start, end = _window(line, matches, width)
    begins = ELLIPSIS if start > 0 or not text.startswith(near) else ""
    ends = ELLIPSIS if end < len(line) or not text.endswith(near) else ""
    return begins + _mark_matches(line, matches, start, end).strip() + ends


def _find_matches(line: str, query: Query) -> Iterator[_MatchSpan]:
    exact = {term.token for term in query.terms if not term.is_prefix and not term.pattern}
    prefixes = {term.token for term in query.terms if term.is_prefix}
    for start, end, is_run in part_spans(line):
        part = line[start:end]
        run = fold(part)
        if is_run and len(run) == len(part):
            yield from _matches_in_run(run, start, exact, prefixes)
            continue
        for token in tokenize(part):
            if token in exact or token[0] in prefixes:
                yield _MatchSpan(start=start, end=end, term=token)
                break


def _find_numbers(line: str, query: Query) -> Iterator[_MatchSpan]:
    numbers = [term for term in query.terms if term.pattern]
    folded = fold(line) if numbers else ""
    if len(folded) != len(line):
        return  # where folding changes lengths a place in one is none in the other
    for term in numbers:
        for found in number_pattern(term).finditer(folded):
            yield _MatchSpan(start=found.start(), end=found.end(), term=term.token)


def _matches_in_run(run: str, start: int, exact: set[str], prefixes: set[str]) -> Iterator[_MatchSpan]:
    for at in range(len(run)):
        pair = run[at : at + 2]
        if pair in exact:
            yield _MatchSpan(start=start + at, end=start + at + len(pair), term=pair)
        if run[at] in prefixes:
            yield _MatchSpan(start=start + at, end=start + at + 1, term=run[at])


def _window(line: str, matches: Sequence[_MatchSpan], width: int) -> tuple[int, int]:
    """The part with most different terms, then most matches, then the first; its matches in the middle."""
    if len(line) <= width or not matches:
        return 0, _word_end(line, min(width, len(line)), 0)
    ends = [match.end for match in matches]
    # For each match, the matches from it on that fit into the width: at least itself.
    spans = [(at, max(at + 1, bisect_right(ends, match.start + width))) for at, match in enumerate(matches)]
    terms = [match.term for match in matches]
    first, last = max(spans, key=lambda span: (len(set(terms[slice(*span)])), span[1] - span[0]))
    taken = matches[last - 1].end - matches[first].start
    start = max(0, min(matches[first].start - (width - taken) // 2, len(line) - width))
    start = _word_start(line, start, matches[first].start)
    return start, _word_end(line, min(start + width, len(line)), matches[last - 1].end)


def _word_start(line: str, start: int, limit: int) -> int:
    """Move the start of a cut past a broken word, if there is a space before `limit`."""
    if start == 0 or line[start - 1] == " ":
        return start
    space = line.find(" ", start, limit)
    return space + 1 if space >= 0 else start


def _word_end(line: str, end: int, limit: int) -> int:
    """Move the end of a cut before a broken word, if there is a space after `limit`."""
    if end >= len(line) or line[end] == " ":
        return end
    space = line.rfind(" ", limit, end)
    return space if space > 0 else end


def _mark_matches(line: str, matches: Sequence[_MatchSpan], start: int, end: int) -> str:
    shown, at = [], start
    for left, right in _merge_touching(matches, start, end):
        shown += [line[at:left], MARK, line[left:right], MARK]
        at = right
    return "".join([*shown, line[at:end]])


def _merge_touching(matches: Sequence[_MatchSpan], start: int, end: int) -> list[tuple[int, int]]:
    """Join the matches within a cut that touch each other, as the pairs of an unspaced run do."""
    merged: list[tuple[int, int]] = []
    for match in matches:
        left, right = max(match.start, start), min(match.end, end)
        if left >= right:
            continue
        if merged and left <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], right))
        else:
            merged.append((left, right))
    return merged
