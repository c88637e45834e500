"""Choose which messages are worth reading for a question, from the index alone, before any text is read. Pure.

For each term the index gives its postings: the messages that have it, as entry keys, which rise through a conversation
(keys of different conversations are far apart). They tell how rare a term is, which terms of the question a message
has, and which terms its neighbours have. So an answer that shares no word with the question is found through the
message that it answers.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice, pairwise
from types import MappingProxyType

from everthread.core.entries import seq_of
from everthread.core.queries import Term
from everthread.recall.query import RecallQuery, RelatedTerms
from everthread.text.bm25 import idf
from everthread.text.irregular_verbs import other_forms

NEIGHBOUR_REACH = 4
"""The number of messages on either side to which a message lends a share of its score."""
_TOPIC_REACH = 8
"""The number of messages on either side that count as the topic around a message."""
_FURTHEST = 3 * NEIGHBOUR_REACH
"""So far around what was found are a named speaker's messages looked for, where there is room."""
_MAX_LENDERS = 300
"""Only this many of the best matches lend to their neighbours, which bounds the cost."""
_MIN_IDF_SHARE = 0.02
"""A term whose idf is below this share of the rarest term's occurs nearly everywhere: it does not tell where to look,
and its postings are the longest."""
_LENT_SHARE = 0.3
"""The share of its score that a message lends to the next one; half of that at each further step."""
MAX_RELATED_POSTINGS = 1_000
"""A related word that more messages have tells nothing."""
_LENT_BY_STEP = [(step, _LENT_SHARE / 2 ** (step - 1)) for step in range(1, NEIGHBOUR_REACH + 1)]

_BESIDE = [step for step, _ in _LENT_BY_STEP] + [-step for step, _ in _LENT_BY_STEP]

PostingLists = Mapping[Term, Sequence[int]]
"""For each term, the keys of the messages that have it, ascending."""
_NONE: Mapping[Term, Mapping[int, float]] = MappingProxyType({})
_NO_SHARES: Mapping[int, float] = MappingProxyType({})


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


def weigh_related(
    query: RecallQuery, found: PostingLists, idfs: Mapping[Term, float], total: int, weight: float
) -> RelatedTerms:
    """Of the related terms those that some messages have but not too many, and what share of a term's worth each
    counts: less where it is the commoner word."""
    weighed: dict[Term, dict[int, float]] = {}
    for term, having in found.items():
        if 0 < len(having) <= MAX_RELATED_POSTINGS:
            own = idf(len(having), total)
            shares = {at: (share, idfs.get(query.terms[at], 0.0)) for at, share in query.related[term].items()}
            weighed[term] = {
                at: weight * share * min(1.0, own / whole) for at, (share, whole) in shares.items() if whole
            }
    return weighed


def substitutes(
    query: RecallQuery, related: RelatedTerms, found: PostingLists, postings: PostingLists
) -> dict[Term, dict[int, float]]:
    """For each term the messages that have only words related to it, and what share of its worth that is."""
    shares: dict[Term, dict[int, float]] = {}
    for term, by_place in related.items():
        for at, share in by_place.items():
            if query.terms[at] in postings:
                known = shares.setdefault(query.terms[at], {})
                known.update((key, share) for key in found[term] if known.get(key, 0.0) < share)
    for term, known in shares.items():
        for key in known.keys() & set(postings[term]):
            del known[key]
    return shares


def drop_common_terms(
    postings: PostingLists, idfs: Mapping[Term, float], enough: int, hidden: Collection[int] = frozenset()
) -> PostingLists:
    """Drop the terms that occur nearly everywhere, provided that enough messages have one of the others. Messages whose
    seq is in `hidden` do not count, because they are not searched."""
    rarest = max((idfs[term] for term, having in postings.items() if having), default=0.0)
    rare = {term: having for term, having in postings.items() if idfs[term] >= _MIN_IDF_SHARE * rarest}
    if not hidden and any(len(having) >= enough for having in rare.values()):
        return rare
    keys = set[int]().union(*rare.values())
    if len(keys) < enough + len(hidden):
        keys = {key for key in keys if seq_of(key) not in hidden}
    return rare if len(keys) >= enough else postings


def choose_candidates(
    postings: PostingLists, idfs: Mapping[Term, float], limit: int, related: Mapping[Term, Mapping[int, float]] = _NONE
) -> list[int]:
    """Return the keys of the likeliest messages, at most `limit`. Some have none of the words but related ones, or good
    neighbours."""
    if not postings:
        return []
    most = max(limit, _MAX_LENDERS)
    scores, left_out = _score_messages(postings, idfs, related, most)
    tally = Counter(scores.values())
    best = _best(scores, _MAX_LENDERS, tally)
    with_lent = dict(scores)
    if left_out:
        beside = {key + step for key in best for step in _BESIDE} - scores.keys()
        _add_terms(with_lent, beside, left_out, postings, idfs, related)
    known = with_lent.get
    for key in best:
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


def further_around(keys: Sequence[int], limit: int) -> list[int]:
    """Return the keys of at most `limit` messages that lie around these, the nearest first."""
    known, further = set(keys), dict[int, None]()
    for step in range(1, _FURTHEST + 1):
        for key in keys:
            if len(further) >= limit:
                return list(further)[:limit]
            further.update((one, None) for one in (key + step, key - step) if one not in known)
    return list(further)[:limit]


def _score_messages(
    postings: PostingLists, idfs: Mapping[Term, float], related: Mapping[Term, Mapping[int, float]], most: int
) -> tuple[dict[int, float], Sequence[Term]]:
    """Return, for each message, the sum of the idfs of the terms it has, or its share of those; and the terms whose
    messages are left out, unless they have one of the others: together these weigh less than the scores of the `most`
    best, so that what has nothing else is not among them. They are the commonest, whose lists are the longest."""
    scores: dict[int, float] = {}
    terms = sorted(postings, key=lambda term: idfs[term], reverse=True)
    for at, term in enumerate(terms):
        rest = terms[at:]
        if len(scores) >= most and sum(len(postings[one]) for one in rest) > len(scores):
            weight = sum(idfs[one] for one in rest)
            if weight < _threshold(Counter(scores.values()), most):
                _add_terms(scores, scores, rest, postings, idfs, related)
                return scores, rest
        _add_all(scores, postings[term], idfs[term])
        for key, share in related.get(term, _NO_SHARES).items():
            scores[key] = scores.get(key, 0.0) + share * idfs[term]
    return scores, ()


def _add_all(scores: dict[int, float], having: Sequence[int], weight: float) -> None:
    if not scores:
        scores.update(dict.fromkeys(having, weight))  # in C: the first list needs no additions
        return
    known = scores.get
    for key in having:
        scores[key] = known(key, 0.0) + weight


def _add_terms(
    scores: dict[int, float],
    among: Collection[int],
    terms: Iterable[Term],
    postings: PostingLists,
    idfs: Mapping[Term, float],
    related: Mapping[Term, Mapping[int, float]],
) -> None:
    """Add to the scores of these messages what they have of some terms."""
    for term in terms:
        weight = idfs[term]
        for key in filter(among.__contains__, postings[term]):
            scores[key] = scores.get(key, 0.0) + weight
        shares = related.get(term, _NO_SHARES)
        for key in among & shares.keys():
            scores[key] = scores.get(key, 0.0) + shares[key] * weight


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
        weight = idfs[term]
        for at, times in _times_around(keys, having):
            scores[at] += weight * times / (times + 1)
    return scores


def _times_around(keys: Sequence[int], having: Sequence[int]) -> Iterator[tuple[int, int]]:
    """How many of those that have a term lie around each of the keys, where any do; both ascend. A common term's are
    far more than the keys, and are not walked through."""
    return _around_each(keys, having) if len(having) > len(keys) else _near_each(keys, having)


def _around_each(keys: Sequence[int], having: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Of a common term: each key looks for those around it."""
    first = 0
    for at, key in enumerate(keys):
        first = bisect_left(having, key - _TOPIC_REACH, first)
        if times := bisect_right(having, key + _TOPIC_REACH, first) - first:
            yield at, times


def _near_each(keys: Sequence[int], having: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Of a rare term, as most of a question are: each message that has it looks for the keys it is near."""
    changes: dict[int, int] = {}
    first = 0
    for key in having:
        first = bisect_left(keys, key - _TOPIC_REACH, first)
        last = bisect_right(keys, key + _TOPIC_REACH, first)
        if first < last:
            changes[first] = changes.get(first, 0) + 1
            changes[last] = changes.get(last, 0) - 1
    times = 0
    for start, end in pairwise(sorted(changes)):
        times += changes[start]
        if times:
            yield from ((at, times) for at in range(start, end))
