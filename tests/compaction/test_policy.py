"""When a compaction is due is a pure decision, and settings that make no sense are refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from everthread.compaction.due import UNKNOWN_BUDGET, Load, decide_trigger
from everthread.compaction.policy import (
    CompactionPolicy,
    Trigger,
    apply_settings,
    apply_stored_settings,
    policy_as_dict,
)
from everthread.context import Budget
from everthread.core.errors import Invalid

POLICY = CompactionPolicy()
COUNTED = CompactionPolicy(max_message_history=40)
BUDGET = Budget(window=1_100, output_reserve=100)


@pytest.mark.parametrize(
    ("load", "expected"),
    [
        (Load(used_tokens=100, uncovered=20), None),
        (Load(used_tokens=799, uncovered=20), None),
        (Load(used_tokens=800, uncovered=20), "threshold"),
        (Load(used_tokens=800, uncovered=10, compactable=False), None),
        (Load(used_tokens=100, uncovered=35), None),
        (Load(used_tokens=100, uncovered=36), "messages"),
        (Load(used_tokens=100, uncovered=41), "messages"),
        (Load(used_tokens=1_000, uncovered=41), "threshold"),
        (Load(used_tokens=1_001, uncovered=2), "hard_limit"),
        (Load(used_tokens=900, uncovered=50, freed_little=True), None),
        (Load(used_tokens=900, uncovered=50, was_undone=True), None),
        (Load(used_tokens=1_001, uncovered=50, freed_little=True, was_undone=True), "hard_limit"),
    ],
)
def test_a_compaction_is_due_at_one_of_three_marks(load: Load, expected: Trigger | None) -> None:
    assert decide_trigger(COUNTED, BUDGET, load) == expected


def test_without_a_number_of_messages_tokens_alone_make_a_compaction_due_until_there_are_hundreds() -> None:
    few_tokens = Load(used_tokens=100, uncovered=700)
    assert decide_trigger(POLICY, BUDGET, few_tokens) is None
    assert decide_trigger(POLICY, BUDGET, replace(few_tokens, used_tokens=800)) == "threshold"
    assert decide_trigger(POLICY, BUDGET, replace(few_tokens, uncovered=900)) == "messages"
    assert decide_trigger(POLICY, UNKNOWN_BUDGET, replace(few_tokens, uncovered=36)) == "messages"


def test_switched_off_it_is_due_at_the_hard_mark_only() -> None:
    off = CompactionPolicy(enabled=False)
    assert decide_trigger(off, BUDGET, Load(used_tokens=1_000, uncovered=99)) is None
    assert decide_trigger(off, BUDGET, Load(used_tokens=1_001, uncovered=99)) == "hard_limit"


@pytest.mark.parametrize("history", range(10, 101, 10))
def test_it_is_due_before_the_window_has_to_jump_and_after_it_has_room_to_grow(history: int) -> None:
    policy = CompactionPolicy(max_message_history=history, keep_recent=history // 2)
    assert policy.keep_recent < policy.message_mark <= history


def test_a_policy_survives_the_way_through_plain_values() -> None:
    policy = CompactionPolicy(keep_recent=7, strategy="coding")
    assert apply_settings(POLICY, policy_as_dict(policy)) == policy


def test_kept_settings_hold_as_far_as_they_still_can() -> None:
    assert apply_stored_settings(POLICY, {"keep_recent": 20}).keep_recent == 20
    small = CompactionPolicy(max_message_history=10, keep_recent=3)
    assert apply_stored_settings(small, {"keep_recent": 20, "fan_in": 3, "gone": 1}) == apply_settings(
        small, {"fan_in": 3}
    )


@pytest.mark.parametrize(
    "changes",
    [{"keep_recent": 100}, {"threshold": None}, {"unknown": 1}, {"least_freed": "x"}, {"enabled": 1}],
    ids=str,
)
def test_what_makes_no_sense_is_refused_by_its_name(changes: dict[str, object]) -> None:
    with pytest.raises(Invalid) as refused:
        apply_settings(POLICY, changes)
    assert refused.value.field == next(iter(changes))


def test_a_small_window_lowers_what_is_kept_recent_unless_both_are_given() -> None:
    assert apply_settings(CompactionPolicy(), {"max_message_history": 10}).keep_recent == 9
    assert apply_settings(CompactionPolicy(), {"max_message_history": 10, "keep_recent": 3}).keep_recent == 3
    with pytest.raises(Invalid):
        apply_settings(CompactionPolicy(), {"max_message_history": 10, "keep_recent": 10})
