"""What becomes of an event: `logs` writes it to a structlog logger, `metrics` counts it for Prometheus.

Both libraries take a tenth of a second to import, which in an event loop would hold up everybody: structlog is left to
programs that use it, and events wait to be counted until somebody looks at the counts, or many wait. prometheus-client
is an extra: without it events are logged and not counted.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from datetime import datetime
from importlib.util import find_spec
from typing import TYPE_CHECKING

from everthread.adapters.observability.logs import log
from everthread.core.clock import Clock, system_clock
from everthread.core.errors import MissingExtra
from everthread.core.events import Event, TimingsReader

if TYPE_CHECKING:
    from everthread.adapters.observability.metrics import PrometheusMetrics


MAX_RECENT = 1000
"""Events kept for `recent`; the log has them all."""
MAX_UNCOUNTED = 1000
"""So many events wait for somebody who looks at the counts."""


class LogsAndMetrics:
    """The listener of one open database; its counts are its own."""

    def __init__(self, clock: Clock = system_clock) -> None:
        self._clock = clock
        self._recent: deque[tuple[datetime, Event]] = deque(maxlen=MAX_RECENT)
        self._watched: list[tuple[str, str, TimingsReader, Sequence[str]]] = []
        self._is_counting = find_spec("prometheus_client") is not None
        self._uncounted: deque[Event] = deque()
        self._metrics: PrometheusMetrics | None = None
        self._counting = threading.Lock()

    def on_event(self, event: Event) -> None:
        self._recent.appendleft((self._clock(), event))
        if self._is_counting:
            self._uncounted.append(event)
            if self._metrics is not None:
                self._count(self._metrics)
            elif len(self._uncounted) == MAX_UNCOUNTED:  # the library is imported by a thread of its own
                threading.Thread(target=lambda: self.metrics, name="everthread-metrics", daemon=True).start()
        log(event)

    def _count(self, metrics: PrometheusMetrics) -> None:
        while self._uncounted:
            try:
                metrics.count(self._uncounted.popleft())
            except IndexError:  # another thread has counted the last one
                return

    def watch(self, name: str, meaning: str, read: TimingsReader, labels: Sequence[str] = ()) -> None:
        self._watched.append((name, meaning, read, labels))

    @property
    def recent(self) -> Sequence[tuple[datetime, Event]]:
        """The latest events, newest first."""
        return tuple(self._recent)

    @property
    def metrics(self) -> PrometheusMetrics:
        """All events counted. MissingExtra without prometheus-client."""
        if not self._is_counting:
            raise MissingExtra("metrics need an extra: pip install 'everthread[metrics]'")
        with self._counting:
            if self._metrics is None:
                from everthread.adapters.observability.metrics import PrometheusMetrics  # noqa: PLC0415 - startup

                self._metrics = PrometheusMetrics(self._watched)
            self._count(self._metrics)  # whoever waits for the lock finds all counted
        return self._metrics
