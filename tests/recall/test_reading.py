"""Counting a question's terms: what a text has of them, whatever the script."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from everthread.core.queries import Term
from everthread.recall.asking import asked
from everthread.recall.nearness import worth_reading
from everthread.text.words import tokenize

TEXTS = st.text(alphabet="ab film导演字? '\n．é", max_size=80)


@given(question=TEXTS, text=TEXTS)
def test_a_reading_counts_the_tokens_of_the_index(question: str, text: str) -> None:
    wanted = asked(question)
    found = tokenize(text)
    reading = wanted.reader().read(text)
    assert reading.length == len(found)
    counts = [
        sum(token[0] == term.token if term.is_prefix else token == term.token for token in found)
        for term in wanted.terms
    ]
    assert list(reading.found) == [(at, count) for at, count in enumerate(counts) if count]


@given(
    having=st.lists(st.lists(st.integers(100, 160), unique=True), min_size=1, max_size=4),
    weights=st.lists(st.sampled_from([0.5, 1.0, 1.7]), min_size=4, max_size=4),
    most=st.integers(1, 30),
)
def test_nobody_left_out_has_more_than_one_worth_reading(
    having: list[list[int]], weights: list[float], most: int
) -> None:
    terms = [Term(token=str(number)) for number in range(len(having))]
    places = {term: sorted(orders) for term, orders in zip(terms, having, strict=True)}
    rarity = dict(zip(terms, weights, strict=False))
    scores = {order: 0.0 for order in range(90, 171)}
    for term, orders in places.items():
        for order in orders:
            scores[order] += rarity[term]
            for step in range(1, 5):
                scores[order + step] += 0.3 * rarity[term] / 2 ** (step - 1)
                scores[order - step] += 0.3 * rarity[term] / 2 ** (step - 1)
    found = worth_reading(places, rarity, most)
    left_out = [score for order, score in scores.items() if order not in found]
    assert len(found) == len(set(found)) == min(most, sum(score > 0 for score in scores.values()))
    if found:
        assert min(scores[order] for order in found) >= max(left_out) - 1e-9
