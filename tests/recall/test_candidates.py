"""Which messages are read for a question: chosen by where its words stand."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everthread.core.queries import Term
from everthread.recall.candidates import (
    choose_candidates,
    drop_common_terms,
    further_around,
    idf_by_term,
    score_surroundings,
    substitutes,
    weigh_related,
)
from everthread.recall.query import parse_question


@given(
    having=st.lists(st.lists(st.integers(100, 160), unique=True), min_size=1, max_size=4),
    weights=st.lists(st.sampled_from([0.5, 1.0, 1.7]), min_size=4, max_size=4),
    most=st.integers(1, 30),
)
def test_nobody_left_out_has_more_than_one_worth_reading(
    having: list[list[int]], weights: list[float], most: int
) -> None:
    terms = [Term(token=str(number)) for number in range(len(having))]
    postings = {term: sorted(keys) for term, keys in zip(terms, having, strict=True)}
    idfs = dict(zip(terms, weights, strict=False))
    scores = {key: 0.0 for key in range(90, 171)}
    for term, keys in postings.items():
        for key in keys:
            scores[key] += idfs[term]
            for step in range(1, 5):
                scores[key + step] += 0.3 * idfs[term] / 2 ** (step - 1)
                scores[key - step] += 0.3 * idfs[term] / 2 ** (step - 1)
    found = choose_candidates(postings, idfs, most)
    left_out = [score for key, score in scores.items() if key not in found]
    assert len(found) == len(set(found)) == min(most, sum(score > 0 for score in scores.values()))
    if found:
        assert min(scores[key] for key in found) >= max(left_out) - 1e-9


def test_a_word_that_stands_everywhere_does_not_choose_what_is_read_where_enough_have_others() -> None:
    rare, common, unheard = Term(token="depot"), Term(token="order"), Term(token="zeppelin")
    postings = {common: list(range(1, 1_001)), rare: list(range(500, 510)), unheard: []}
    idfs = idf_by_term(postings, 1_000)
    assert drop_common_terms(postings, idfs, enough=10).keys() == {rare, unheard}
    assert drop_common_terms(postings, idfs, enough=11) == postings


def test_a_telling_word_of_messages_that_are_in_view_anyway_is_not_enough() -> None:
    rare, common = Term(token="depot"), Term(token="order")
    postings = {common: list(range(1, 1_001)), rare: [998, 999]}
    idfs = idf_by_term(postings, 1_000)
    assert drop_common_terms(postings, idfs, enough=1, hidden={998}).keys() == {rare}
    assert drop_common_terms(postings, idfs, enough=1, hidden={998, 999}) == postings


def test_a_word_that_stands_everywhere_is_looked_for_when_nothing_else_is_found() -> None:
    postings = {Term(token="order"): list(range(1, 1_001)), Term(token="zeppelin"): []}
    assert drop_common_terms(postings, idf_by_term(postings, 1_000), enough=10) == postings


def test_messages_around_one_with_the_words_are_worth_reading() -> None:
    term = parse_question("director").terms[0]
    keys = choose_candidates({term: [100]}, {term: 1.0}, 5)
    assert keys[0] == 100
    assert set(keys[1:3]) == {99, 101}


def test_a_message_with_a_related_word_is_read_before_those_with_nothing() -> None:
    term = Term(token="bike")
    assert choose_candidates({term: [100]}, {term: 1.0}, 2, {term: {300: 0.5}}) == [100, 300]


def test_a_related_word_counts_only_where_the_word_itself_is_missing_and_not_where_many_have_it() -> None:
    query = parse_question("bike")
    (term,), bicycle, ride = query.terms, Term(token="bicycl"), Term(token="ride")
    found = {bicycle: [5, 9], ride: list(range(2_000))}
    related = weigh_related(query, found, {term: 1.0}, 10_000, 0.5)
    assert related.keys() == {bicycle}
    assert substitutes(query, related, found, {term: [5]}) == {term: {9: 0.5 * query.related[bicycle][0]}}


def test_what_lies_around_is_taken_nearest_first_and_no_more_than_there_is_room() -> None:
    assert further_around([10, 20], 4) == [11, 9, 21, 19]
    assert further_around([10, 11], 2) == [9, 12]
    assert further_around([], 3) == []
    assert further_around([10], 0) == []


KEYS = st.lists(st.integers(1, 200), unique=True, max_size=60).map(sorted)


@given(keys=KEYS, having=st.dictionaries(st.sampled_from("abcde"), KEYS, max_size=5))
def test_what_is_talked_about_around_a_message_is_what_those_within_reach_have(
    keys: list[int], having: dict[str, list[int]]
) -> None:
    postings = {Term(token=word): found for word, found in having.items()}
    idfs = {term: 1.0 + at for at, term in enumerate(postings)}
    expected = []
    for key in keys:
        counts = [(idfs[term], sum(abs(one - key) <= 8 for one in found)) for term, found in postings.items()]
        expected.append(sum(weight * times / (times + 1) for weight, times in counts))
    assert score_surroundings(keys, postings, idfs) == pytest.approx(expected)


def test_what_the_commonest_terms_alone_name_is_left_out_only_where_it_is_not_among_the_likeliest() -> None:
    """The same is chosen as if every message of every term had been scored."""
    chance = random.Random(4)
    names = [Term(token=name) for name in "abcde"]
    for total in (400, 3_000):
        postings = {
            term: sorted(chance.sample(range(1, total), total // share))
            for term, share in zip(names, (400, 40, 8, 4, 2), strict=True)
        }
        idfs = idf_by_term(postings, total)
        related = {names[0]: dict.fromkeys(chance.sample(range(1, total), 3), 0.5)}
        scores = [0.0] * (total + 10)
        for term, having in postings.items():
            for key in having:
                scores[key] += idfs[term]
        for key, share in related[names[0]].items():
            scores[key] += share * idfs[names[0]] if key not in postings[names[0]] else 0.0
        lenders = sorted(range(total), key=scores.__getitem__, reverse=True)[:300]
        final = list(scores)
        for key in lenders:
            for step in range(1, 5):
                for beside in (key - step, key + step):
                    if beside > 0:
                        final[beside] += 0.3 / 2 ** (step - 1) * scores[key]
        chosen = choose_candidates(postings, idfs, 300, {names[0]: {
            key: share for key, share in related[names[0]].items() if key not in postings[names[0]]
        }})  # fmt: skip
        least = sorted(final, reverse=True)[299]
        assert len(chosen) == 300
        assert sum(final[key] >= least - 1e-9 for key in chosen) >= 290, "but for lenders of equal scores"
