"""BM25, the formula that full-text search ranks by: one for search, recall and knowledge.

A text scores, for each term of the question it has, how rare the term is (`idf`) times how often the text has it. The
count saturates, so that a word said ten times is not worth ten, and it weighs less in a text longer than the others.

Summaries weigh terms by another formula (`text.terms.tf_idf_weights`): there no question is asked, and a term that
one message repeats is what the message is about.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

_K1, _B = 1.2, 0.75
"""How soon a count saturates, and how much a text's length matters; the values in common use."""


def idf(frequency: int, total: int) -> float:
    """How much a term tells that `frequency` of `total` texts have; never below zero.

    Stores count up to a cap and estimate the total, so that the frequency may be the greater of the two.
    """
    return math.log1p((max(total, frequency) - frequency + 0.5) / (frequency + 0.5))


def bm25(counts: Iterable[tuple[int, float]], length: int, average_length: float, weights: Sequence[float]) -> float:
    """The score of one text: `counts` are the terms it has, by their place in `weights`, and how often."""
    norm = _K1 * (1 - _B + _B * length / average_length)
    score = 0.0
    for term, count in counts:
        score += weights[term] * count * (_K1 + 1) / (count + norm)
    return score
