"""Questions that ask for many things, and the short quotes and groups that answer them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everthread.recall.collecting import MAX_QUOTED, asks_for_several, group, shorten


@pytest.mark.parametrize(
    "question",
    [
        "Which films did I see?",
        "How many incidents did we have?",
        "List all my swims.",
        "In what order did the attic get done?",
        "Summarise what I think of the cafés.",
        "How much did it cost me so far?",
        "我看过哪些电影？",
        "一共花了多少钱？",
        "所有的体温记录",
        "按顺序列出装修的步骤",
    ],
)
def test_which_how_many_all_and_in_what_order_ask_for_many(question: str) -> None:
    assert asks_for_several(question)


@pytest.mark.parametrize(
    "question",
    [
        "Who was the director?",
        "Which hospital was it?",
        "Which bus is it?",
        "Which class does he teach?",
        "When is the dentist?",
        "What is the code?",
        "我对什么过敏？",
        "他几点到？",
    ],
)
def test_other_questions_ask_for_one(question: str) -> None:
    assert not asks_for_several(question)


def test_a_quote_is_the_sentence_with_the_words() -> None:
    passage = "Nothing of it here. " * 20 + "The ferry to Naxos costs 44 euros. " + "And so on it goes. " * 20
    quote = shorten(passage, ["ferri", "naxo", "ferry"])
    assert "44 euros" in quote
    assert len(quote) < 230
    assert shorten("short", ["short"]) == "short"
    assert len(shorten("渡船去纳克索斯要四十四欧元。" * 40, ["渡"])) < 100


@given(st.sets(st.integers(1, 500), min_size=1, max_size=60), st.integers(1, 60))
def test_every_message_is_in_one_group_and_there_are_no_more_than_asked_for(places: set[int], limit: int) -> None:
    some = sorted(places)[: limit * MAX_QUOTED]
    groups = group(some, limit)
    assert [place for one in groups for place in one] == some
    assert len(groups) <= limit
    assert all(len(one) <= MAX_QUOTED for one in groups)
