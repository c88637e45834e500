"""A clock for tests: it stands still until it is moved, forwards or backwards."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

_START = datetime(2030, 1, 1, tzinfo=UTC)


@dataclass(slots=True)
class ManualClock:
    """Hand it to `everthread.open(url, clock=ManualClock())`, then move it as the test needs."""

    now: datetime = _START
    """What it shows, aware and in UTC; may be set to anything."""

    def __call__(self) -> datetime:
        return self.now

    def move(self, by: timedelta) -> datetime:
        """Move forwards, or back by a negative span; returns the new time."""
        self.now += by
        return self.now
