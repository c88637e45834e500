"""Order what a search found: the candidates an index gave, with their texts, become hits, best first.

An index says which of the newest messages have the words, and is asked for a bounded number of them; this
module reads those texts again and scores them as BM25 does, on every store alike:

- a rare word weighs more than a common one, by the counted messages that have it and, because such counts are
  capped, also by the share of the candidates that have it;
- a word said often counts more, but ever less so, and less in a long text;
- words that stand together in the question and in the message add to the score;
- a phrase must be there, word for word by their tokens, or the message is no hit;
- of equal scores the newer message, which has the greater key, comes first.

Of a long text only the stretch around its first match is read; a phrase is looked for in the whole.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from everthread.history.match import Group, Query, Term, stretch
from everthread.history.words import tokens

_READ_CHARS = 4_000
_PHRASE_CHARS = 1_000_000

_SATURATION = 1.2
_LENGTH_SHARE = 0.75
"""BM25's k1 and b, at their usual values."""

_COMMON_AMONG_CANDIDATES = 0.9
"""How much of its weight a word loses that all candidates have."""

_NEIGHBOUR_SHARE = 0.5
"""What two words add by standing together, as a share of the lighter one's weight."""

_UNSEEN_COUNT = 0.25
"""What a word counts that the read stretch of a long text does not have; the rest of it may."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A message that an index gave for a query."""

    key: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """A hit; its score is above zero and compares only with the others of the same search."""

    key: int
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    """What a candidate's text has of the query."""

    key: int
    length: int
    counts: tuple[float, ...]
    """How often each term of the query occurs."""
    neighbours: tuple[bool, ...]
    """Whether each term of the query is somewhere followed by the next one."""


def rank(query: Query, candidates: Iterable[Candidate], frequencies: Mapping[str, int], total: int) -> list[Ranked]:
    """Give the hits among the candidates, best first.

    `frequencies` are the numbers of messages that have a token, as far as they were counted, out of `total`;
    a token that is not in it is taken to be as frequent as the candidates show.
    """
    texts = {candidate.key: candidate.text for candidate in candidates}
    readings = [_read(query, key, text) for key, text in texts.items() if _has_phrases(query, text)]
    readings = [reading for reading in readings if any(reading.counts)]
    if not readings:
        return []
    weights = _weights(query.terms, readings, frequencies, total)
    average = sum(reading.length for reading in readings) / len(readings)
    hits = (Ranked(key=reading.key, score=_score(reading, weights, average)) for reading in readings)
    return sorted(hits, key=lambda hit: (-hit.score, -hit.key))


def _read(query: Query, key: int, text: str) -> _Reading:
    read = tokens(stretch(text, query, _READ_CHARS))
    places = _places(query.terms, read)
    unseen = _UNSEEN_COUNT if len(text) > _READ_CHARS else 0
    return _Reading(
        key=key,
        length=len(read),
        counts=tuple(len(at) or unseen for at in places),
        neighbours=tuple(not following.isdisjoint({at + 1 for at in here}) for here, following in pairwise(places)),
    )


def _places(terms: Sequence[Term], read: Sequence[str]) -> list[set[int]]:
    """Give for each term the places where the text has it."""
    places: list[set[int]] = [set() for _ in terms]
    exact = {term.token: found for term, found in zip(terms, places, strict=True) if not term.is_prefix}
    prefixes = {term.token: found for term, found in zip(terms, places, strict=True) if term.is_prefix}
    for at, token in enumerate(read):
        if token in exact:
            exact[token].add(at)
        if prefixes and token[0] in prefixes:
            prefixes[token[0]].add(at)
    return places


def _has_phrases(query: Query, text: str) -> bool:
    if not query.phrases:
        return True
    read = tokens(text[:_PHRASE_CHARS])
    return all(_has_phrase(phrase, read) for phrase in query.phrases)


def _has_phrase(phrase: Group, read: Sequence[str]) -> bool:
    places = [_places([term], read)[0] for term in phrase.terms]
    return any(all(first + distance in found for distance, found in enumerate(places)) for first in places[0])


def _weights(
    terms: Sequence[Term], readings: Sequence[_Reading], frequencies: Mapping[str, int], total: int
) -> list[float]:
    weights = []
    for position, term in enumerate(terms):
        having = sum(reading.counts[position] >= 1 for reading in readings)
        frequency = max(having, frequencies.get(term.token, 0))
        rarity = math.log1p((max(total, frequency) - frequency + 0.5) / (frequency + 0.5))
        weights.append(rarity * (1 - _COMMON_AMONG_CANDIDATES * having / len(readings)))
    return weights


def _score(reading: _Reading, weights: Sequence[float], average: float) -> float:
    norm = _SATURATION * (1 - _LENGTH_SHARE + _LENGTH_SHARE * reading.length / average)
    words = sum(
        weight * count * (_SATURATION + 1) / (count + norm)
        for weight, count in zip(weights, reading.counts, strict=True)
    )
    together = sum(
        min(pair) * _NEIGHBOUR_SHARE
        for pair, are_neighbours in zip(pairwise(weights), reading.neighbours, strict=True)
        if are_neighbours
    )
    return words + together
