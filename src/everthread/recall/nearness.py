"""Which messages are worth reading, by where the question's words stand and before any text is read.

An index tells for each term the messages that have it, as numbers that rise through a conversation; those of two
conversations are far apart. From these alone follow how rare a term is, what a message has of the question, and what
stands around it: an answer that shares no word with the question is found by the question it answers.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import islice

from everthread.core.queries import Term

REACH = 4
"""So many messages to either side lend to a message what they have of the question."""
AROUND = 8
"""So many messages to either side make up what is talked about."""
MOST_LENDING = 1_000
"""Of the messages that have a word, the best so many lend to those around them."""
_LENT = 0.3
"""What the next message lends of what it has; half of it at each further step."""

Places = Mapping[Term, Sequence[int]]
"""Of each term the messages that have it, in rising order."""


def rarities(places: Places, total: int) -> dict[Term, float]:
    """How much each term tells: BM25's idf, never below zero."""
    return {
        term: math.log1p((max(total, len(having)) - len(having) + 0.5) / (len(having) + 0.5))
        for term, having in places.items()
    }


def worth_reading(places: Places, rarity: Mapping[Term, float], most: int) -> list[int]:
    """The messages that are likeliest to be found, at most so many; among them some that have none of the words."""
    own: defaultdict[int, float] = defaultdict(float)
    for term, having in places.items():
        weight = rarity[term]
        for order in having:
            own[order] += weight
    with_lent = own.copy()
    for order in _best(own, MOST_LENDING):
        share = _LENT * own[order]
        for step in range(1, REACH + 1):
            with_lent[order + step] += share
            with_lent[order - step] += share
            share /= 2
    return _best(with_lent, most)


def _best(scores: Mapping[int, float], most: int) -> list[int]:
    """The greatest, best first. Among thousands, finding where they end is ten times as fast as a heap of them."""
    cut = sorted(scores.values())[-most] if 0 < most < len(scores) else -1.0
    above = sorted((order for order, score in scores.items() if score > cut), key=scores.__getitem__, reverse=True)
    level = (order for order, score in scores.items() if score == cut)
    return [*above, *islice(level, max(0, most - len(above)))][:most]


def talk_around(order: int, places: Places, rarity: Mapping[Term, float]) -> float:
    """How much of the question is talked about where this message stands: each term counts once, and a little more
    when it is said again."""
    found = 0.0
    for term, having in places.items():
        first = bisect_left(having, order - AROUND)
        times = bisect_right(having, order + AROUND, first) - first
        if times:
            found += rarity[term] * times / (times + 1)
    return found
