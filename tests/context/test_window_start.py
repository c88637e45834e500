"""A window grows, is cut back when a compaction lands, and else moves in jumps: never one message a turn."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import strategies as st

from everthread.context import Message, WindowBounds, coverage_end, jump_length, unit_spans, window_start
from everthread.context.message_format import is_user_turn
from everthread.core.errors import Invalid
from tests.context.histories import forall, sound_histories
from tests.context.openai_shape import ai, result, user
from tests.context.trajectories import tau_bench_runs

BOUNDS = st.integers(10, 100).flatmap(
    lambda most: st.integers(1, most - 1).map(lambda keep: WindowBounds(max_message_history=most, keep_recent=keep))
)
CHAT = [message for at in range(150) for message in (user(f"q{at}"), ai(f"a{at}"))]


@forall(st.integers(0, 2_000), BOUNDS)
def test_the_window_is_never_longer_than_its_bound_nor_shorter_than_what_is_kept(
    uncovered: int, bounds: WindowBounds
) -> None:
    left = uncovered - jump_length(uncovered, bounds)
    assert left <= bounds.max_message_history
    assert left == uncovered or left > bounds.keep_recent + bounds.slack


@forall(st.integers(0, 2_000), BOUNDS)
def test_between_jumps_the_start_stays_where_it_is(uncovered: int, bounds: WindowBounds) -> None:
    moved = jump_length(uncovered + 1, bounds) - jump_length(uncovered, bounds)
    assert moved in (0, bounds.step)


@forall(sound_histories(turns=12), st.data())
def test_the_start_is_the_same_however_the_conversation_goes_on(history: list[Message], data: st.DataObject) -> None:
    bounds = WindowBounds(max_message_history=10, keep_recent=4)
    now = data.draw(st.sampled_from([*(span.start for span in unit_spans(history)), len(history)]))
    before, after = window_start(history[:now], bounds=bounds), window_start(history, bounds=bounds)
    if jump_length(now, bounds) == jump_length(len(history), bounds):
        assert before == after
    else:
        assert before.index <= after.index


@forall(sound_histories(turns=10), st.data(), BOUNDS)
def test_the_start_cuts_no_unit_and_belongs_to_a_users_turn(
    history: list[Message], data: st.DataObject, bounds: WindowBounds
) -> None:
    covered = data.draw(st.integers(0, len(history)))
    start = window_start(history, covered=covered, bounds=bounds)
    assert start.index == len(history) or start.index in [span.start for span in unit_spans(history)]
    first = start.index if start.anchor is None else start.anchor
    assert first == len(history) or is_user_turn(history[first]) or not any(map(is_user_turn, history[:first]))


@forall(sound_histories(turns=10), st.data(), BOUNDS)
def test_nothing_lies_between_coverage_and_a_window_within_its_bound(
    history: list[Message], data: st.DataObject, bounds: WindowBounds
) -> None:
    covered = data.draw(st.integers(0, len(history)))
    if len(history) - covered <= bounds.max_message_history:
        assert window_start(history, covered=covered, bounds=bounds).index <= covered


@forall(sound_histories(turns=10), st.data(), BOUNDS)
def test_a_compaction_leaves_what_is_recent_and_cuts_no_unit(
    history: list[Message], data: st.DataObject, bounds: WindowBounds
) -> None:
    starts = [span.start for span in unit_spans(history)]
    covered = data.draw(st.sampled_from(starts or [0]))
    end = coverage_end(history, covered=covered, bounds=bounds)
    assert end >= covered
    if end > covered:
        assert end in starts
        assert len(history) - end >= bounds.keep_recent


def test_without_any_compaction_the_start_stays_in_nine_of_ten_turns() -> None:
    starts = [window_start(CHAT[: 2 * turn + 1]).index for turn in range(150)]
    moved = sum(before != after for before, after in pairwise(starts))
    assert 0 < moved <= 15
    assert starts == sorted(starts)


def test_after_a_compaction_the_window_is_what_was_kept() -> None:
    end = coverage_end(CHAT[:61])
    start = window_start(CHAT[:61], covered=end)
    assert start.index == end
    assert start.anchor is None
    assert 10 <= 61 - end <= 20


def test_a_long_run_of_tools_is_covered_up_to_a_unit_and_keeps_its_question() -> None:
    steps = [message for at in range(60) for message in (ai("", f"c{at}"), result(f"c{at}"))]
    history = [user("fix it"), *steps]
    end = coverage_end(history)
    assert history[end]["role"] == "assistant"
    assert window_start(history, covered=end).anchor == 0


def test_a_users_turn_that_is_far_back_does_not_hold_a_compaction_up() -> None:
    steps = [message for at in range(60) for message in (ai("", f"c{at}"), result(f"c{at}"))]
    history = [*CHAT[:10], user("fix it"), *steps]
    assert len(history) - coverage_end(history) <= 11


def test_nothing_to_cover_covers_nothing() -> None:
    assert coverage_end(CHAT[:8]) == 0
    assert coverage_end([], covered=0) == 0
    assert window_start([]).index == 0


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("max_message_history", {"max_message_history": 9}),
        ("max_message_history", {"max_message_history": 1001}),
        ("max_message_history", {"max_message_history": True}),
        ("max_message_history", {"max_message_history": 40.0}),
        ("keep_recent", {"keep_recent": 40}),
        ("keep_recent", {"keep_recent": 0}),
        ("keep_recent", {"max_message_history": 10, "keep_recent": 10}),
    ],
)
def test_bounds_that_make_no_sense_are_refused_with_field_and_range(field: str, values: dict[str, int]) -> None:
    with pytest.raises(Invalid, match="choose from") as refused:
        WindowBounds(**values)
    assert refused.value.field == field


def test_the_smallest_and_the_largest_bounds_are_allowed() -> None:
    assert WindowBounds(max_message_history=10, keep_recent=9).step == 1
    assert WindowBounds(max_message_history=100, keep_recent=1).step == 66


def test_recorded_runs_keep_their_start_between_jumps() -> None:
    bounds = WindowBounds(max_message_history=12, keep_recent=4)
    for run in tau_bench_runs()[::20]:
        starts = [window_start(run[: at + 1], bounds=bounds).index for at in range(len(run))]
        assert starts == sorted(starts)
