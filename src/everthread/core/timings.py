"""How long something took, counted by length: cheap enough for every write, and read only when metrics are.

An observation is appended to a list, in a tenth of a microsecond, and counted with many others later; a histogram of
prometheus_client takes several times as long.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Mapping, Sequence

BOUNDS_SECONDS = (
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0,
)  # fmt: skip
"""From a write in memory to a summary by a model that reaches its time limit."""


_UNCOUNTED = 1000


class Timings:
    """Durations, counted by the smallest bound that each is within. Any thread may add one."""

    __slots__ = ("_counts", "_lock", "_total_seconds", "_uncounted")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._uncounted: list[float] = []
        self._counts = [0] * (len(BOUNDS_SECONDS) + 1)
        self._total_seconds = 0.0

    def observe(self, seconds: float) -> None:
        """Add one."""
        self._uncounted.append(seconds)
        if len(self._uncounted) >= _UNCOUNTED:
            self.read()

    def read(self) -> tuple[Sequence[int], float]:
        """Return how many there were by bound, with those beyond the last one at the end, and their sum in seconds."""
        with self._lock:
            new = self._uncounted[:]
            del self._uncounted[: len(new)]  # others may have added some meanwhile, behind these
            for seconds in new:
                self._counts[bisect_left(BOUNDS_SECONDS, seconds)] += 1
            self._total_seconds += sum(new)
            return tuple(self._counts), self._total_seconds


class TimingsByLabel:
    """Timings kept apart by the values of some labels, such as the kind of a job and how it ended."""

    def __init__(self, *labels: str) -> None:
        self.labels = labels
        self._timings: dict[tuple[str, ...], Timings] = {}

    def observe(self, seconds: float, *values: str) -> None:
        """Count one under these values."""
        self._timings.setdefault(values, Timings()).observe(seconds)

    def read(self) -> Mapping[tuple[str, ...], Timings]:
        """Return what was counted so far, by the values of the labels."""
        return dict(self._timings)
