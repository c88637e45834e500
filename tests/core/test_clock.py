"""Moments as the databases keep them: whole microseconds, before 1970 too."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st

from everthread.core.clock import from_micros, system_clock, to_micros
from everthread.testing import ManualClock


@given(st.datetimes(timezones=st.just(UTC)))
def test_a_moment_comes_back_to_the_microsecond(moment: datetime) -> None:
    assert from_micros(to_micros(moment)) == moment
    assert from_micros(to_micros(moment)).tzinfo is UTC


@given(st.timedeltas(timedelta(days=-40_000), timedelta(days=40_000)), st.integers(-23, 23))
def test_a_zone_changes_no_moment(since: timedelta, hours: int) -> None:
    there = (datetime(1970, 1, 1, tzinfo=UTC) + since).astimezone(timezone(timedelta(hours=hours)))
    assert from_micros(to_micros(there)) == there


def test_the_systems_clock_is_aware() -> None:
    assert system_clock().tzinfo is UTC


def test_a_manual_clock_stands_still_until_it_is_moved() -> None:
    clock = ManualClock()
    start = clock()
    assert clock() == start
    assert clock.move(timedelta(days=-1)) == clock() == start - timedelta(days=1)
    clock.now = datetime(1970, 1, 1, tzinfo=UTC)
    assert to_micros(clock()) == 0
