"""What was taken back or corrected is told as such, whoever writes the summary; the figures are in
docs/benchmarks/context.md.
"""

from __future__ import annotations

import pytest

from everthread.compaction.extract import extract
from everthread.compaction.fact_ranking import facts_of_sources
from everthread.compaction.gate import Accepted, check_summary
from everthread.compaction.sources import Source
from everthread.compaction.summary_format import Section, SummaryLine
from everthread.compaction.superseded import mark_superseded
from everthread.context.tokens import count_tokens
from tests.compaction.spans import assistant, user

SMALL_TALK = [
    "the plumber fixed the boiler, invoice 2231, 180 EUR",
    "the school trip to the lake costs 45 EUR per child",
    "i need to print the tax form 2042 before may 20",
    "the neighbours complained about noise on sunday",
]


def _talk(*said: str) -> list[Source]:
    """What was said, with small talk after each and more at the end."""
    texts: list[str] = []
    for at, one in enumerate(said):
        texts += [one, SMALL_TALK[at % 4]]
    texts += [f"{SMALL_TALK[at % 4]} ({at})" for at in range(8)]
    return [
        source
        for at, text in enumerate(texts)
        for source in (user(2 * at + 1, text), assistant(2 * at + 2, "Noted, as you say."))
    ]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("please always answer in short bullet points", "forget the bullet points, write normally again"),
        ("我吃素", "我现在又吃肉了"),
        ("我们的预算是3000欧元", "预算提高到3500欧元吧"),
        ("meeting with Deniz on Tuesday 10:00", "Deniz moved the meeting to Wednesday 14:00"),
        ("hotel for 4 nights in Annecy, check in 12 July", "hotel: make it 5 nights, check in 11 July instead"),
        ("call me Mrs. Abernathy please", "from now on call me Ruth"),
        ("always answer in Spanish", "you can answer in English again"),
        ("dinner for 20 people at Osteria Nonna on 24 October", "dinner cancelled... she doesn't want a big thing"),
    ],
)
def test_what_was_taken_back_is_marked_and_what_took_it_back_is_told(before: str, after: str) -> None:
    text = extract(_talk(before, after), max_tokens=400, count_tokens=count_tokens)
    (line,) = (line for line in text.splitlines() if before in line)
    assert "(replaced by [#5])" in line or "（已被 [#5] 取代）" in line
    assert after in text


@pytest.mark.parametrize(
    ("section", "told", "later"),
    [
        ("decisions", "assistant: Shall I search? → user: yes pls", "assistant: Cancel 玉芝兰; family dinner at home"),
        ("standing", "user: never deploy to prod without asking me first", "freeze till monday, no prod deploy now"),
        ("standing", "user: Paul is vegetarian", "i eat meat again"),
        ("facts", "user: lunch with Deniz on Friday 12:00", "Deniz moved the review to Wednesday 14:00 in room 5?"),
        ("facts", "user: the boiler was repaired in June for 180 EUR", "we moved the party to 24 June"),
        ("decisions", "user: book the room for 24 June", "make it the room for 24 June"),
        ("decisions", "user: cancel the Osteria", "scrap the Osteria"),
    ],
)
def test_what_still_holds_is_not_marked(section: Section, told: str, later: str) -> None:
    line = SummaryLine(section=section, text=told, first_seq=1, last_seq=1)
    assert mark_superseded([line], [(9, later)], "en") == [line]


@pytest.mark.parametrize(
    "word", ["assistant", "user", "decided", "decision", "cancelled", "moved", "actually", "Tuesday", "euros", "July"]
)
def test_no_two_statements_are_about_the_same_by_words_that_name_no_subject(word: str) -> None:
    line = SummaryLine(section="decisions", text=f"{word}: the boiler", first_seq=1, last_seq=1)
    assert mark_superseded([line], [(9, f"{word} instead: a tent")], "en") == [line]
    about_boiler = mark_superseded([line], [(9, f"{word} instead: a tent, not the boiler")], "en")
    assert "[#9]" in about_boiler[0].text


def _of_model(prose: str, sources: list[Source]) -> Accepted:
    judged = check_summary(
        prose,
        sources,
        facts_of_sources(sources),
        count_tokens=count_tokens,
        source_tokens=2_000,
        max_tokens=1_000,
        by_model=True,
    )
    assert isinstance(judged, Accepted)
    return judged


def test_what_cancels_an_order_is_put_back_where_a_model_leaves_it_out() -> None:
    talk = _talk("please always answer in short bullet points", "forget the bullet points, write normally again")
    judged = _of_model("## Facts\n- The school trip to the lake costs 45 EUR per child, as was said [#7]", talk)
    assert "- forget the bullet points, write normally again [#5]" in judged.text
    assert "please always answer in short bullet points" not in judged.text
