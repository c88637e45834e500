"""Units are the places where a view may be cut."""

from __future__ import annotations

from everthread.context import unit_spans, units
from everthread.context.units import pair_results
from tests.context.histories import forall, histories
from tests.context.openai_shape import ai, result, system, user
from tests.context.random_histories import Message


@forall(histories())
def test_units_laid_end_to_end_are_the_input(history: list[Message]) -> None:
    assert [message for unit in units(history) for message in unit] == history


@forall(histories())
def test_no_unit_parts_a_call_from_its_result(history: list[Message]) -> None:
    unit_of = {index: number for number, span in enumerate(unit_spans(history)) for index in span}
    for call, answer in pair_results(history).answers.items():
        assert unit_of[call.message] == unit_of[answer.message]


def test_nothing_has_no_units() -> None:
    assert units([]) == []


def test_parallel_calls_and_all_their_results_are_one_unit() -> None:
    history = [system(), user(), ai("", "a", "b"), result("b"), result("a"), ai("done"), user()]
    assert [len(unit) for unit in units(history)] == [1, 1, 3, 1, 1]


def test_a_late_result_holds_everything_between_together() -> None:
    history = [user(), ai("", "a"), user("never mind"), ai("fine"), result("a"), user()]
    assert [len(unit) for unit in units(history)] == [1, 4, 1]


def test_a_reused_id_ties_a_result_to_the_nearest_caller_only() -> None:
    history = [ai("", "call_1"), result("call_1"), user(), ai("", "call_1"), result("call_1")]
    assert [len(unit) for unit in units(history)] == [2, 1, 2]


def test_a_result_without_an_id_belongs_to_the_caller_before_it() -> None:
    history = [ai("", "a"), {"role": "tool", "content": "found"}, user()]
    assert [len(unit) for unit in units(history)] == [2, 1]


def test_results_as_blocks_are_part_of_their_callers_unit() -> None:
    caller = {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "search", "input": {}}]}
    carrier = user([{"type": "tool_result", "tool_use_id": "a", "content": "found"}, {"type": "text", "text": "go on"}])
    assert units([user(), caller, carrier, ai()]) == [[user()], [caller, carrier], [ai()]]


def test_reasoning_in_a_message_of_its_own_stays_with_what_follows_from_it() -> None:
    thought = {"role": "assistant", "content": [{"type": "thinking", "thinking": "so", "signature": "s"}]}
    history = [user(), thought, ai("", "a"), result("a")]
    assert [len(unit) for unit in units(history)] == [1, 3]
