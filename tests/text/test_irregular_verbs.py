"""Forms of a verb that share no stem are one word to a question."""

from __future__ import annotations

import pytest

from everthread.core.queries import Term
from everthread.recall.candidates import merge_forms
from everthread.recall.query import TermCounter, parse_question
from everthread.text.irregular_verbs import other_forms


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("When did Ann buy the boat?", "I bought it."),
        ("Who wrote it?", "We write on Mondays."),
        ("Was it sold?", "Sell!"),
    ],
)
def test_a_verb_is_found_in_its_other_forms(question: str, said: str) -> None:
    counted = TermCounter(parse_question(question).terms).count(said)
    assert [count for _, count in counted.counts] == [1]


def test_forms_of_one_verb_are_counted_as_one_word() -> None:
    counted = TermCounter(parse_question("Where did they go?").terms).count("They went, and were gone; go!")
    assert counted.counts == [(0, 3)]


def test_messages_with_any_form_have_the_word() -> None:
    go, went, gone, tent = (Term(token=token) for token in ("go", "went", "gone", "tent"))
    postings = {go: [3, 9], went: [1, 3], gone: [], tent: [2]}
    assert merge_forms([go, tent], postings) == {go: [1, 3, 9], tent: [2]}


@pytest.mark.parametrize("word", ["walk", "say", "北"])
def test_other_words_have_no_other_forms(word: str) -> None:
    assert other_forms(Term(token=word)) == ()
    assert other_forms(Term(token=word, is_prefix=True)) == ()
