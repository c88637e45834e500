"""An order has a subject only where it says nothing else, and a sentence takes back only what it names."""

from __future__ import annotations

import pytest

from everthread.recall.memory_intents import Ended
from everthread.recall.memory_subjects import order_subject, taken_back


@pytest.mark.parametrize(
    ("order", "subject"),
    [
        ("please always answer me in short bullet points", "order: bullet points"),
        ("answer in prose instead of bullet points from now on", "order: bullet points"),
        ("from now on answer in English again please", "language of answers"),
        ("以后请用中文回答", "language of answers"),
        ("use whatever language I write in", "language of answers"),
        ("always use British English", "order: spelling"),
        ("Never use emojis in your answers", "order: emojis"),
        ("不要用表情符号", "order: emojis"),
        ("Keep your answers short", "order: length"),
        ("回答要简短", "order: length"),
        ("Use metric units", "order: units"),
        ("never use emojis in emails", None),
        ("always answer in bullet points when I ask about law", None),
        ("for the letters to my aunt always answer in French", None),
        ("answer in German and use bullet points", None),
        ("always answer in plain English", None),
        ("keep the next answer short", None),
        ("never push to main", None),
        ("给客户写邮件用英文", None),
    ],
)
def test_an_order_has_a_subject_if_it_is_about_one_thing_in_all_answers(order: str, subject: str | None) -> None:
    assert order_subject(order) == subject


@pytest.mark.parametrize(
    ("said", "ends"),
    [
        ("forget the bullet points, normal answers are fine again", [Ended("order: bullet points")]),
        ("you can use emojis again", [Ended("order: emojis")]),
        ("Longer answers are fine again", [Ended("order: length")]),
        ("不用再分点了, 正常回答就行", [Ended("order: bullet points")]),
        ("现在可以用表情符号了", [Ended("order: emojis")]),
        ("I no longer live in Oslo", [Ended("home", naming="in Oslo"), Ended("home", naming="住在Oslo")]),
        ("我从华为离职了", [Ended("employer", naming="在华为工作")]),
        ("I quit my job", [Ended("employer")]),
    ],
)
def test_a_sentence_takes_back_what_it_names(said: str, ends: list[Ended]) -> None:
    assert list(taken_back(said)) == ends


@pytest.mark.parametrize(
    "said",
    [
        "forget it, wrong chat",
        "forget the bullet in the gun metaphor, write about rain",
        "you can give me the long answer now",
        "you can use tables in section 3 again",
        "never mind",
        "I left my bag at home",
        "I left Lyon this morning",
        "tables are fine in this doc again",
        "可以了",
        "不用了，谢谢",
        "我昨天离开上海去了北京",
        "I can see it again",
    ],
)
def test_what_names_nothing_takes_nothing_back(said: str) -> None:
    assert list(taken_back(said)) == []


def test_who_may_have_something_again_is_allergic_to_nothing_else() -> None:
    subjects = {ended.subject for ended in taken_back("I can eat gluten again")}
    assert {"cannot have: gluten", "allergy: gluten"} <= subjects
    assert all("gluten" in (subject or "") for subject in subjects)
