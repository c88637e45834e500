"""What becomes of what is told: `logs` writes it to a structlog logger, `metrics` counts it for Prometheus.

Both libraries take a tenth of a second to import; that is paid at the first event, not by those who only read.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from everthread.core.events import Event

if TYPE_CHECKING:
    from everthread.adapters.telling.metrics import PrometheusMetrics


class LogsAndMetrics:
    """The listener of an open database; its counts are its own."""

    def hear(self, event: Event) -> None:
        from everthread.adapters.telling.logs import log  # noqa: PLC0415 - startup

        self.metrics.count(event)
        log(event)

    @cached_property
    def metrics(self) -> PrometheusMetrics:
        from everthread.adapters.telling.metrics import PrometheusMetrics  # noqa: PLC0415 - startup

        return PrometheusMetrics()
