"""What is read off a question."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everthread.core.queries import Term
from everthread.recall.query import MAX_TERMS, TermCounter, parse_question
from everthread.text.words import tokenize


def tokens_of(question: str) -> list[str]:
    return [term.token for term in parse_question(question).terms]


def test_words_that_any_sentence_has_are_not_looked_for() -> None:
    assert tokens_of("Who was that director again?") == ["director", "direct", "again"]


def test_a_question_of_such_words_alone_is_looked_for_by_them() -> None:
    assert tokens_of("who was that") == ["who", "was", "that"]


def test_chinese_is_looked_for_by_single_characters_without_function_words() -> None:
    assert parse_question("那个导演是谁").terms == (Term(token="导", is_prefix=True), Term(token="演", is_prefix=True))


def test_scripts_in_one_question_are_each_read_in_their_way() -> None:
    assert tokens_of("大阪的 Royal Park 酒店") == ["大", "阪", "royal", "park", "酒", "店"]
    assert tokens_of("カメラの値段") == ["カメ", "メラ", "ラの", "値", "段"]


@pytest.mark.parametrize("question", ["", " \n", "!?* () \"'", "😀"])
def test_a_question_without_a_word_has_no_terms(question: str) -> None:
    assert parse_question(question).terms == ()


@settings(deadline=None)
@given(st.text(max_size=300))
def test_any_text_is_a_question(question: str) -> None:
    query = parse_question(question)
    assert len(query.terms) <= MAX_TERMS
    assert {at for at, _ in TermCounter(query.terms).count(question).counts} <= set(range(len(query.terms)))


def test_a_pasted_page_is_read_by_its_beginning() -> None:
    assert len(parse_question("word" + " other words" * 10_000).terms) <= 3


@pytest.mark.parametrize(
    "question", ["What did you recommend for dinner?", "your advice on taxes", "你推荐的是哪家", "你上次说的书"]
)
def test_it_is_seen_when_the_assistant_is_asked_what_it_said(question: str) -> None:
    assert parse_question(question).asks_assistant


@pytest.mark.parametrize(
    "question", ["What did I order?", "Can you list what I ordered?", "我妈推荐的店", "Which city did Ann visit?"]
)
def test_other_questions_are_not_taken_for_that(question: str) -> None:
    assert not parse_question(question).asks_assistant


def test_terms_are_counted_in_a_text_as_the_index_has_them() -> None:
    found = TermCounter(parse_question("导演 film").terms).count("Two films: 导演和导游")
    assert list(found.counts) == [(0, 2), (1, 1), (2, 1)]


TEXTS = st.text(alphabet="ab film导演字? '\n．é", max_size=80)


@given(question=TEXTS, text=TEXTS)
def test_terms_are_counted_like_the_tokens_of_the_index(question: str, text: str) -> None:
    query = parse_question(question)
    found = tokenize(text)
    counted = TermCounter(query.terms).count(text)
    assert counted.length == len(found)
    counts = [
        sum(token[0] == term.token if term.is_prefix else token == term.token for token in found)
        for term in query.terms
    ]
    assert list(counted.counts) == [(at, count) for at, count in enumerate(counts) if count]


def test_a_chinese_word_of_three_characters_is_looked_for_by_the_pair_it_begins_with() -> None:
    related = parse_question("Where is the vacuum cleaner?").related
    pair = next(term for term in related if term.token == "吸尘")
    assert set(tokenize("吸尘器坏了")) >= {pair.token}
