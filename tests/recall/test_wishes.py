"""Which messages are standing wishes, and which questions they may govern."""

from __future__ import annotations

import pytest

from everthread.core.queries import Term
from everthread.recall.wishes import (
    CUES,
    RESTRICTION_CUES,
    asks_for_restrictions,
    asks_for_work,
    is_restriction,
    is_wish,
    kind_of_wish,
    likely_wishes,
    matters_of,
)
from everthread.text.words import tokenize

WISHES = [
    "Always show temperatures in Celsius, please.",
    "Thanks! And from now on write to me in British spelling.",
    "Please don't ever book anything on a Sunday.",
    "When I ask for SQL, write it for PostgreSQL.",
    "I prefer aisle seats and no overnight flights.",
    "For recipes I want grams, never cups.",
    "For letters I always want the long form.",
    "I sleep badly after coffee, keep that in mind.",
    "please no lists in your answers",
    "also dont sugarcoat stuff, i hate that",
    "oh and no more telling me to drink water please",
    "pls remember he's lactose intolerant",
    "when u write to me use short words pls",
    "stop apologizing",
    "以后都叫我老板。",
    "每次写邮件都用正式的语气。",
    "请一直用表格列出对比。",
    "凡是要签字的，先给我看。",
]
OTHERS = [
    "She has always lived in Ghent.",
    "I never met him.",
    "never mind",
    "Never heard of it.",
    "Never again that hotel",
    "The shop keeps its prices.",
    "What do I always forget?",
    "dont worry about it",
    "Please remember to buy milk.",
    "It stopped raining, stop by later.",
    "以后再说吧。",
    "每次下雨他就头疼。",
    "这家店每次排队都要一小时",
    "朋友说以后都不来这家店了",
    "老师说从今天起要多读书",
]


@pytest.mark.parametrize(
    "text",
    [
        *WISHES,
        "use 24-hour times in every table",
        "amounts always with two decimals",
        "文件名统一用小写加下划线",
        "叫我阿哲就可以",
    ],
)
def test_what_shall_always_or_never_be_is_a_wish(text: str) -> None:
    assert is_wish("user", text)
    assert not is_wish("assistant", text)


@pytest.mark.parametrize("text", WISHES)
def test_a_word_in_the_index_leads_to_each_wish(text: str) -> None:
    assert set(tokenize(text)) & {term.token for term in CUES}


@pytest.mark.parametrize("text", OTHERS)
def test_what_merely_is_always_so_is_none(text: str) -> None:
    assert not is_wish("user", text)


@pytest.mark.parametrize(
    "question",
    [
        "Draft a note about the new colour scheme.",
        "Can you plan my week?",
        "Get me a seat on the night train.",
        "Remind me of the dentist.",
        "How do I make bread?",
        "Contact Dagny about her parcel.",
        "commit the change to the cache",
        "I have a headache, what should I do?",
        "帮我订一份外卖。",
        "比较一下这两款手机。",
        "提醒我明天交房租。",
        "周日去哪里玩？",
    ],
)
def test_wishes_may_govern_what_is_to_be_done(question: str) -> None:
    assert asks_for_work(question)


@pytest.mark.parametrize(
    "question",
    [
        "When did Maya's school move?",
        "Who was that director again?",
        "Who said that, can you tell?",
        "护照在哪里？",
        "",
    ],
)
def test_they_do_not_govern_what_is_only_asked(question: str) -> None:
    assert not asks_for_work(question)


@pytest.mark.parametrize(
    ("wish", "asked", "are_of_one_matter"),
    [
        ("Sign my letters with the full name.", "Draft a reply to the bank.", True),
        ("以后机票都订靠窗的座位。", "Find me a flight to Rome.", True),
        ("I'm vegan.", "Draft a reply to the bank.", False),
    ],
)
def test_a_wish_and_a_request_may_be_about_the_same_matter(wish: str, asked: str, are_of_one_matter: bool) -> None:
    assert bool(matters_of(wish) & matters_of(asked)) is are_of_one_matter


def test_a_wish_about_answers_is_of_no_matter() -> None:
    assert matters_of("From now on be brief.") == frozenset()


@pytest.mark.parametrize(
    "question",
    ["List my standing rules", "what did I tell you to never do?", "the instructions I gave", "我对你有什么要求？"],
)
def test_who_asks_for_the_wishes_themselves_gets_them_first(question: str) -> None:
    kind = kind_of_wish(question)
    assert kind is not None
    assert kind.is_asked_for
    assert kind.is_one("user", "Always be brief.")


def test_what_somebody_may_not_eat_governs_what_is_cooked_and_no_letter() -> None:
    cooking, writing = kind_of_wish("What could I cook for Tom?"), kind_of_wish("Write to the bank.")
    assert cooking is not None
    assert writing is not None
    assert cooking.is_one("user", "Tom can't have dairy.")
    assert not writing.is_one("user", "Tom can't have dairy.")


@pytest.mark.parametrize("question", ["What are the rules of chess?", "Which rules did the club change?"])
def test_rules_of_others_are_no_wishes(question: str) -> None:
    assert kind_of_wish(question) is None


def test_messages_with_the_rarest_cues_are_read_first_and_then_the_newest() -> None:
    postings = {Term(token="alway"): [1, 5, 9], Term(token="prefer"): [5, 7]}
    assert likely_wishes(postings) == [5, 7, 9, 1]


RESTRICTIONS = [
    "I'm allergic to shellfish.",
    "Ben can't have dairy.",
    "My mother doesn't eat pork.",
    "I stopped drinking alcohol in May.",
    "我对花生过敏。",
    "他不吃香菜。",
    "奶奶有糖尿病，不能吃甜的。",
]


@pytest.mark.parametrize("text", RESTRICTIONS)
def test_what_somebody_may_not_eat_is_a_restriction_and_has_a_cue(text: str) -> None:
    assert is_restriction("user", text)
    assert set(tokenize(text)) & {term.token for term in RESTRICTION_CUES}


@pytest.mark.parametrize("text", ["We ate pizza.", "I can't find the menu.", "Can't you eat that?", "他不吃饭就走了。"])
def test_other_talk_of_food_is_none(text: str) -> None:
    assert not is_restriction("user", text)


@pytest.mark.parametrize(
    "question", ["food I can't eat", "What should I avoid cooking for her?", "我不能吃什么？", "any allergies? dinner"]
)
def test_who_asks_what_not_to_eat_asks_for_restrictions(question: str) -> None:
    assert asks_for_restrictions(question)


@pytest.mark.parametrize("question", ["What did we eat?", "Why can't I log in?", "晚饭吃什么？"])
def test_who_asks_something_else_does_not(question: str) -> None:
    assert not asks_for_restrictions(question)
