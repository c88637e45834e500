"""What `/metrics` shows of the service itself: requests, the turns they start, event streams and background jobs. What
the library measures is in `adapters/observability/metrics`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from everthread.core.jobs import Backlog, JobReport, priority_name
from everthread.http.admission import Admission, Outcome

_BUCKETS_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60)


class RequestMetrics:
    """Metrics of requests, of the turns they start and of the background jobs they leave; each app has its own
    registry."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "everthread_http_requests",
            "Requests, by method, route and status.",
            ("method", "route", "status"),
            registry=self.registry,
        )
        self._seconds = Histogram(
            "everthread_http_request_seconds",
            "From the first byte in to the last byte out, by method and route.",
            ("method", "route"),
            buckets=_BUCKETS_SECONDS,
            registry=self.registry,
        )
        self._running = Gauge(
            "everthread_http_requests_running", "Requests that are being answered.", registry=self.registry
        )
        self._turns_running = Gauge(
            "everthread_http_turns_running", "Slots for turns that are taken.", registry=self.registry
        )
        self._turns_waiting = Gauge(
            "everthread_http_turns_waiting", "Requests that wait for a slot.", registry=self.registry
        )
        self._admissions = Counter(
            "everthread_http_turn_admissions",
            "Requests to start a turn, by what became of them.",
            ("outcome",),
            registry=self.registry,
        )
        self._streams = Gauge("everthread_http_streams_open", "Event streams that are open.", registry=self.registry)
        self._streams_refused = Counter(
            "everthread_http_streams_refused", "Followers for whom there was no stream left.", registry=self.registry
        )
        self._jobs = Gauge("everthread_jobs", "Work in the background, by state.", ("state",), registry=self.registry)
        self._waiting = Gauge(
            "everthread_jobs_waiting",
            "Jobs that wait, by kind and priority.",
            ("kind", "priority"),
            registry=self.registry,
        )
        self._oldest = Gauge(
            "everthread_job_oldest_seconds",
            "How long the oldest job that waits has been waiting, by kind.",
            ("kind",),
            registry=self.registry,
        )
        self._unsummarised = Gauge(
            "everthread_unsummarised_messages",
            "Messages that no summary covers, in conversations whose compaction waits.",
            registry=self.registry,
        )

    def set_jobs(self, report: JobReport, backlog: Backlog, now: datetime) -> None:
        """How many jobs wait, run and were given up, and what waits, right now."""
        for state in ("waiting", "running", "dead"):
            self._jobs.labels(state).set(getattr(report, state))
        self._waiting.clear()
        self._oldest.clear()
        oldest: dict[str, float] = {}
        for one in backlog.waiting:
            self._waiting.labels(one.kind, priority_name(one.priority)).set(one.count)
            age_seconds = max(0.0, (now - one.oldest_put_at).total_seconds())
            oldest[one.kind] = max(oldest.get(one.kind, 0.0), age_seconds)
        for kind, age_seconds in oldest.items():
            self._oldest.labels(kind).set(age_seconds)
        self._unsummarised.set(backlog.unsummarised_messages)

    def watch(self, admission: Admission, open_streams: Callable[[], int]) -> None:
        """Show how many slots and streams are in use."""
        self._turns_running.set_function(lambda: admission.running)
        self._turns_waiting.set_function(lambda: admission.waiting)
        self._streams.set_function(open_streams)

    def count_admission(self, outcome: Outcome) -> None:
        self._admissions.labels(outcome).inc()

    def count_refused_stream(self) -> None:
        self._streams_refused.inc()

    @contextmanager
    def running(self) -> Iterator[None]:
        self._running.inc()
        try:
            yield
        finally:
            self._running.dec()

    def observe(self, method: str, route: str, status: int, seconds: float) -> None:
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(method, route).observe(seconds)

    def text(self) -> str:
        """In Prometheus' text format."""
        return generate_latest(self.registry).decode()
