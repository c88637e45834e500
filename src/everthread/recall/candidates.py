"""Choose which messages are worth reading for a question, by where its words stand and before any text is read. Pure.

An index gives for each term the messages that have it (its postings), as numbers that rise through a conversation;
those of two conversations are far apart. From these alone follow how rare a term is, what a message has of the
question, and what stands around it: an answer that shares no word with the question is found by the question it
answers.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import islice

from everthread.core.entries import seq_of
from everthread.core.queries import Term
from everthread.text.bm25 import idf
from everthread.text.irregular_verbs import other_forms

NEIGHBOUR_REACH = 4
"""So many messages to either side lend to a message what they have of the question."""
_TOPIC_REACH = 8
"""So many messages to either side make up what is talked about."""
_MAX_LENDERS = 300
"""Of the messages that have a word, the best so many lend to those around them."""
_MIN_IDF_SHARE = 0.02
"""A term whose idf is below this share of the rarest one's stands nearly everywhere: it says nothing of where to look,
and has the longest list of all."""
_LENT_SHARE = 0.3
"""What the next message lends of what it has; half of it at each further step."""
_LENT_BY_STEP = [(step, _LENT_SHARE / 2 ** (step - 1)) for step in range(1, NEIGHBOUR_REACH + 1)]

TermOrders = Mapping[Term, Sequence[int]]
"""Of each term the messages that have it, in rising order."""


def merge_forms(terms: Iterable[Term], postings: TermOrders) -> TermOrders:
    """Of each term the messages that have it in one of its forms."""
    return {
        term: sorted({order for form in (term, *others) for order in postings[form]}) if others else postings[term]
        for term in terms
        for others in (other_forms(term),)
    }


def idf_by_term(postings: TermOrders, total: int) -> dict[Term, float]:
    """How much each term tells."""
    return {term: idf(len(having), total) for term, having in postings.items()}


def drop_common_terms(
    postings: TermOrders, idfs: Mapping[Term, float], enough: int, hidden: Collection[int] = frozenset()
) -> TermOrders:
    """Without the terms that stand nearly everywhere, where enough messages have others; those hidden, by their seqs,
    are not looked for."""
    rarest = max((idfs[term] for term, having in postings.items() if having), default=0.0)
    rare = {term: having for term, having in postings.items() if idfs[term] >= _MIN_IDF_SHARE * rarest}
    orders = set[int]().union(*rare.values())
    if len(orders) < enough + len(hidden):
        orders = {order for order in orders if seq_of(order) not in hidden}
    return rare if len(orders) >= enough else postings


def choose_candidates(postings: TermOrders, idfs: Mapping[Term, float], limit: int) -> list[int]:
    """The messages that are likeliest to be found, at most so many; among them some that have none of the words."""
    if not postings:
        return []
    scores = _score_messages(postings, idfs)
    tally = _tally_scores(scores, postings, idfs)
    with_lent = dict(scores)
    known = with_lent.get
    for order in _best(scores, _MAX_LENDERS, tally):
        score = scores[order]
        for step, share in _LENT_BY_STEP:
            lent, before, after = share * score, order - step, order + step
            with_lent[after] = known(after, 0.0) + lent
            with_lent[before] = known(before, 0.0) + lent
    least = _threshold(tally, limit)  # lending takes from nobody, so that it takes this much at least
    likelier = {order: score for order, score in with_lent.items() if score > least}
    if len(likelier) >= limit:
        return _best(likelier, limit, Counter(likelier.values()))
    level = (order for order, score in with_lent.items() if score == least)
    return [*likelier, *islice(level, limit - len(likelier))]


def _score_messages(postings: TermOrders, idfs: Mapping[Term, float]) -> dict[int, float]:
    """What each message has of the question."""
    longest, *others = sorted(postings, key=lambda term: len(postings[term]), reverse=True)
    scores = dict.fromkeys(postings[longest], idfs[longest])  # at once, as no other list is
    known = scores.get
    for term in others:
        weight = idfs[term]
        for order in postings[term]:
            scores[order] = known(order, 0.0) + weight
    return scores


def _tally_scores(scores: Mapping[int, float], postings: TermOrders, idfs: Mapping[Term, float]) -> Counter[float]:
    """How many messages have each score. The commonest term is most of all that was found, and those that have nothing
    else need not be looked at one by one."""
    commonest = max(postings, key=lambda term: len(postings[term]), default=None)
    others = set[int]().union(*(having for term, having in postings.items() if term != commonest))
    tally = Counter(map(scores.__getitem__, others))
    if commonest is not None and len(scores) > len(others):
        tally[idfs[commonest]] += len(scores) - len(others)
    return tally


def _best(scores: Mapping[int, float], limit: int, tally: Mapping[float, int]) -> list[int]:
    """The greatest, best first. Among thousands, finding where they end is ten times as fast as a heap of them."""
    least = _threshold(tally, limit)
    above = sorted([order for order, score in scores.items() if score > least], key=scores.__getitem__, reverse=True)
    level = (order for order, score in scores.items() if score == least)
    return [*above, *islice(level, max(0, limit - len(above)))][:limit]


def _threshold(tally: Mapping[float, int], limit: int) -> float:
    """The least of the greatest scores, -1 where all are. Many messages have the very same words, so that there are far
    fewer scores to put in order than messages."""
    for score in sorted(tally, reverse=True):
        limit -= tally[score]
        if limit <= 0:
            return score
    return -1.0


def score_surroundings(orders: Sequence[int], postings: TermOrders, idfs: Mapping[Term, float]) -> list[float]:
    """How much of the question is talked about around each of these messages, given in rising order: each term counts
    once, and a little more when it is said again."""
    scores = [0.0] * len(orders)
    for term, having in postings.items():
        weight, many, first = idfs[term], len(having), 0
        for at, order in enumerate(orders):
            first = bisect_left(having, order - _TOPIC_REACH, first)
            times = bisect_right(having, order + _TOPIC_REACH, first, min(many, first + 2 * _TOPIC_REACH + 1)) - first
            if times:
                scores[at] += weight * times / (times + 1)
    return scores
