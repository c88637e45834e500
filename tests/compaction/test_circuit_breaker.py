"""A summary model that fails in a row is left alone for a while, then tried once."""

from __future__ import annotations

from everthread.compaction.policy import CompactionPolicy
from everthread.compaction.summarise import CircuitBreaker

POLICY = CompactionPolicy(breaker_failures=3, breaker_seconds=60.0)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_after_three_failures_in_a_row_it_is_not_asked_for_a_minute() -> None:
    clock = Clock()
    breaker = CircuitBreaker(clock)
    for _ in range(2):
        breaker.note(POLICY, failed=True)
        assert breaker.allows(POLICY)
    breaker.note(POLICY, failed=True)
    assert not breaker.allows(POLICY)
    clock.now = 59.9
    assert not breaker.allows(POLICY)
    clock.now = 60.0
    assert breaker.allows(POLICY)


def test_one_more_failure_after_the_pause_opens_it_again() -> None:
    clock = Clock()
    breaker = CircuitBreaker(clock)
    for _ in range(3):
        breaker.note(POLICY, failed=True)
    clock.now = 60.0
    breaker.note(POLICY, failed=True)
    assert not breaker.allows(POLICY)
    clock.now = 120.0
    breaker.note(POLICY, failed=False)
    clock.now = 120.1
    assert breaker.allows(POLICY)


def test_a_success_in_between_begins_the_count_anew() -> None:
    breaker = CircuitBreaker(Clock())
    for failed in (True, True, False, True, True):
        breaker.note(POLICY, failed=failed)
    assert breaker.allows(POLICY)
