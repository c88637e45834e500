"""Time, as a port: the store's own time of writing. It is shown, and never used to order anything."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

Clock = Callable[[], datetime]
"""Gives the present moment, aware and in UTC."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def system_clock() -> datetime:
    """The machine's clock."""
    return datetime.now(UTC)


def to_micros(moment: datetime) -> int:
    """Whole microseconds since 1970, as the databases keep it."""
    return (moment - _EPOCH) // _MICROSECOND


def from_micros(micros: int) -> datetime:
    """The aware UTC moment of a stored number."""
    return _EPOCH + timedelta(microseconds=micros)
