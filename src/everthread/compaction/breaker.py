"""A summary model that fails again and again is left alone for a while, so that no turn waits for it in vain."""

from __future__ import annotations

import time
from collections.abc import Callable

from everthread.compaction.policy import CompactionPolicy


class Breaker:
    """Counts failures in a row. Shared by all conversations of one open database."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._failures = 0
        self._opened_at: float | None = None

    def allows(self, policy: CompactionPolicy) -> bool:
        """Whether the model may be asked; after the pause one attempt is let through."""
        return self._opened_at is None or self._now() - self._opened_at >= policy.breaker_seconds

    def note(self, policy: CompactionPolicy, *, failed: bool) -> None:
        """How an attempt ended."""
        self._failures = self._failures + 1 if failed else 0
        if self._failures >= policy.breaker_failures:
            self._opened_at = self._now()
        elif not failed:
            self._opened_at = None
