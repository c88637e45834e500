"""The next stretch is the oldest, of whole units, outside of what is recent, and worth a summary."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from everthread.compaction.plan import next_stretch, span_hash
from everthread.compaction.policy import CompactionPolicy
from everthread.compaction.sources import sources_from
from everthread.context import Message, unit_spans
from everthread.context.ingredients import LogMessage
from everthread.context.tokens import count_tokens
from everthread.core import payloads
from tests.context.histories import forall, histories
from tests.context.openai_shape import ai, result, user

POLICY = CompactionPolicy()


def stored(messages: Sequence[Message]) -> list[LogMessage]:
    return [
        LogMessage(seq=at, entry_seq=at, payload=message, tokens=count_tokens(payloads.text(message)))
        for at, message in enumerate(messages, 1)
    ]


@forall(histories(turns=12), st.integers(1, 30), st.integers(4, 20))
def test_a_stretch_is_whole_units_from_the_start_and_leaves_what_is_recent(
    history: list[Message], keep_recent: int, leaf: int
) -> None:
    policy = CompactionPolicy(keep_recent=keep_recent, leaf_max_messages=leaf)
    stretch = next_stretch(stored(history), policy)
    assert stretch == stored(history)[: len(stretch)]
    assert len(stretch) <= max(0, len(history) - keep_recent)
    assert len(stretch) in {0, *(span.stop for span in unit_spans(history))}


def test_a_question_before_a_giant_result_does_not_stand_alone() -> None:
    giant = [user("read it"), ai("", "a"), result("a", "line of a log " * 20_000), *[user("next")] * 12]
    assert [one.seq for one in next_stretch(stored(giant), POLICY)][:3] == [1, 2, 3]


def test_a_long_history_is_taken_leaf_by_leaf_up_to_a_users_turn() -> None:
    talk = [message for _ in range(50) for message in (user("what now?"), ai("this " * 60))]
    stretch = next_stretch(stored(talk), CompactionPolicy(leaf_max_messages=21))
    assert len(stretch) == 20


def test_when_room_must_be_made_all_but_the_newest_may_go() -> None:
    talk = stored([user("one " * 50), ai("two " * 50), user("three " * 50), ai("four " * 50)])
    assert next_stretch(talk, POLICY) == []
    assert [one.seq for one in next_stretch(talk, POLICY, keep_recent=2, at_a_turn=False)] == [1, 2]
    assert [one.seq for one in next_stretch(talk, POLICY, keep_recent=0, at_a_turn=False)] == [1, 2, 3, 4]


def test_system_messages_at_the_beginning_are_covered_with_what_follows_them() -> None:
    instructed = stored([{"role": "system", "content": "rule " * 20_000}, *[user("what now? " * 50)] * 30])
    assert len(next_stretch(instructed, POLICY, opens=True)) > 10
    assert next_stretch(instructed[:12], POLICY, opens=True) == [*instructed[:2]]
    assert next_stretch(instructed[:11], POLICY, opens=True) == []


def test_another_revision_is_another_span() -> None:
    one, two = stored([user("a"), user("b")])
    assert span_hash([one, two]) == span_hash([one, two])
    assert span_hash([one, two]) != span_hash([one])
    assert span_hash([one]) != span_hash([LogMessage(seq=1, entry_seq=9, payload=one.payload, tokens=1)])


def test_summarisers_read_that_there_were_images_and_files() -> None:
    shown = [{"type": "image", "source": {}}, {"type": "file", "file": {"filename": "plan.pdf", "file_data": "x"}}]
    said = sources_from(stored([user("look"), {"role": "user", "content": [{"type": "text", "text": "See"}, *shown]}]))
    assert [one.text for one in said] == ["look", "See\n[image]\n[file: plan.pdf]"]


def test_summarisers_read_who_said_what_and_which_tools_were_used() -> None:
    said = sources_from(stored([user("look"), ai("", "a"), result("a", "found")]))
    assert [(one.seq, one.role, one.text) for one in said] == [
        (1, "user", "look"),
        (2, "assistant", ""),
        (3, "tool", "found"),
    ]
    assert [call.call_id for call in said[1].calls] == ["a"]
    assert (said[2].is_tool_result, said[2].call_id) == (True, "a")
