"""How good a ranked answer is, what the difference between two systems is worth, and the plain BM25 beside which recall
is measured."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from benchmarks.everyday import Talk
from everthread.recall.query import TermCounter, parse_question
from everthread.text.bm25 import bm25, idf

Scores = Mapping[str, float]
_BUDGET_TOKENS = 2_000
_DRAWS = 2_000


class FoundText(NamedTuple):
    """One thing that a system returned: the messages it shows, and the text."""

    ids: Sequence[str]
    text: str


def score(found: Sequence[FoundText], evidence: frozenset[str]) -> Scores:
    """`all` is 1 where every evidence message is there, `frac` their share; among ten, or within 2,000 tokens, where a
    text that does not fit ends the list, as it would in a prompt."""
    seen: set[str] = set()
    first, spent, within, tokens_of_ten, of_ten = 0.0, 0, 0, 0, 0
    for rank, one in enumerate(found, 1):
        spent += estimate_tokens(one.text)
        new = evidence.intersection(one.ids) - seen
        seen |= new
        first = first or (1 / rank if new else 0.0)
        if spent <= _BUDGET_TOKENS:
            within = len(seen)
        if rank <= 10:
            tokens_of_ten, of_ten = spent, len(seen)
    return {
        "all@10": float(of_ten == len(evidence)),
        "frac@10": of_ten / len(evidence),
        "all@2000t": float(within == len(evidence)),
        "frac@2000t": within / len(evidence),
        "mrr": first,
        "tokens@10": tokens_of_ten,
    }


def estimate_tokens(text: str) -> int:
    """Four characters to the token, one of Chinese, Japanese or Korean: the same for every system."""
    wide = sum(
        1 for one in text if "\u3000" <= one <= "\u9fff" or "\uac00" <= one <= "\ud7af" or "\uff00" <= one <= "\uffef"
    )
    return wide + math.ceil((len(text) - wide) / 4)


def paired_interval(differences: Sequence[float]) -> tuple[float, float]:
    """Between which values the mean difference lies in 95 of 100 draws of questions, with repeats."""
    rng = random.Random(7)
    count = len(differences)
    means = sorted(sum(rng.choices(differences, k=count)) / count for _ in range(_DRAWS))
    return means[int(_DRAWS * 0.025)], means[int(_DRAWS * 0.975)]


class PlainBM25:
    """BM25 over whole messages with their speakers' names, by the same terms of a question that recall looks for: what
    differs from recall is the ranking alone."""

    def index(self, talk: Talk) -> None:
        """Hold the messages."""
        self._texts = [FoundText([one.id], f"{one.speaker}: {one.text}") for one in talk.messages]

    def search(self, question: str, limit: int, asked_at: datetime | None = None) -> list[FoundText]:
        """Those that have a word of the question, the best first and of equal ones the earlier."""
        terms = parse_question(question).terms
        count = TermCounter(terms).count
        counted = [count(one.text) for one in self._texts]
        having = Counter(term for one in counted for term, _ in one.counts)
        weights = [idf(having[term], len(counted)) for term in range(len(terms))]
        average = sum(one.length for one in counted) / len(counted)
        scores = [bm25(one.counts, one.length, average, weights) for one in counted]
        order = sorted((at for at, score in enumerate(scores) if score > 0), key=lambda at: -scores[at])
        return [self._texts[at] for at in order[:limit]]

    def close(self) -> None:
        """Nothing is held open."""
