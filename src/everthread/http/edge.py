"""The outermost door: every request gets an id, a log line, a count and, where OpenTelemetry is set up, a span; and
what nobody foresaw ends here, as an answer that tells nothing of it.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from opentelemetry import propagate, trace
from opentelemetry.trace import SpanKind, StatusCode
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from everthread.core.ids import new_id
from everthread.core.jobs import JobReport
from everthread.http.errors import defect

_LOG = logging.getLogger("everthread.http")
_TRACER = trace.get_tracer("everthread.http")
_GIVEN_ID = re.compile(r"[\w.:-]{1,128}", re.ASCII)
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60)


class RequestCounts:
    """What is counted of requests, and of the work they leave; each app has its own."""

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
            buckets=_SECONDS,
            registry=self.registry,
        )
        self._running = Gauge(
            "everthread_http_requests_running", "Requests that are being answered.", registry=self.registry
        )

        self._jobs = Gauge("everthread_jobs", "Work in the background, by state.", ("state",), registry=self.registry)

    def note_jobs(self, report: JobReport) -> None:
        """What waits, runs and was given up, as it is now."""
        for state in ("waiting", "running", "dead"):
            self._jobs.labels(state).set(getattr(report, state))

    @contextmanager
    def running(self) -> Iterator[None]:
        self._running.inc()
        try:
            yield
        finally:
            self._running.dec()

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(method, route).observe(seconds)

    def text(self) -> str:
        """In Prometheus' text format."""
        return generate_latest(self.registry).decode()


class Edge:
    """Where a request comes in and an answer goes out."""

    def __init__(self, app: ASGIApp, counts: RequestCounts) -> None:
        self._app = app
        self._counts = counts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = _request_id(scope)
        scope.setdefault("state", {})["request_id"] = request_id
        began = time.perf_counter()
        status = 0

        async def told(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)["X-Request-Id"] = request_id
            await send(message)

        with self._counts.running(), _span(scope, request_id) as span:
            try:
                await self._app(scope, receive, told)
            except Exception as problem:  # noqa: BLE001 - the stream's edge: nothing of a defect reaches a client
                _LOG.error("defect", exc_info=problem, extra={"request_id": request_id, "path": scope["path"]})
                if not status:
                    await defect()(scope, receive, told)
            seconds = time.perf_counter() - began
            route = _route(scope)
            _end(span, scope["method"], route, status)
        self._counts.count(_method(scope), route, status, seconds)
        _LOG.info("request", extra=_told(scope, request_id, route, status, seconds))


def _request_id(scope: Scope) -> str:
    """The caller's own, where it is fit for a log line."""
    given = Headers(scope=scope).get("x-request-id", "")
    return given if _GIVEN_ID.fullmatch(given) else new_id()


@contextmanager
def _span(scope: Scope, request_id: str) -> Iterator[trace.Span]:
    """A span around the request, continuing the caller's trace; without an SDK it is nothing."""
    parent = propagate.extract(dict(Headers(scope=scope)))
    attributes = {
        "http.request.method": scope["method"],
        "url.path": scope["path"],
        "everthread.request_id": request_id,
    }
    with _TRACER.start_as_current_span(scope["method"], parent, SpanKind.SERVER, attributes) as span:
        yield span


def _end(span: trace.Span, method: str, route: str, status: int) -> None:
    span.update_name(f"{method} {route}")
    span.set_attribute("http.route", route)
    span.set_attribute("http.response.status_code", status)
    if status >= 500:
        span.set_status(StatusCode.ERROR)


def _route(scope: Scope) -> str:
    """The address with names for its ids, so that there are few."""
    found = scope.get("route")
    return getattr(found, "path", None) or "none"


_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


def _method(scope: Scope) -> str:
    return scope["method"] if scope["method"] in _METHODS else "other"


def _told(scope: Scope, request_id: str, route: str, status: int, seconds: float) -> dict[str, Any]:
    """For the log: no id of a conversation, no query, no body."""
    caller = scope["state"].get("caller")
    return {
        "request_id": request_id,
        "method": _method(scope),
        "route": route,
        "status": status,
        "seconds": round(seconds, 6),
        "owner": None if caller is None else caller.owner,
        "key": None if caller is None else caller.key_id,
    }
