"""What becomes of what is told: `logs` writes it to a structlog logger, `metrics` counts it for Prometheus.

Both libraries take a tenth of a second to import; that is paid at the first event, not by those who only read.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING

from everthread.core.clock import Clock, system_clock
from everthread.core.events import Event

if TYPE_CHECKING:
    from everthread.adapters.observability.metrics import PrometheusMetrics


MOST_RECENT = 1000
"""Events that are kept to be looked at; the log has them all."""


class LogsAndMetrics:
    """The listener of an open database; its counts are its own."""

    def __init__(self, clock: Clock = system_clock) -> None:
        self._clock = clock
        self._heard: deque[tuple[datetime, Event]] = deque(maxlen=MOST_RECENT)

    def hear(self, event: Event) -> None:
        from everthread.adapters.observability.logs import log  # noqa: PLC0415 - startup

        self._heard.appendleft((self._clock(), event))
        self.metrics.count(event)
        log(event)

    @property
    def recent(self) -> Sequence[tuple[datetime, Event]]:
        """What was heard last, the newest first."""
        return tuple(self._heard)

    @cached_property
    def metrics(self) -> PrometheusMetrics:
        from everthread.adapters.observability.metrics import PrometheusMetrics  # noqa: PLC0415 - startup

        return PrometheusMetrics()
