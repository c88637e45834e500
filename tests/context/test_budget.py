"""What fits, and how far our own count is believed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import strategies as st

from everthread.context import (
    Budget,
    Calibration,
    Message,
    apply_calibration,
    calibrate,
    calibrate_after_overflow,
    message_tokens,
)
from everthread.context.tokens import ANSWER_TOKENS, CALL_TOKENS, IMAGE_TOKENS, MESSAGE_TOKENS
from everthread.core.errors import Invalid
from tests.context.histories import forall, histories
from tests.context.openai_shape import ai, call, result, user


def words(text: str) -> int:
    return len(text.split())


# --- the budget ------------------------------------------------------------------------------


def test_the_limit_is_the_window_without_answer_and_tools() -> None:
    budget = Budget(window=128_000, output_reserve=4_096, tools_tokens=1_904)
    assert budget.limit == 122_000
    assert budget.room(system_tokens=2_000) == 120_000


def test_the_defaults_are_those_of_a_common_model() -> None:
    assert (Budget().window, Budget().output_reserve, Budget().tools_tokens) == (128_000, 4_096, 0)


def test_a_small_window_keeps_a_quarter_for_the_answer_unless_told() -> None:
    assert (Budget(window=4_000).output_reserve, Budget(window=4_000).limit) == (1_000, 3_000)
    assert Budget(window=4_000, output_reserve=100).output_reserve == 100
    assert replace(Budget(window=4_000), window=8_000).output_reserve == 1_000


def test_a_system_prompt_over_the_limit_leaves_nothing_not_less() -> None:
    assert Budget(window=1_000, output_reserve=0).room(system_tokens=5_000) == 0


def test_an_estimate_makes_the_limit_smaller() -> None:
    assert Budget(window=14_000, output_reserve=1_000, factor=1.3).limit == 10_000


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("window", {"window": 0}),
        ("window", {"window": -1}),
        ("window", {"window": True}),
        ("window", {"window": 128_000.0}),
        ("window", {"window": "128000"}),
        ("output_reserve", {"output_reserve": -1}),
        ("output_reserve", {"window": 4_000, "output_reserve": 4_000}),
        ("tools_tokens", {"tools_tokens": -1}),
        ("factor", {"factor": 0.1}),
        ("window", {"window": 4_000, "output_reserve": 3_000, "tools_tokens": 1_000}),
    ],
)
def test_nonsense_is_refused_by_name(field: str, values: dict[str, Any]) -> None:
    with pytest.raises(Invalid) as refused:
        Budget(**values)
    assert refused.value.field == field


def test_a_refusal_says_what_is_allowed() -> None:
    with pytest.raises(Invalid, match=r"output_reserve: -1 is not allowed; choose from 0 to 127,999"):
        Budget(output_reserve=-1)


# --- calibration -----------------------------------------------------------------------------


def test_an_unknown_model_is_counted_with_a_third_more() -> None:
    assert Calibration().factor == 1.3


def test_the_first_report_replaces_the_guess() -> None:
    assert calibrate(Calibration(), counted=10_000, reported=11_000).factor == pytest.approx(1.122)


def test_a_report_above_is_believed_at_once_and_one_below_by_and_by() -> None:
    start = Calibration(factor=1.2, samples=5)
    assert calibrate(start, counted=10_000, reported=15_000).factor == pytest.approx(1.53)
    eased = calibrate(start, counted=10_000, reported=10_000)
    assert 1.02 < eased.factor < 1.2
    for _ in range(50):
        eased = calibrate(eased, counted=10_000, reported=10_000)
    assert eased.factor == pytest.approx(1.02, abs=0.001)


@pytest.mark.parametrize(("counted", "reported"), [(100, 500), (0, 0), (5_000, 0), (5_000, -1)])
def test_a_report_that_says_nothing_changes_nothing(counted: int, reported: int) -> None:
    assert calibrate(Calibration(), counted=counted, reported=reported) == Calibration()


@forall(st.floats(0.5, 3.0), st.integers(1, 200_000), st.integers(1_000, 200_000))
def test_after_an_overflow_the_same_request_is_over_the_limit(factor: float, counted: int, room: int) -> None:
    after = calibrate_after_overflow(Calibration(factor=factor, samples=1), counted=counted, room=room)
    assert after.factor > factor
    if after.factor < 4.0:
        budget = apply_calibration(Budget(window=room, output_reserve=0), after)
        assert counted > budget.limit


def test_an_overflow_that_names_its_size_is_taken_at_its_word() -> None:
    after = calibrate_after_overflow(
        Calibration(factor=1.0, samples=1), counted=100_000, room=128_000, reported=150_000
    )
    assert after.factor == pytest.approx(1.53)


@forall(st.lists(st.tuples(st.integers(200, 10**6), st.integers(-5, 10**7))))
def test_no_series_of_reports_leaves_the_allowed_range(reports: list[tuple[int, int]]) -> None:
    calibration = Calibration()
    for counted, reported in reports:
        calibration = calibrate(calibration, counted=counted, reported=reported)
    assert Budget(factor=calibration.factor).limit > 0


# --- counting --------------------------------------------------------------------------------


def test_every_part_of_a_message_counts() -> None:
    assert message_tokens(user("one two three"), words) == MESSAGE_TOKENS + 3
    assert message_tokens(user("one", name="Ann"), words) == MESSAGE_TOKENS + 2
    assert message_tokens(result("a", "one two"), words) == MESSAGE_TOKENS + ANSWER_TOKENS + 2
    called = {**ai("one"), "tool_calls": [call("a", arguments='{"q": 1}')]}
    assert message_tokens(called, words) == MESSAGE_TOKENS + 1 + CALL_TOKENS + 1 + 2


@pytest.mark.parametrize(
    ("block", "tokens"),
    [
        ({"type": "image_url", "image_url": {"url": "data:image/png;base64," + "x" * 10_000}}, IMAGE_TOKENS),
        ({"type": "image_url", "image_url": {"url": "https://e.org/a.png", "detail": "low"}}, 85),
        ({"type": "image", "source": {"type": "base64", "data": "x" * 10_000}}, IMAGE_TOKENS),
        ({"type": "document", "source": {"type": "base64", "data": "x" * 400_000}}, 10_000),
        ({"type": "document", "source": {"type": "text", "data": "one two"}}, 2),
        ({"type": "thinking", "thinking": "one two three", "signature": "x" * 500}, 3),
        ({"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": "one"}]}, 1),
    ],
)
def test_blocks_count_by_what_they_are(block: dict[str, Any], tokens: int) -> None:
    answer = ANSWER_TOKENS if block["type"] == "tool_result" else 0
    assert message_tokens(user([block]), words) == MESSAGE_TOKENS + answer + tokens


def test_a_call_that_langchain_writes_twice_counts_once() -> None:
    used = {"type": "tool_use", "id": "a", "name": "search", "input": {"q": 1}}
    listed = {"id": "a", "name": "search", "args": {"q": 1}}
    once = {"type": "ai", "content": "", "tool_calls": [listed]}
    assert message_tokens({**once, "content": [used]}, words) == message_tokens(once, words)


@forall(histories())
def test_every_message_has_a_count(history: list[Message]) -> None:
    assert all(message_tokens(message) >= MESSAGE_TOKENS for message in history)
