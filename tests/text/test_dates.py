"""Times that questions name, counted from Wednesday 15 April 2026, 10:00."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everthread.text.dates import date_score, find_time_ranges, without_times

ASKED_AT = datetime(2026, 4, 15, 10, tzinfo=UTC)


def day(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC, hour=12)


@pytest.mark.parametrize(
    ("question", "within", "outside"),
    [
        ("what did we say yesterday?", "2026-04-14", "2026-04-10"),
        ("what did we decide last week?", "2026-04-08", "2026-04-29"),
        ("what did I spend last month?", "2026-03-20", "2026-05-25"),
        ("where did I go last Friday?", "2026-04-10", "2026-04-19"),
        ("the plan from two weeks ago", "2026-04-01", "2026-03-01"),
        ("who called a couple of days ago?", "2026-04-13", "2026-04-03"),
        ("what did I order ten days ago?", "2026-04-05", "2026-04-14"),
        ("what happened on 3 May 2024?", "2024-05-03", "2025-05-03"),
        ("what happened on May 3rd, 2024?", "2024-05-03", "2024-06-20"),
        ("what did Ann paint in May?", "2025-05-20", "2025-08-20"),
        ("what did ann paint in may", "2025-05-20", "2025-08-20"),
        ("the trip in October 2023", "2023-10-20", "2024-10-20"),
        ("the entry of 2026-02-03", "2026-02-03", "2026-02-20"),
        ("what did we plan this weekend?", "2026-04-11", "2026-03-28"),
        ("what did I do over the weekend?", "2026-04-12", "2026-03-30"),
        ("what did we spend in the last 3 days?", "2026-04-12", "2026-04-02"),
        ("who wrote in the past week?", "2026-04-09", "2026-03-25"),
        ("what did we agree on the 9th?", "2026-04-09", "2026-04-20"),
        ("what did the dentist say the other day?", "2026-04-11", "2026-03-20"),
        ("who rang a few weeks ago?", "2026-03-20", "2026-01-10"),
        ("the film from three weeks back", "2026-03-25", "2026-02-20"),
        ("what did she want back in March?", "2026-03-12", "2026-01-20"),
        ("the talk in mid-March", "2026-03-15", "2026-02-03"),
        ("what broke towards the end of February?", "2026-02-25", "2026-01-10"),
        ("what did we buy early in January?", "2026-01-04", "2026-02-15"),
        ("what was it at the beginning of last month?", "2026-03-03", "2026-04-14"),
        ("what did we fix at the end of last year?", "2025-11-20", "2025-05-01"),
        ("what did he say last week Monday?", "2026-04-06", "2026-04-15"),
        ("what did he say on Mon last week?", "2026-04-06", "2026-04-15"),
        ("what did I promise on Tue?", "2026-04-14", "2026-04-08"),
        ("where were we Friday before last?", "2026-04-03", "2026-04-14"),
        ("what was decided the week before last?", "2026-04-01", "2026-04-15"),
        ("where did we go last summer?", "2025-07-10", "2025-02-10"),
        ("who came last winter?", "2026-01-15", "2026-08-01"),
        ("who cooked over Christmas?", "2025-12-24", "2026-02-01"),
        ("what did we agree on the 20th?", "2026-03-20", "2026-04-08"),
        ("who came on jan 31?", "2026-01-31", "2026-02-20"),
        ("the note of 12 Feb 2025", "2025-02-12", "2026-02-12"),
        ("上周末去了哪里", "2026-04-11", "2026-03-30"),
        ("最近三天谁来过", "2026-04-13", "2026-04-01"),
        ("12号说了什么", "2026-04-12", "2026-04-03"),
        ("昨天说的那家店叫什么", "2026-04-14", "2026-04-02"),
        ("上周定的预算是多少", "2026-04-08", "2026-03-20"),
        ("上周五谁来过", "2026-04-10", "2026-04-15"),
        ("上个月看的电影", "2026-03-15", "2026-01-15"),
        ("这个星期的安排", "2026-04-15", "2026-02-15"),
        ("三天前说了什么", "2026-04-12", "2026-04-01"),
        ("2024年5月3日那天", "2024-05-03", "2023-05-03"),
        ("5月3号去了哪里", "2025-05-03", "2025-07-03"),
        ("两个星期前说的", "2026-04-01", "2026-03-10"),
        ("两个月前说的", "2026-02-14", "2026-04-10"),
        ("十二天前", "2026-04-03", "2026-04-13"),
        ("二十天前", "2026-03-26", "2026-04-05"),
        ("半年前", "2025-10-15", "2024-10-15"),
        ("五月三日去了哪里", "2025-05-03", "2025-07-03"),
        ("十二月二十五号送了什么", "2025-12-25", "2025-12-01"),
        ("去年十一月定的预算", "2025-11-20", "2024-11-20"),
        ("今年三月份的安排", "2026-03-20", "2025-03-20"),
        ("前年10月1日", "2024-10-01", "2025-10-01"),
        ("2024年十月", "2024-10-20", "2025-10-20"),
        ("上週定的預算", "2026-04-08", "2026-03-20"),
        ("兩個禮拜前", "2026-04-01", "2026-03-10"),
        ("5月3號", "2025-05-03", "2025-07-03"),
        ("前几天谁来过", "2026-04-11", "2026-03-20"),
        ("前兩天說的", "2026-04-13", "2026-03-20"),
        ("几周前说的", "2026-03-20", "2026-01-10"),
        ("前阵子看的房子", "2026-03-20", "2026-01-10"),
        ("前一段时间买的", "2026-03-20", "2026-01-10"),
        ("上礼拜二说的", "2026-04-07", "2026-04-20"),
        ("上礼拜说的", "2026-04-07", "2026-03-20"),
        ("三月底的会", "2026-03-28", "2026-02-25"),
        ("3月中旬去哪了", "2026-03-15", "2026-02-03"),
        ("上个月初定的", "2026-03-03", "2026-04-14"),
        ("去年年底签的", "2025-11-20", "2025-05-01"),
        ("去年夏天去了哪", "2025-07-10", "2025-02-10"),
        ("国庆期间谁值班", "2025-10-03", "2025-12-03"),
    ],
)
def test_a_named_time_fits_messages_of_that_time_and_not_of_others(question: str, within: str, outside: str) -> None:
    times = find_time_ranges(question, ASKED_AT)
    assert date_score(day(within), times) == 1.0
    assert date_score(day(outside), times) == 0.0


@pytest.mark.parametrize(
    "question",
    [
        "may I ask you something?",
        "who is the director?",
        "第三章讲什么",
        "31 February 2024",
        "三个月的房租",
        "二月三十日",
    ],
)
def test_a_question_that_names_no_time_fits_none(question: str) -> None:
    assert find_time_ranges(question, ASKED_AT) == ()


@pytest.mark.parametrize(
    ("text", "rest"), [("what did Ann say on May 3rd, 2024?", "what did Ann say on  ?"), ("上周谁来过", " 谁来过")]
)
def test_a_text_without_its_times(text: str, rest: str) -> None:
    assert without_times(text) == rest


def test_a_year_says_less_than_a_month() -> None:
    assert 0 < date_score(day("2023-05-05"), find_time_ranges("what did she do in 2023?", ASKED_AT)) < 0.5


def test_what_was_said_soon_after_a_named_time_fits_a_little() -> None:
    said = day("2026-04-14") + timedelta(days=2)
    assert 0 < date_score(said, find_time_ranges("what happened yesterday?", ASKED_AT)) < 1


def test_a_message_without_a_time_fits_nothing() -> None:
    assert date_score(None, find_time_ranges("yesterday", ASKED_AT)) == 0


@settings(deadline=None)
@given(st.text(max_size=200), st.datetimes(timezones=st.just(UTC)))
def test_any_text_at_any_moment_is_read(question: str, asked_at: datetime) -> None:
    for start, end in find_time_ranges(question, asked_at):
        assert start < end
