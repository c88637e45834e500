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
from typing import NamedTuple

from everthread.core.queries import Query, Term
from everthread.history.match import stretch
from everthread.text.words import is_unspaced, tokens

_READ_CHARS = 4_000
_PHRASE_CHARS = 1_000_000

_SATURATION = 1.2
_LENGTH_SHARE = 0.75
"""BM25's k1 and b, at their usual values."""

_LEAST_RARITY = 0.1
"""What a word weighs that all messages have, or as many as were counted."""

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


class _Reading(NamedTuple):
    """What a candidate's text has of the query."""

    key: int
    length: int
    counts: list[float]
    """How often each term of the query occurs."""
    neighbours: list[bool]
    """Whether each term of the query is somewhere followed by the next one."""


class _Reader:
    """Reads texts for one query: asked hundreds of times a search, so what it looks for is laid out once."""

    def __init__(self, query: Query) -> None:
        self.query = query
        self.terms = query.terms
        self.phrases = query.phrases
        self._exact = {term.token: place for place, term in enumerate(self.terms) if not term.is_prefix}
        self._prefixes = {term.token: place for place, term in enumerate(self.terms) if term.is_prefix}
        self._is_unspaced = all(is_unspaced(term.token) for term in self.terms)
        self._joined = [_joined(one.token, other.token) for one, other in pairwise(self.terms)]

    def read(self, key: int, text: str) -> _Reading:
        part = stretch(text, self.query, _READ_CHARS)
        unseen = _UNSEEN_COUNT if len(part) < len(text) else 0
        if self._is_unspaced and (reading := self._read_characters(key, part, unseen)):
            return reading
        found = tokens(part)
        places = self._places(found)
        return _Reading(
            key,
            len(found),
            [len(at) or unseen for at in places],
            [any(at + 1 in following for at in here) for here, following in pairwise(places)],
        )

    def _read_characters(self, key: int, part: str, unseen: float) -> _Reading | None:
        """Count characters as they stand: ten times as fast, but blind to those that NFKC makes of others."""
        counts = [part.count(term.token) for term in self.terms]
        if not any(counts):
            return None
        neighbours = [joined in part for joined in self._joined]
        return _Reading(key, len(part), [count or unseen for count in counts], neighbours)

    def has_phrases(self, text: str) -> bool:
        if not self.phrases:
            return True
        found = tokens(text[:_PHRASE_CHARS])
        places = dict(zip(self.terms, self._places(found), strict=True))
        return all(_stand_together([places[term] for term in phrase.terms]) for phrase in self.phrases)

    def _places(self, found: Sequence[str]) -> list[set[int]]:
        """Give for each term of the query the places where it is among the tokens of a text."""
        places: list[set[int]] = [set() for _ in self.terms]
        exact, prefixes = self._exact, self._prefixes
        for at, token in [(at, token) for at, token in enumerate(found) if token in exact]:
            places[exact[token]].add(at)
        if prefixes:
            for at, token in [(at, token) for at, token in enumerate(found) if token[0] in prefixes]:
                places[prefixes[token[0]]].add(at)
        return places


def rank(query: Query, candidates: Iterable[Candidate], frequencies: Mapping[str, int], total: int) -> list[Ranked]:
    """Give the hits among the candidates, best first.

    `frequencies` are the numbers of messages that have a token, as far as they were counted, out of `total`;
    a token that is not in it is taken to be as frequent as the candidates show.
    """
    reader = _Reader(query)
    texts = {candidate.key: candidate.text for candidate in candidates}
    readings = [reader.read(key, text) for key, text in texts.items() if reader.has_phrases(text)]
    readings = [reading for reading in readings if any(reading.counts)]
    if not readings:
        return []
    weights = _weights(reader.terms, readings, frequencies, total)
    average = sum(reading.length for reading in readings) / len(readings)
    hits = (Ranked(key=reading.key, score=_score(reading, weights, average)) for reading in readings)
    return sorted(hits, key=lambda hit: (-hit.score, -hit.key))


def _joined(one: str, other: str) -> str:
    """Give what stands in a text where two unspaced tokens follow each other; pairs of one run overlap."""
    return one + other[1:] if one[-1] == other[0] else one + other


def _stand_together(places: Sequence[set[int]]) -> bool:
    """Tell whether there is a place from which on each term has the next place."""
    return any(all(first + distance in at for distance, at in enumerate(places)) for first in places[0])


def _weights(
    terms: Sequence[Term], readings: Sequence[_Reading], frequencies: Mapping[str, int], total: int
) -> list[float]:
    weights = []
    for position, term in enumerate(terms):
        having = sum(reading.counts[position] >= 1 for reading in readings)
        frequency = max(having, frequencies.get(term.token, 0))
        rarity = math.log1p((max(total, frequency) - frequency + 0.5) / (frequency + 0.5))
        weights.append(max(rarity, _LEAST_RARITY) * (1 - _COMMON_AMONG_CANDIDATES * having / len(readings)))
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
