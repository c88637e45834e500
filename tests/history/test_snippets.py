"""A snippet is one line that shows the words that were asked for, marked as they were written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everthread.history.search_query import parse_query
from everthread.history.snippets import ELLIPSIS, MARK, snippet

ANY_TEXT = st.text(alphabet=st.characters(exclude_categories=()))
FILLER = "Nothing of note was said here. " * 40


def shown(text: str, question: str, width: int = 160) -> str:
    return snippet(text, parse_query(question), width)


def test_a_short_text_is_shown_whole_with_its_matches_marked() -> None:
    assert shown("The budgets for travel", "travel budget") == "The **budgets** for **travel**"


def test_the_stretch_with_most_of_the_words_is_shown() -> None:
    text = f"A budget. {FILLER}The budget for travel was cut. {FILLER}"
    found = shown(text, "travel budget")
    assert "The **budget** for **travel** was cut." in found
    assert found.startswith(ELLIPSIS)
    assert found.endswith(ELLIPSIS)


def test_a_match_deep_in_a_long_text_is_shown() -> None:
    assert "**budget**" in shown("x y z " * 200_000 + "the budget", "budgets")


def test_words_are_not_broken_where_the_text_is_cut() -> None:
    found = shown(FILLER + "The budget. " + FILLER, "budget", 40).strip(ELLIPSIS)
    assert set(found.replace(MARK, "").split()) <= set((FILLER + "The budget.").split())


def test_chinese_is_cut_and_marked_by_characters() -> None:
    text = "我们明天去北京参加会议。" * 30 + "请准备销售数据和市场分析。" + "我们明天去北京参加会议。" * 30
    found = shown(text, "销售数据", 20)
    assert "**销售数据**" in found
    assert len(found.replace(MARK, "").strip(ELLIPSIS)) <= 20


def test_one_chinese_character_is_marked_alone() -> None:
    assert shown("去北京和东京", "京") == "去北**京**和东**京**"


def test_wide_and_compatible_forms_are_marked_as_written() -> None:
    assert shown("see ＡＢＣ and ﾊﾟﾋﾟ", "abc パピ") == "see **ＡＢＣ** and **ﾊﾟﾋﾟ**"


def test_lines_become_one_line() -> None:
    assert shown("one\n\n\ttwo\0three\u2028four", "two") == "one **two** three four"


def test_a_lone_surrogate_does_not_leave_the_log() -> None:
    assert shown("a \ud800 b", "b") == "a \ufffd **b**"


def test_a_text_without_the_words_is_shown_from_its_beginning() -> None:
    assert shown("one two three four five", "zebra", 10) == f"one two{ELLIPSIS}"


@pytest.mark.parametrize("text", ["", " ", "\n", "\0"])
def test_nothing_shows_nothing(text: str) -> None:
    assert shown(text, "word") == ""


@given(text=ANY_TEXT, question=ANY_TEXT, width=st.integers(1, 40))
def test_any_snippet_is_one_printable_line_of_its_width(text: str, question: str, width: int) -> None:
    found = shown(text, question, width)
    assert found == shown(text, question, width)
    assert len(found.splitlines()) <= 1
    assert found.encode().decode() == found
    assert "\0" not in found
    if MARK not in text and ELLIPSIS not in text and "*" not in text:
        assert len(found.replace(MARK, "").replace(ELLIPSIS, "")) <= width


@given(
    before=st.lists(st.sampled_from(["lorem", "预算", "ipsum.", "\n"]), max_size=80).map(" ".join),
    after=st.lists(st.sampled_from(["lorem", "旅行", "ipsum.", "\n"]), max_size=80).map(" ".join),
    word=st.sampled_from(["zanzibar", "Zebras", "京", "北京", "v1"]),
)
def test_what_was_asked_for_is_in_the_snippet(before: str, after: str, word: str) -> None:
    assert f"{MARK}{word}{MARK}" in shown(f"{before} {word} {after}", word, 30)
