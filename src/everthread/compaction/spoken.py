"""The pieces of a span where they stand: who said each, in answer to what, and whether anyone answered.

A piece alone is often not understood ("yes, the second one"); what it answers is found here, once, so that
weighing and writing need not look at the messages again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from everthread.compaction.sources import Source, is_user
from everthread.text import cues
from everthread.text.sentences import Piece, split_sentences
from everthread.text.terms import terms

# A reply of so few content words says nothing without the question before it.
SHORT_TERMS = 6
# Below this share of the messages users only set the task.
_RARE_SHARE = 0.2
# Someone who asks does so at the end of what they say.
_LAST_PIECES = 2
# Among so many of the first pieces of the users the goal of a span is looked for.
_OPENING_PIECES = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Spoken:
    """A piece where it stands in the span."""

    source: Source
    piece: Piece
    place: int
    """Its place among the pieces of its message."""
    progress: float
    """How far through the span its message is, up to 1."""
    terms: tuple[str, ...]
    question: Spoken | None
    """What it answers, when it is too short to be understood alone."""
    answered: bool
    """Whether someone else spoke after it."""
    among_people: bool
    """Whether only people talk: their questions to each other are talk, not tasks."""
    works_alone: bool
    """Whether users are rare in the span: the one who works says what is decided."""


def spoken(sources: Sequence[Source]) -> Iterator[Spoken]:
    """Every piece that someone said, in order; what tools answered is no one's words."""
    answered = _answered(sources)
    speaking = [is_user(source) for source in sources if source.text.strip() and not source.is_tool_result]
    among_people, works_alone = all(speaking), sum(speaking) < _RARE_SHARE * len(speaking)
    before: list[Spoken] = []
    for at, source in enumerate(sources):
        pieces = [] if source.is_tool_result else _said_together(split_sentences(source.text))
        said: list[Spoken] = []
        for place, piece in enumerate(pieces):
            words = () if piece.kind == "code" else tuple(terms(piece.text))
            alone = place == 0 and len(pieces) <= _LAST_PIECES
            said.append(
                Spoken(
                    source=source,
                    piece=piece,
                    place=place,
                    progress=(at + 1) / len(sources),
                    terms=words,
                    question=_question(before, source) if alone and _is_short(words, piece.text) else None,
                    answered=answered[at],
                    among_people=among_people,
                    works_alone=works_alone,
                )
            )
        yield from said
        # Tool calls and their results between a question and its answer change nothing.
        before = said[-_LAST_PIECES:] or before


def _said_together(pieces: list[Piece]) -> list[Piece]:
    """A yes and what follows it are one reply."""
    if len(pieces) != _LAST_PIECES or {piece.kind for piece in pieces} != {"prose"}:
        return pieces
    first, second = pieces
    if not cues.affirms(first.text) or len(terms(first.text)) > 1:
        return pieces
    return [Piece(kind="prose", text=f"{first.text} {second.text}")]


def opening(said: Sequence[Spoken]) -> Spoken | None:
    """What a user came with: the first thing they want or ask for; at a conversation's start, their first words."""
    able = list(islice((one for one in said if _can_open(one)), _OPENING_PIECES))
    if able and said[0].source.seq == 1:
        return able[0]
    return next((one for one in able if cues.aims(one.piece.text) or cues.asks(one.piece.text)), None)


def _question(before: Sequence[Spoken], source: Source) -> Spoken | None:
    if not before or (before[0].source.role, before[0].source.name) == (source.role, source.name):
        return None
    asking = (one for one in reversed(before) if cues.proposes(one.piece.text) or cues.asks(one.piece.text))
    return next(asking, None)


def _is_short(words: Sequence[str], text: str) -> bool:
    return len(words) <= SHORT_TERMS or (len(words) <= 2 * SHORT_TERMS and cues.affirms(text))


def _can_open(one: Spoken) -> bool:
    text = one.piece.text
    if not is_user(one.source) or one.piece.kind != "prose" or cues.is_polite(text) or cues.affirms(text):
        return False
    return len(one.terms) >= 3


def _answered(sources: Sequence[Source]) -> list[bool]:
    """For each message, whether anyone but its speaker says something later in the span."""
    answered = [False] * len(sources)
    later: set[tuple[str, str | None]] = set()
    for at in range(len(sources) - 1, -1, -1):
        speaker = (sources[at].role, sources[at].name)
        answered[at] = bool(later - {speaker})
        if sources[at].text.strip() and not sources[at].is_tool_result:
            later.add(speaker)
    return answered
