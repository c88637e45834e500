"""Which share of a question a passage answers for: what decides whether a collection is asked at all. Pure.

A word counts by how rare it is among the passages, one that none has as much as the rarest; what merely asks ("mean",
"explain") does not count. Chinese is counted by characters and by
pairs of them, half and half, within stretches that hold no function word: pairs alone make two words of every three,
and single characters are found by chance.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from everthread.core.notes import NotesFound
from everthread.core.queries import Query
from everthread.text.words import character_pairs, fold, is_unspaced, split_runs_and_words, stem, tokenize

_FUNCTION = re.compile(
    "[是的了吗呢吧么什怎样多少几哪谁我你他她它们这那请问一下有没在和与或及就都也还要会能可以把被给对为从到啊呀嘛]+"
)

_ASKING = frozenset(
    map(stem, "mean means explain tell show find look give help happen describe say list question".split())
)
_LEAST_PASSAGES = 50


@dataclass(frozen=True, slots=True)
class Asked:
    """What a question asks for, weighed."""

    words: Mapping[str, float]
    stretches: Sequence[str]
    """Of scripts that are written without spaces."""

    @property
    def weight(self) -> float:
        return sum(self.words.values()) + sum(map(_weight, self.stretches))


def weighed(text: str, query: Query, found: NotesFound) -> Asked:
    """A question, by how rare its words are where it was looked for."""
    spaced = [term.token for term in query.terms if not is_unspaced(term.token) and term.token not in _ASKING]
    rarities = {term: _rarity(found.frequencies.get(term, 0), found.total) for term in spaced}
    most = max(rarities.values(), default=1.0)
    runs = [run for run, _ in split_runs_and_words(fold(text)) if run]
    stretches = [part for run in runs for part in _FUNCTION.split(run) if part]
    return Asked({term: rarity / most for term, rarity in rarities.items()}, stretches)


def _rarity(count: int, total: int) -> float:
    """BM25's idf, as if there were some passages more: in a small collection every word is common."""
    seen = max(count, 1)
    return math.log1p((max(total, _LEAST_PASSAGES) - min(seen, total) + 0.5) / (seen + 0.5))


def answered(text: str, asked: Asked) -> float:
    """How much of the question a passage has, 0 to 1."""
    if not asked.weight:
        return 0.0
    there = set(tokenize(text)) if asked.words else set()
    plain = fold(text)
    had = sum(weight for word, weight in asked.words.items() if word in there)
    had += sum(_weight(stretch) * _share(stretch, plain) for stretch in asked.stretches)
    return had / asked.weight


def _weight(stretch: str) -> float:
    """A word of Chinese has two characters."""
    return len(stretch) / 2


def _share(stretch: str, text: str) -> float:
    characters = sum(char in text for char in stretch) / len(stretch)
    if len(stretch) == 1:
        return characters
    return (characters + sum(pair in text for pair in character_pairs(stretch)) / (len(stretch) - 1)) / 2
