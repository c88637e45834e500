"""The words by which something is asked are not looked for; the same words are where they are asked about."""

from __future__ import annotations

import pytest

from everthread.recall.query import parse_question


def terms_of(question: str) -> list[str]:
    return [term.token for term in parse_question(question).terms]


@pytest.mark.parametrize(
    ("question", "left"),
    [
        ("What time does the ferry leave?", ["ferri", "leav"]),
        ("At what time was it?", ["at", "what", "time", "was", "it"]),  # unless there are no others
        ("What day is the ferry?", ["ferri"]),
        ("In which year did Ann move?", ["ann", "move"]),
        ("How many times did the ferry stop?", ["ferri", "stop"]),
        ("How many different ferries are there?", ["ferri"]),
        ("How much was the ferry?", ["ferri"]),
        ("How old is Ann?", ["ann"]),
        ("What kind of boat is it?", ["boat"]),
        ("Whose boat is it?", ["boat"]),
        ("Which one is the boat?", ["boat"]),
        ("Who else has a boat?", ["boat"]),
        ("Tell me whether Ann sold the boat", ["ann", "sold", "boat"]),
        ("Do you remember the boat?", ["boat"]),
        ("航班什么时候出发?", ["航", "班", "出", "发"]),
        ("航班是何时出发的", ["航", "班", "出", "发"]),
        ("出发的时候", ["出", "发"]),
        ("他什么时间到", ["他", "什", "么", "时", "间", "到"]),
        ("沙发怎么样?", ["沙", "发"]),
        ("护照怎么办？", ["护", "照"]),
        ("为什么选沙发", ["选", "沙", "发"]),
        ("船票在哪里买", ["船", "票", "买"]),
        ("船票是哪个", ["船", "票"]),
        ("船票在什么地方", ["船", "票"]),
        ("船票多少钱", ["船", "票", "钱"]),
        ("船要开多久", ["船", "开"]),
        ("船几点开", ["船", "开"]),
        ("船去了几次", ["船"]),
        ("船去了多少次", ["船"]),
        ("船咋样了", ["船"]),
        ("船票如何改签", ["船", "票", "改", "签"]),
        ("哪一家酒店", ["酒", "店"]),
        ("是否买了船票", ["买", "船", "票"]),
        ("告诉我船名", ["船", "名"]),
    ],
)
def test_the_words_of_asking_are_not_looked_for(question: str, left: list[str]) -> None:
    assert terms_of(question) == left


@pytest.mark.parametrize(
    ("question", "left"),
    [
        ("list all bookings", ["book"]),
        ("Can you list all of my bookings?", ["book"]),
        ("List the bookings", ["book"]),
        ("Give me a full list of the bookings", ["book"]),
        ("Name all ferries.", ["ferri"]),
        ("Which dates did Bellini propose, in order?", ["date", "bellini", "propos"]),
        ("What did Bellini propose in order?", ["bellini", "propos"]),
        ("In what order did I paint the rooms?", ["paint", "room"]),
        ("the order in which I painted the rooms", ["paint", "room"]),
        ("the rooms I painted, in chronological order", ["room", "paint"]),
        ("How much did the rooms cost so far, in total?", ["room", "cost"]),
        ("Walk me through the rooms", ["room"]),
        ("Summarize what Ann thinks of boats", ["ann", "think", "boat"]),
        ("列出所有船票", ["船", "票"]),
        ("请帮我列一下船票", ["船", "票"]),
        ("按顺序列出船票", ["船", "票"]),
        ("按时间顺序说说装修", ["装", "修"]),
        ("船票一共多少", ["船", "票"]),
    ],
)
def test_the_phrases_that_ask_for_a_list_are_not_looked_for(question: str, left: list[str]) -> None:
    assert terms_of(question) == left


@pytest.mark.parametrize(
    ("question", "word"),
    [
        ("What time zone is the office in?", "time"),
        ("Did Ann have a good time?", "time"),
        ("Which date format do we use?", "date"),
        ("How many days was the trip?", "day"),
        ("What is on the shopping list?", "list"),
        ("What was the list price?", "list"),
        ("What is the order number?", "order"),
        ("What did I order?", "order"),
        ("What was in the order that came on Monday?", "order"),
        ("Are the papers in order?", "order"),
        ("Is it in order of size?", "order"),
        ("Did you remind me to call?", "remind"),
        ("How far is it, as far as Rome?", "far"),
        ("What kind words did she say?", "kind"),
        ("我小时候住在哪里", "候"),
        ("出发时间定了吗", "时"),
        ("这个地方叫什么", "方"),
        ("考点在哪里", "点"),
        ("会议的要点是什么", "点"),
        ("供应商列出的条件", "列"),
        ("飞机几号起飞", "号"),
        ("订单的顺序号", "序"),
    ],
)
def test_what_is_asked_about_is_looked_for_also_where_other_questions_ask_with_its_word(
    question: str, word: str
) -> None:
    assert word in terms_of(question)


@pytest.mark.parametrize(
    "question", ["航班什么时候出发?", "航班几点出发?", "航班几号出发?", "what time does the flight leave?"]
)
def test_nothing_related_to_a_word_of_asking_is_looked_for(question: str) -> None:
    related = {term.token for term in parse_question(question).related}
    assert related  # to the flight
    assert related.isdisjoint({"time", "season", "wait", "point", "roar", "cri", "季节", "时光", "时间"})
