"""What becomes of an event: `logs` writes it to a structlog logger, `metrics` counts it for Prometheus.

Both libraries take a tenth of a second to import; programs that only read never pay for it. prometheus-client is an
extra: without it events are logged and not counted.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from datetime import datetime
from functools import cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING

from everthread.core.clock import Clock, system_clock
from everthread.core.errors import MissingExtra
from everthread.core.events import Event, TimingsReader

if TYPE_CHECKING:
    from everthread.adapters.observability.metrics import PrometheusMetrics


MAX_RECENT = 1000
"""Events kept for `recent`; the log has them all."""


class LogsAndMetrics:
    """The listener of one open database; its counts are its own."""

    def __init__(self, clock: Clock = system_clock) -> None:
        self._clock = clock
        self._recent: deque[tuple[datetime, Event]] = deque(maxlen=MAX_RECENT)
        self._watched: list[tuple[str, str, TimingsReader, Sequence[str]]] = []
        self._is_counting = find_spec("prometheus_client") is not None

    def on_event(self, event: Event) -> None:
        from everthread.adapters.observability.logs import log  # noqa: PLC0415 - startup

        self._recent.appendleft((self._clock(), event))
        if self._is_counting:
            self.metrics.count(event)
        log(event)

    def watch(self, name: str, meaning: str, read: TimingsReader, labels: Sequence[str] = ()) -> None:
        self._watched.append((name, meaning, read, labels))

    @property
    def recent(self) -> Sequence[tuple[datetime, Event]]:
        """The latest events, newest first."""
        return tuple(self._recent)

    @cached_property
    def metrics(self) -> PrometheusMetrics:
        """MissingExtra without prometheus-client."""
        if not self._is_counting:
            raise MissingExtra("metrics need an extra: pip install 'everthread[metrics]'")
        from everthread.adapters.observability.metrics import PrometheusMetrics  # noqa: PLC0415 - startup

        return PrometheusMetrics(self._watched)
