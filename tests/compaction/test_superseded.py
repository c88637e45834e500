"""A decision that a later message replaced says so, and by which."""

from __future__ import annotations

from datetime import UTC, datetime

from everthread.compaction.condense import condense, recent_summaries, summaries_within
from everthread.compaction.extract import extract
from everthread.compaction.sources import ChildSummary
from everthread.compaction.summary_format import Section, SummaryLine
from everthread.compaction.superseded import mark_superseded, replaced_by
from everthread.context.tokens import count_tokens
from everthread.core.compactions import Compaction
from everthread.core.ids import new_id
from tests.compaction.spans import assistant, user, word_count


def test_a_decision_that_was_changed_names_the_message_that_changed_it() -> None:
    talk = [
        user(1, "Decided: we'll use MySQL for the orders, because Tom knows it."),
        assistant(2, "Good."),
        user(3, "The launch party is decided: we go with Saturday, 4 May."),
        user(4, "I changed my mind about the orders: we go with Postgres 16 instead of MySQL."),
        *(
            assistant(seq, f"Shelf {seq} of the shop was counted and holds {seq * 7} boxes of tea.")
            for seq in range(5, 25)
        ),
    ]
    text = extract(talk, max_tokens=300, count_tokens=word_count)
    assert "Decided: we'll use MySQL for the orders, because Tom knows it. (replaced by [#4]) [#1]" in text
    assert "we go with Saturday, 4 May. [#3]" in text


def test_a_changed_decision_is_marked_in_chinese() -> None:
    talk = [
        user(1, "订单数据库决定用 MySQL。"),
        assistant(2, "好的。"),
        user(3, "发布会定在周六。"),
        user(4, "订单数据库改成 PostgreSQL，不用 MySQL 了。"),
        *(assistant(seq, f"店里第{seq}个货架清点完毕，上面有{seq * 7}盒茶叶。") for seq in range(5, 25)),
    ]
    text = extract(talk, max_tokens=300, count_tokens=word_count)
    assert "订单数据库决定用 MySQL。（已被 [#4] 取代） [#1]" in text
    assert "发布会定在周六。 [#3]" in text


def test_condensing_marks_what_a_later_summary_replaced() -> None:
    leaves = [
        ChildSummary(first_seq=1, last_seq=9, text="## Decisions\n- user: let's meet in the Berlin office [#3]"),
        ChildSummary(
            first_seq=10, last_seq=20, text="## Decisions\n- user: we moved the Berlin office meeting to Bonn [#14]"
        ),
    ]
    text = condense(leaves, max_tokens=200, count_tokens=word_count)
    assert "let's meet in the Berlin office (replaced by [#14]) [#3]" in text


def test_a_date_that_was_taken_back_is_marked_however_it_is_written() -> None:
    leaves = [
        ChildSummary(
            first_seq=1, last_seq=9, text="## Facts\n- Mira: 网站 9月18号 之前上线 [#3]\n- Mira: lunch on 4 May [#4]"
        ),
        ChildSummary(first_seq=10, last_seq=20, text="## Decisions\n- Mira: forget sept 18, we open later [#14]"),
    ]
    text = condense(leaves, max_tokens=200, count_tokens=word_count)
    assert "9月18号 之前上线 (replaced by [#14]) [#3]" in text
    assert "lunch on 4 May [#4]" in text


def test_a_request_shows_an_earlier_summary_with_what_a_later_one_took_back() -> None:
    told = (
        _compaction(1, 9, "## Decisions\n- user: we book the Seehof for Saturday [#3]\n- user: we take the bus [#5]"),
        _compaction(10, 20, "## Decisions\n- user: Osteria Bruna instead of Seehof [#14]"),
    )
    earlier, later = summaries_within(told, None)
    assert "we book the Seehof for Saturday (replaced by [#14]) [#3]" in earlier.text
    assert "we take the bus [#5]" in earlier.text
    assert earlier.tokens == count_tokens(earlier.text)
    assert later.text == told[1].summary


def test_only_users_take_something_back() -> None:
    advice = "assistant: coughs that stay for eight weeks are no longer caused by tablets like candesartan"
    agreed = "assistant: So the tablets are off? → user: yes, no more candesartan tablets"
    earlier = _compaction(1, 9, "## Decisions\n- user: the tablets are candesartan 8 mg now [#3]")
    for section, line, marked in (("Facts", advice, False), ("Decisions", agreed, True)):
        first, _ = summaries_within((earlier, _compaction(10, 20, f"## {section}\n- {line} [#14]")), None)
        assert ("(replaced by [#14])" in first.text) is marked
        children = [
            ChildSummary(first_seq=1, last_seq=9, text=earlier.summary),
            ChildSummary(first_seq=10, last_seq=20, text=f"## {section}\n- {line} [#14]"),
        ]
        assert ("(replaced by [#14])" in condense(children, max_tokens=200, count_tokens=word_count)) is marked


def test_a_summary_of_which_nothing_was_taken_back_is_shown_as_it_is_stored() -> None:
    told = (
        _compaction(1, 9, "## Decisions\n- user: we book the Seehof for Saturday [#3]"),
        _compaction(10, 20, "## Facts\n- user: not the Seehof, the weather was bad [#14]"),
    )
    assert [one.text for one in summaries_within(told, None)] == [one.summary for one in told]


def test_which_of_two_a_change_means_is_known_from_other_summaries_of_the_request() -> None:
    told = (
        "## Decisions\n- user: swimming class on Monday at 9 [#1]",
        "## Decisions\n- user: drawing class on Monday at 5 [#3]",
        "## Decisions\n- user: drawing class moved from Monday to Sunday [#5]",
    )
    shown = summaries_within(tuple(_compaction(2 * at + 1, 2 * at + 2, text) for at, text in enumerate(told)), None)
    assert ["replaced by" in one.text for one in shown] == [False, True, False]


def test_what_is_kept_of_quoted_summaries_is_bounded_by_their_texts() -> None:
    long = "x" * 100_000
    for _ in range(300):
        summaries_within((_compaction(1, 9, long + new_id()),), None)
    assert 0 < len(recent_summaries) <= 161  # 16 MB, and the last of either half


def _compaction(first_seq: int, last_seq: int, summary: str) -> Compaction:
    return Compaction(
        id=new_id(),
        level=1,
        first_seq=first_seq,
        last_seq=last_seq,
        after_seq=first_seq - 1,
        branch=0,
        span_hash="",
        children=(),
        summary=summary,
        strategy="extract:chat",
        model=None,
        trigger="messages",
        original_count=9,
        new_count=1,
        tokens_before=200,
        tokens_after=count_tokens(summary),
        facts_total=0,
        facts_kept=0,
        seconds=0.0,
        created_at=datetime(2024, 5, 3, tzinfo=UTC),
    )


def _marked(*lines: str) -> str:
    """The lines of one summary, condensed."""
    leaf = ChildSummary(first_seq=1, last_seq=99, text="\n".join(lines))
    return condense([leaf], max_tokens=400, count_tokens=word_count)


def test_something_that_merely_happens_again_replaces_nothing() -> None:
    text = _marked(
        "## 决定",
        "- 用户：隔壁装修又敲墙了 [#3]",
        "- 用户：空调又坏了，修了40分钟 [#9]",
        "- 用户：隔壁装修又敲墙了，90分钟 [#20]",
    )
    assert "取代" not in text


def test_what_others_would_do_replaces_no_decision() -> None:
    text = _marked(
        "## Decisions",
        "- user: We fly to Split for 4 nights, Zadar for 3 nights. [#3]",
        "- user: Omar's cousin recommended Dubrovnik for 5 nights instead of Zadar. [#9]",
        "- user: My aunt thinks we should rather go to Zadar by ferry for 2 nights [#11]",
    )
    assert "replaced" not in text


def test_a_word_that_many_lines_share_names_nothing_that_is_taken_back() -> None:
    text = _marked(
        "## Facts",
        "- user: Nora Falk, booking QX-118, asks for a cot [#3]",
        "- user: booking QX-240 is for Paul Oduya [#9]",
        "- user: Lea wants the invoice of booking QX-377 [#14]",
        "- assistant: The booking was cancelled, shall I make a new one? → user: yes, with breakfast [#20–#21]",
    )
    assert "replaced" not in text


def test_a_change_that_names_the_former_day_replaces_only_what_said_that_day() -> None:
    text = _marked(
        "## Decisions",
        "- user: The curtain rises on 4 June, the play has three acts and the hero stays [#3]",
        "- user: The hall must be paid by 30 June and holds 80 guests [#5]",
        "- user: They moved the payment of the hall from 30 June to 12 June, and the play stays [#9]",
    )
    assert "and the hero stays [#3]" in text
    assert "holds 80 guests (changed in part by [#9]) [#5]" in text


def test_a_change_that_names_the_old_day_and_the_new_one_marks_what_was_only_told() -> None:
    text = _marked(
        "## Facts",
        "- user: found a piano teacher in Mill Street, 45 an hour, first lesson tuesday 4pm [#3]",
        "- user: the tuesday lesson got moved to friday 5.30 [#9]",
    )
    assert "tuesday 4pm (changed in part by [#9]) [#3]" in text


def test_the_clock_of_a_pasted_chat_is_nothing_that_changes() -> None:
    text = _marked(
        "## Facts",
        "- user: [12:05] Uncle Ben: I bring the punch, but then without Rex [#3]",
        "- user: [08:41] Nina: I bring the punch after all! [#9]",
    )
    assert "without Rex [#3]" in text


def test_a_change_that_names_its_own_thing_replaces_no_day_of_another() -> None:
    text = _marked(
        "## Decisions",
        "- user: Villa Rosa on 15 June [#20]",
        "- user: The bank postponed our audit meeting to 23 June. [#24]",
    )
    assert "Villa Rosa on 15 June [#20]" in text


def test_what_shares_no_word_is_replaced_by_a_number_that_was_misspelt_and_by_what_holds_only_once() -> None:
    lines = [
        _line("facts", "user: the plane home is LH 1234", 2),
        _line("standing", "user: please call me Bob", 4),
        _line("facts", "user: ticket AB 777 is for the concert", 6),
    ]
    later = [(9, "sorry, typo, LH 1243"), (11, "address me as Al")]
    assert [replaced_by(one) for one in mark_superseded(lines, later, "en")] == [9, 11, None]


def _line(section: Section, text: str, seq: int) -> SummaryLine:
    return SummaryLine(section=section, text=text, first_seq=seq, last_seq=seq)
