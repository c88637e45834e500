"""What holds for all times: orders such as "never name the customer", and what others have to heed of a person.

Whoever writes a summary, and however often it is condensed, these lines stay: a model that drops one gets it back here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from everthread.compaction.sources import Source, TokenCounter, is_user
from everthread.compaction.summary_format import (
    SECTION_TITLES,
    SummaryLine,
    format_line,
    language_of_summary,
    to_one_line,
)
from everthread.text import cues
from everthread.text.sentences import split_sentences
from everthread.text.terms import overlap, terms
from everthread.text.words import stem

STANDING_SHARE = 0.6
"""Of a summary: what such lines may take at most."""
_LONGEST_CHARS = 320
_SAID = 0.75
"""A line that holds so many of the words of an order holds the order."""


def is_standing(text: str) -> bool:
    """Whether a user's sentence orders something for good or tells what is to be heeded; a question does neither."""
    return len(text) <= _LONGEST_CHARS and cues.is_standing(text) and not cues.ends_in_question(text)


def standing_lines(sources: Sequence[Source]) -> Iterator[SummaryLine]:
    """What users said that holds for all times."""
    for source in sources:
        if not is_user(source) or not cues.is_standing(source.text):
            continue
        for piece in split_sentences(source.text):
            if piece.kind != "code" and is_standing(piece.text):
                yield SummaryLine(
                    section="standing", text=to_one_line(piece.text), first_seq=source.seq, last_seq=source.seq
                )


def with_standing(prose: str, sources: Sequence[Source], most_tokens: int, count_tokens: TokenCounter) -> str:
    """A model's summary with the orders that it left out, before all else: as far as they take their share."""
    told = [_stems(line) for line in prose.splitlines()]
    missing: list[SummaryLine] = []
    for line in standing_lines(sources):
        own = _stems(line.text)
        if own and not any(overlap(own, one) >= _SAID and len(one) >= len(own) * _SAID for one in told):
            missing.append(line)
            told.append(own)
    head = f"## {SECTION_TITLES[language_of_summary(prose)]['standing']}"
    lines = [head]
    for line in missing:
        if count_tokens("\n".join([*lines, format_line(line)])) <= STANDING_SHARE * most_tokens:
            lines.append(format_line(line))
    if len(lines) == 1:
        return prose
    if head not in prose.splitlines():
        return "\n".join([*lines, prose])
    before, _, after = prose.partition(head)
    return f"{before}{chr(10).join(lines)}{after}"


def _stems(text: str) -> frozenset[str]:
    return frozenset(stem(word) if word.isascii() else word for word in terms(text))
