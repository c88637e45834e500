"""Other words for the same thing, in two languages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everthread.text.related_words import chinese_words, related_words
from everthread.text.words import stem


@pytest.mark.parametrize(
    ("word", "other"),
    [
        ("bike", "bicycle"),
        ("doctor", "physician"),
        ("dog", "狗"),
        ("charger", "充电器"),
        ("充电器", "charger"),
        ("书架", "bookshelf"),
        ("工资", "salary"),
        ("抱怨", "complain"),
        ("抱怨", "埋怨"),
        ("电脑", "computer"),
    ],
)
def test_a_word_leads_to_others_for_the_same_thing(word: str, other: str) -> None:
    assert stem(other) in related_words(stem(word))


def test_the_closer_word_counts_more_and_none_as_much_as_the_word_itself() -> None:
    related = related_words("bike")
    assert related["bicycl"] > related["ride"]
    assert all(0 < share < 1 for share in related.values())


@pytest.mark.parametrize("word", ["", "zzyzx", "😀", "\t", "的"])
def test_other_texts_have_none(word: str) -> None:
    assert related_words(word) == {}


def test_a_run_without_spaces_is_read_in_its_longest_words() -> None:
    assert list(chinese_words("邻居抱怨什么")) == ["邻居", "抱怨"]


@given(st.text("我你狗抱怨护照医院的a，", max_size=40))
def test_the_words_of_a_run_stand_in_it_in_their_order(run: str) -> None:
    at = 0
    for word in chinese_words(run):
        at = run.index(word, at) + len(word)
