"""Timings lose none, whichever thread adds them and whenever they are read."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everthread.core.timings import BOUNDS_SECONDS, Timings, TimingsByLabel


@given(st.lists(st.floats(min_value=0, max_value=1000)))
def test_each_is_counted_at_the_smallest_bound_that_it_is_within(durations: list[float]) -> None:
    timings = Timings()
    for seconds in durations:
        timings.observe(seconds)
    counts, total_seconds = timings.read()
    for place, bound in enumerate(BOUNDS_SECONDS):
        assert sum(counts[: place + 1]) == sum(seconds <= bound for seconds in durations)
    assert sum(counts) == len(durations)
    assert total_seconds == pytest.approx(sum(durations))


def test_none_is_lost_between_threads_and_readers() -> None:
    timings = Timings()

    def observe_many(_: int) -> None:
        for number in range(5000):
            timings.observe(0.001)
            if number % 100 == 0:
                timings.read()

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(observe_many, range(4)))
    counts, total_seconds = timings.read()
    assert sum(counts) == 20_000
    assert total_seconds == pytest.approx(20.0)


def test_labels_are_kept_apart() -> None:
    timings = TimingsByLabel("kind", "outcome")
    timings.observe(1.0, "compact", "done")
    timings.observe(2.0, "compact", "dead")
    assert {values: sum(one.read()[0]) for values, one in timings.read().items()} == {
        ("compact", "done"): 1,
        ("compact", "dead"): 1,
    }
