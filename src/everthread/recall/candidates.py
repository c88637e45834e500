"""Choose which messages are worth reading for a question, from the index alone, before any text is read. Pure.

For each term the index gives its postings: the messages that have it, as entry keys, which rise through a conversation
(keys of different conversations are far apart). They tell how rare a term is, which terms of the question a message
has, and which terms its neighbours have. So an answer that shares no word with the question is found through the
message that it answers.
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
"""The number of messages on either side to which a message lends a share of its score."""
_TOPIC_REACH = 8
"""The number of messages on either side that count as the topic around a message."""
_MAX_LENDERS = 300
"""Only this many of the best matches lend to their neighbours, which bounds the cost."""
_MIN_IDF_SHARE = 0.02
"""A term whose idf is below this share of the rarest term's occurs nearly everywhere: it does not tell where to look,
and its postings are the longest."""
_LENT_SHARE = 0.3
"""The share of its score that a message lends to the next one; half of that at each further step."""
_LENT_BY_STEP = [(step, _LENT_SHARE / 2 ** (step - 1)) for step in range(1, NEIGHBOUR_REACH + 1)]

PostingLists = Mapping[Term, Sequence[int]]
"""For each term, the keys of the messages that have it, ascending."""


def merge_forms(terms: Iterable[Term], postings: PostingLists) -> PostingLists:
    """Merge the postings of each term with those of its irregular forms (went, go)."""
    return {
        term: sorted({key for form in (term, *others) for key in postings[form]}) if others else postings[term]
        for term in terms
        for others in (other_forms(term),)
    }


def idf_by_term(postings: PostingLists, total: int) -> dict[Term, float]:
    """Return the inverse document frequency of each term."""
    return {term: idf(len(having), total) for term, having in postings.items()}


def drop_common_terms(
    postings: PostingLists, idfs: Mapping[Term, float], enough: int, hidden: Collection[int] = frozenset()
) -> PostingLists:
    """Drop the terms that occur nearly everywhere, provided that enough messages have one of the others. Messages whose
    seq is in `hidden` do not count, because they are not searched."""
    rarest = max((idfs[term] for term, having in postings.items() if having), default=0.0)
    rare = {term: having for term, having in postings.items() if idfs[term] >= _MIN_IDF_SHARE * rarest}
    keys = set[int]().union(*rare.values())
    if len(keys) < enough + len(hidden):
        keys = {key for key in keys if seq_of(key) not in hidden}
    return rare if len(keys) >= enough else postings


def choose_candidates(postings: PostingLists, idfs: Mapping[Term, float], limit: int) -> list[int]:
    """Return the keys of the likeliest messages, at most `limit`. Some have none of the words but good neighbours."""
    if not postings:
        return []
    scores = _score_messages(postings, idfs)
    tally = _tally_scores(scores, postings, idfs)
    with_lent = dict(scores)
    known = with_lent.get
    for key in _best(scores, _MAX_LENDERS, tally):
        score = scores[key]
        for step, share in _LENT_BY_STEP:
            lent, before, after = share * score, key - step, key + step
            with_lent[after] = known(after, 0.0) + lent
            with_lent[before] = known(before, 0.0) + lent
    least = _threshold(tally, limit)  # lending only ever adds, so the final threshold is not below this one
    likelier = {key: score for key, score in with_lent.items() if score > least}
    if len(likelier) >= limit:
        return _best(likelier, limit, Counter(likelier.values()))
    level = (key for key, score in with_lent.items() if score == least)
    return [*likelier, *islice(level, limit - len(likelier))]


def _score_messages(postings: PostingLists, idfs: Mapping[Term, float]) -> dict[int, float]:
    """Return, for each message, the sum of the idfs of the terms it has."""
    longest, *others = sorted(postings, key=lambda term: len(postings[term]), reverse=True)
    scores = dict.fromkeys(postings[longest], idfs[longest])  # in C: the longest list needs no additions
    known = scores.get
    for term in others:
        weight = idfs[term]
        for key in postings[term]:
            scores[key] = known(key, 0.0) + weight
    return scores


def _tally_scores(scores: Mapping[int, float], postings: PostingLists, idfs: Mapping[Term, float]) -> Counter[float]:
    """Count the messages with each score. Most messages have the commonest term and no other; they all have the same
    score and are counted by subtraction, without visiting them."""
    commonest = max(postings, key=lambda term: len(postings[term]), default=None)
    others = set[int]().union(*(having for term, having in postings.items() if term != commonest))
    tally = Counter(map(scores.__getitem__, others))
    if commonest is not None and len(scores) > len(others):
        tally[idfs[commonest]] += len(scores) - len(others)
    return tally


def _best(scores: Mapping[int, float], limit: int, tally: Mapping[float, int]) -> list[int]:
    """Return the keys with the greatest scores, best first. For thousands of messages, cutting at the threshold is
    ten times as fast as a heap."""
    least = _threshold(tally, limit)
    above = sorted([key for key, score in scores.items() if score > least], key=scores.__getitem__, reverse=True)
    level = (key for key, score in scores.items() if score == least)
    return [*above, *islice(level, max(0, limit - len(above)))][:limit]


def _threshold(tally: Mapping[float, int], limit: int) -> float:
    """Return the lowest of the `limit` greatest scores, or -1 when there are fewer. Many messages have exactly the same
    terms, so there are far fewer distinct scores to sort than messages."""
    for score in sorted(tally, reverse=True):
        limit -= tally[score]
        if limit <= 0:
            return score
    return -1.0


def score_surroundings(keys: Sequence[int], postings: PostingLists, idfs: Mapping[Term, float]) -> list[float]:
    """Return how much of the question is talked about around each of these messages (keys ascending). Each term
    counts once, and a little more when it is repeated."""
    scores = [0.0] * len(keys)
    for term, having in postings.items():
        weight, many, first = idfs[term], len(having), 0
        for at, key in enumerate(keys):
            first = bisect_left(having, key - _TOPIC_REACH, first)
            times = bisect_right(having, key + _TOPIC_REACH, first, min(many, first + 2 * _TOPIC_REACH + 1)) - first
            if times:
                scores[at] += weight * times / (times + 1)
    return scores
