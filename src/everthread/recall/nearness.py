"""Which messages are worth reading, by where the question's words stand and before any text is read.

An index tells for each term the messages that have it, as numbers that rise through a conversation; those of two
conversations are far apart. From these alone follow how rare a term is, what a message has of the question, and what
stands around it: an answer that shares no word with the question is found by the question it answers.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import islice

from everthread.core.ports import seq_of
from everthread.core.queries import Term
from everthread.text.irregular_verbs import other_forms

REACH = 4
"""So many messages to either side lend to a message what they have of the question."""
AROUND = 8
"""So many messages to either side make up what is talked about."""
MOST_LENDING = 300
"""Of the messages that have a word, the best so many lend to those around them."""
_TELLING = 0.02
"""A term that tells less than this share of what the rarest does stands nearly everywhere: it says nothing of where to
look, and has the longest list of all."""
_LENT = 0.3
"""What the next message lends of what it has; half of it at each further step."""
_LENT_STEPS = [(step, _LENT / 2 ** (step - 1)) for step in range(1, REACH + 1)]

Places = Mapping[Term, Sequence[int]]
"""Of each term the messages that have it, in rising order."""


def in_any_form(terms: Iterable[Term], places: Places) -> Places:
    """Of each term the messages that have it in one of its forms."""
    return {
        term: sorted({order for form in (term, *others) for order in places[form]}) if others else places[term]
        for term in terms
        for others in (other_forms(term),)
    }


def rarities(places: Places, total: int) -> dict[Term, float]:
    """How much each term tells: BM25's idf, never below zero."""
    return {
        term: math.log1p((max(total, len(having)) - len(having) + 0.5) / (len(having) + 0.5))
        for term, having in places.items()
    }


def telling(places: Places, rarity: Mapping[Term, float], enough: int, hidden: Collection[int] = frozenset()) -> Places:
    """Without the terms that stand nearly everywhere, where enough messages have others; those hidden, by their seqs,
    are not looked for."""
    rarest = max((rarity[term] for term, having in places.items() if having), default=0.0)
    found = {term: having for term, having in places.items() if rarity[term] >= _TELLING * rarest}
    others = set[int]().union(*found.values())
    if len(others) < enough + len(hidden):
        others = {order for order in others if seq_of(order) not in hidden}
    return found if len(others) >= enough else places


def worth_reading(places: Places, rarity: Mapping[Term, float], most: int) -> list[int]:
    """The messages that are likeliest to be found, at most so many; among them some that have none of the words."""
    if not places:
        return []
    own = _own(places, rarity)
    tally = _tally(own, places, rarity)
    with_lent = dict(own)
    known = with_lent.get
    for order in _best(own, MOST_LENDING, tally):
        has = own[order]
        for step, share in _LENT_STEPS:
            lent, before, after = share * has, order - step, order + step
            with_lent[after] = known(after, 0.0) + lent
            with_lent[before] = known(before, 0.0) + lent
    least = _cut(tally, most)  # with what is lent nobody has less, so that it takes this much at least
    likelier = {order: score for order, score in with_lent.items() if score > least}
    if len(likelier) >= most:
        return _best(likelier, most, Counter(likelier.values()))
    level = (order for order, score in with_lent.items() if score == least)
    return [*likelier, *islice(level, most - len(likelier))]


def _own(places: Places, rarity: Mapping[Term, float]) -> dict[int, float]:
    """What each message has of the question."""
    longest, *others = sorted(places, key=lambda term: len(places[term]), reverse=True)
    own = dict.fromkeys(places[longest], rarity[longest])  # at once, as no other list is
    has = own.get
    for term in others:
        weight = rarity[term]
        for order in places[term]:
            own[order] = has(order, 0.0) + weight
    return own


def _tally(own: Mapping[int, float], places: Places, rarity: Mapping[Term, float]) -> Counter[float]:
    """How many messages have each score. The commonest term is most of all that was found, and those that have nothing
    else need not be looked at one by one."""
    commonest = max(places, key=lambda term: len(places[term]), default=None)
    others = set[int]().union(*(having for term, having in places.items() if term != commonest))
    tally = Counter(map(own.__getitem__, others))
    if commonest is not None and len(own) > len(others):
        tally[rarity[commonest]] += len(own) - len(others)
    return tally


def _best(scores: Mapping[int, float], most: int, tally: Mapping[float, int]) -> list[int]:
    """The greatest, best first. Among thousands, finding where they end is ten times as fast as a heap of them."""
    cut = _cut(tally, most)
    above = sorted([order for order, score in scores.items() if score > cut], key=scores.__getitem__, reverse=True)
    level = (order for order, score in scores.items() if score == cut)
    return [*above, *islice(level, max(0, most - len(above)))][:most]


def _cut(tally: Mapping[float, int], most: int) -> float:
    """The least of the greatest, -1 where all are. Many messages have the very same words, so that there are far fewer
    scores to put in order than messages."""
    for score in sorted(tally, reverse=True):
        most -= tally[score]
        if most <= 0:
            return score
    return -1.0


def talk_around(orders: Sequence[int], places: Places, rarity: Mapping[Term, float]) -> list[float]:
    """How much of the question is talked about where these messages stand, given in rising order: each term counts
    once, and a little more when it is said again."""
    found = [0.0] * len(orders)
    for term, having in places.items():
        weight, many, first = rarity[term], len(having), 0
        for at, order in enumerate(orders):
            first = bisect_left(having, order - AROUND, first)
            times = bisect_right(having, order + AROUND, first, min(many, first + 2 * AROUND + 1)) - first
            if times:
                found[at] += weight * times / (times + 1)
    return found
