"""A window is cut between units, begins with the user, and names all it leaves out."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st

from everthread.context import Message, cut_window, find_violations, message_tokens, repair, units
from everthread.context.message_format import is_system, is_user_turn
from everthread.core.errors import Invalid
from tests.context.histories import forall, histories
from tests.context.openai_shape import ai, result, system, user
from tests.context.trajectories import tau_bench_runs

BOUNDS = st.sampled_from((0, 1, 2, 3, 5, 10, 40, 1_000))
TOKENS = st.sampled_from((None, 0, 1, 50, 400, 2_000))


def long_run(calls: int) -> list[Message]:
    """One question, and a tool used many times over."""
    steps = [message for at in range(calls) for message in (ai("", f"c{at}"), result(f"c{at}"))]
    return [system(), user("fix the bug"), *steps]


# --- for every history -----------------------------------------------------------------------


@forall(histories(), st.integers(1, 40), TOKENS, st.data())
def test_a_window_of_a_valid_list_is_valid(
    history: list[Message], max_messages: int, max_tokens: int | None, data: st.DataObject
) -> None:
    view = repair(history)
    pinned = data.draw(st.sets(st.integers(0, max(0, len(view) - 1)), max_size=2))
    window = cut_window(view, max_messages, max_tokens or None, pinned=pinned)
    assert find_violations(window.messages) == []


@forall(histories(), BOUNDS, TOKENS, st.booleans())
def test_every_message_is_in_the_window_or_named_as_left_out(
    history: list[Message], max_messages: int, max_tokens: int | None, keep_first: bool
) -> None:
    window = cut_window(history, max_messages, max_tokens, keep_first_user=keep_first)
    left_out = tuple(omitted.index for omitted in window.omitted)
    assert sorted(window.indexes + left_out) == list(range(len(history)))
    assert list(window) == [history[index] for index in window.indexes]


@forall(histories(), st.integers(1, 40), TOKENS)
def test_units_are_kept_or_left_out_as_a_whole(
    history: list[Message], max_messages: int, max_tokens: int | None
) -> None:
    shown = set(cut_window(history, max_messages, max_tokens).indexes)
    at = 0
    for unit in units(history):
        assert len({index in shown for index in range(at, at + len(unit))}) == 1
        at += len(unit)


@forall(histories(), BOUNDS, TOKENS)
def test_within_says_whether_the_bounds_hold(history: list[Message], max_messages: int, max_tokens: int | None) -> None:
    view = repair(history)
    window = cut_window(view, max_messages, max_tokens)
    few = sum(not is_system(message) for message in window) <= max_messages
    short = max_tokens is None or sum(map(message_tokens, window)) <= max_tokens
    assert window.within == (few and short)


@forall(histories(), st.integers(1, 40))
def test_a_window_begins_with_the_user(history: list[Message], max_messages: int) -> None:
    spoken = [message for message in cut_window(repair(history), max_messages) if not is_system(message)]
    assert not spoken or is_user_turn(spoken[0])


@forall(histories())
def test_what_fits_is_not_cut(history: list[Message]) -> None:
    assert list(cut_window(history, len(history))) == history


# --- the papers' own examples ----------------------------------------------------------------


def test_flaw_001_2_a_kept_result_brings_all_results_of_its_message() -> None:
    history = [user("one"), ai("", "a", "b"), result("a"), result("b"), user("two"), ai("done")]
    for keep in range(1, len(history) + 1):
        assert find_violations(cut_window(history, keep).messages) == []


def test_flaw_001_3_keeping_more_than_there_is_keeps_all() -> None:
    history = [user(), ai()]
    assert list(cut_window(history, 40)) == history


def test_flaw_001_3_a_result_of_nobody_is_no_error() -> None:
    history = [user(), result("nobody"), ai()]
    assert list(cut_window(history, 10)) == history


def test_flaw_001_4_no_call_is_kept_without_its_result() -> None:
    filler = [message for at in range(22) for message in (user(f"q{at}"), ai(f"a{at}"))]
    history = [system(), user("first"), ai("", "call_1"), result("call_1"), *filler, user("last")]
    window = cut_window(history, 10)
    assert find_violations(window.messages) == []
    assert 2 not in window.indexes
    assert 3 not in window.indexes


def test_flaw_001_5_the_window_begins_at_a_users_turn_and_the_first_goal_stays() -> None:
    turns = [message for at in range(20) for message in (user(f"q{at}"), ai("", f"c{at}"), result(f"c{at}"), ai("so"))]
    window = cut_window([user("the goal"), ai("yes"), *turns], 11)
    assert window.messages[0] == user("the goal")
    assert window.messages[1] == user("q18")
    assert len(window) == 9


# --- one case each ---------------------------------------------------------------------------


def test_a_long_run_of_tools_keeps_the_question_it_is_about() -> None:
    window = cut_window(long_run(100), 9)
    assert window.messages[:2] == (system(), user("fix the bug"))
    assert len(window) == 10
    assert window.messages[-1] == result("c99")
    assert window.within


def test_a_unit_over_the_bound_is_kept_whole_and_said_to_be_over() -> None:
    history = [user(), ai("", *(f"c{at}" for at in range(60))), *(result(f"c{at}") for at in range(60))]
    window = cut_window(history, 40)
    assert len(window) == 62
    assert not window.within


def test_a_bound_of_zero_leaves_instructions_and_pins() -> None:
    history = [system(), user("a"), ai("b"), user("c"), ai("d")]
    assert list(cut_window(history, 0, pinned={2})) == [system(), user("a"), ai("b")]
    assert list(cut_window(history, 40, 0)) == [system()]


def test_a_pinned_answer_keeps_its_question() -> None:
    turns = [message for at in range(10) for message in (user(f"q{at}"), ai(f"a{at}"))]
    window = cut_window(turns, 4, pinned={7}, keep_first_user=False)
    assert [message["content"] for message in window] == ["q3", "a3", "q9", "a9"]


def test_tokens_bound_the_window_by_what_it_costs() -> None:
    turns = [message for at in range(10) for message in (user(f"q{at}"), ai("word " * 100))]
    window = cut_window(turns, 40, 340, keep_first_user=False)
    assert len(window) == 6
    assert {omitted.reason for omitted in window.omitted} == {"over_tokens"}


def test_known_counts_are_not_made_again() -> None:
    def refuse(text: str) -> int:
        raise AssertionError(f"counted {text!r} again")

    turns = [user("q"), ai("a")] * 10
    assert len(cut_window(turns, 40, 60, tokens=[10] * 20, count=refuse, keep_first_user=False)) == 6


@pytest.mark.parametrize(("field", "bounds"), [("max_messages", (-1, None)), ("max_tokens", (40, -1))])
def test_a_bound_below_zero_is_refused_with_its_name(field: str, bounds: tuple[int, int | None]) -> None:
    with pytest.raises(Invalid) as refused:
        cut_window([user()], *bounds)
    assert refused.value.field == field


def test_recorded_runs_cut_at_every_length_are_valid() -> None:
    for run in tau_bench_runs()[::20]:
        view = repair(run)
        for keep in range(1, len(view)):
            assert find_violations(cut_window(view, keep).messages) == []
