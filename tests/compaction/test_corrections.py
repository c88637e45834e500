"""What users correct, cancel or change for once: marked where it no longer holds, and never told without what holds."""

from __future__ import annotations

import pytest

from everthread.compaction.condense import condense
from everthread.compaction.extract import extract
from everthread.compaction.sources import ChildSummary
from everthread.compaction.summary_format import SummaryLine, parse_summary
from everthread.compaction.superseded import changed_by
from everthread.context.tokens import count_tokens
from tests.compaction.spans import assistant, user, word_count


def _told(first: str, later: str, *, apart: int = 3, max_tokens: int = 400) -> str:
    """A summary of a talk in which both are said, and much else."""
    talk = [
        user(1, first),
        assistant(2, "Ok."),
        *(assistant(seq, f"Shelf {seq} of the cellar holds {seq * 7} jars of jam.") for seq in range(3, apart)),
        user(apart, later),
        *(
            assistant(seq, f"Bus {seq} to the lake leaves every {seq * 3} minutes.")
            for seq in range(apart + 1, apart + 15)
        ),
    ]
    return extract(talk, max_tokens=max_tokens, count_tokens=word_count)


def _marks(text: str) -> dict[int, int | None]:
    lines = (line for line in parse_summary(text) if isinstance(line, SummaryLine))
    return {line.first_seq: max(changed_by(line), default=None) for line in lines}


@pytest.mark.parametrize(
    ("first", "later"),
    [
        ("never use tables pls", "ok tables are fine again"),
        ("don't add headings to your answers", "you can use headings again"),
        ("以后回答不要用表格", "表格可以用了"),
        ("always answer in French", "ok english again please"),
        ("always answer in German", "ab jetzt wieder english bitte"),
        ("以后都用英文回答", "换回中文吧"),
        ("Tom is allergic to peanuts", "turns out it was sesame, not peanuts"),
        ("小王对花生过敏", "搞错了，不是花生，是腰果"),
        ("we'll use Redis 7 for the queue", "scrap that, we go with Kafka 3"),
        ("my train is ICE 572 on 4 June", "sorry no, train is ICE 527"),
        ("my new number is 0151 555 0123", "typo, 0151 555 0132"),
        ("电话是 13900139000", "打错了，应该是 13900139001"),
        ("培训在周二下午两点", "培训改到周五"),
        ("the dentist is on Monday at 9", "oops, wrong day, the dentist is on Tuesday"),
        ("Nora arrives on 3 May, train NJ 40321? not sure", "its NJ 40312, arrival 6:40"),
    ],
)
def test_what_was_taken_back_or_corrected_says_so(first: str, later: str) -> None:
    marks = _marks(_told(first, later))
    assert marks.get(1, 3) == 3
    assert 3 in marks


@pytest.mark.parametrize(
    ("first", "later"),
    [
        ("yoga is mondays 18:00 with Ms Lind", "Lind is ill, next yoga on wednesday instead, only this week"),
        ("the standup is every day at 9:30", "standup moved to 11:00 just for today"),
        ("每周三下午三点上钢琴课", "钢琴课这周改到周五，就这一次"),
        ("my phone is 0151 555 0123", "typo, Sara's is 0176 444 9988"),
        ("never use tables pls", "the tables in the restaurant are fine again"),
        ("we'll use Redis 7 for the queue", "scrap that joke, we go to Kiel on Friday"),
        ("always answer in French", "I learned English again last year"),
        ("my train is ICE 572 on 4 June", "sorry, dad's train is RE 11"),
    ],
)
def test_what_still_holds_is_not_marked(first: str, later: str) -> None:
    assert _marks(_told(first, later)).get(1) is None


_WRONG = "## Facts\n- user: Nora arrives on 3 May, train NJ 40321? [#3]\n- user: the roof costs 900 EUR [#5]"
_RIGHT = "## Facts\n- user: its NJ 40312, arrival 6:40 [#14]\n- user: the fence is 20 m long and green [#15]"


def _leaves() -> list[ChildSummary]:
    return [
        ChildSummary(first_seq=1, last_seq=9, text=_WRONG),
        ChildSummary(first_seq=10, last_seq=20, text=_RIGHT),
    ]


def test_where_there_is_room_for_one_value_it_is_the_later_one() -> None:
    for room in range(20, 120, 5):
        text = condense(_leaves(), max_tokens=room, count_tokens=count_tokens)
        assert "40321" not in text or "40312" in text


def test_where_there_is_room_both_are_told_with_the_mark() -> None:
    text = condense(_leaves(), max_tokens=300, count_tokens=count_tokens)
    assert "train NJ 40321? (changed in part by [#14]) [#3]" in text
    assert "its NJ 40312" in text


def test_no_mark_points_to_a_message_that_is_not_told() -> None:
    for room in range(20, 200, 5):
        marks = _marks(condense(_leaves(), max_tokens=room, count_tokens=count_tokens))
        assert all(later is None or later in marks for later in marks.values())
