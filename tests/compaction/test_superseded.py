"""A decision that a later message replaced says so, and by which."""

from __future__ import annotations

from everthread.compaction import ChildSummary, condense, extract
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
