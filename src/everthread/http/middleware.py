"""The outermost door: every request gets an id, a log line, a count and, where OpenTelemetry is set up, a span; and
what nobody foresaw ends here, as an answer that tells nothing of it.

What browsers are told: guess no types, frame nothing, load nothing from elsewhere.

How large and how deep a request may be, told before anything of it is parsed.

A body of JSON is read whole and its nesting counted; files are counted as they come in.

A request's body, read whole by a door, and then as if it came in only now.

Ids in addresses: any that a conversation may have, percent-encoded.

A server decodes an address before it is matched, so an id with a slash would fall apart. An encoded slash is hidden
from the routes as half of a surrogate pair, which no decoded address can hold, and shown again where an id is read.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote

from opentelemetry import propagate, trace
from opentelemetry.trace import SpanKind, StatusCode
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from everthread.core.ids import new_id
from everthread.core.jobs import JobReport
from everthread.http.errors import HttpProblem, internal_error_response

_LOG = logging.getLogger("everthread.http")
_TRACER = trace.get_tracer("everthread.http")
_GIVEN_ID = re.compile(r"[\w.:-]{1,128}", re.ASCII)
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60)


class RequestMetrics:
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


class RequestLogMiddleware:
    """Where a request comes in and an answer goes out."""

    def __init__(self, app: ASGIApp, counts: RequestMetrics) -> None:
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
                    await internal_error_response()(scope, receive, told)
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


_ALWAYS = ((b"x-content-type-options", b"nosniff"), (b"referrer-policy", b"no-referrer"))
_ON_HTML = (
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
        b"font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    ),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-opener-policy", b"same-origin"),
)


class SecurityHeadersMiddleware:
    """Adds them to each answer that does not set its own."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def told(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": _with_safe(message.get("headers", []))}
            await send(message)

        await self._app(scope, receive, told if scope["type"] == "http" else send)


def _with_safe(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    present = {name.lower(): value for name, value in headers}
    is_html = present.get(b"content-type", b"").startswith(b"text/html")
    added = (*_ALWAYS, *(_ON_HTML if is_html else ()))
    return [*headers, *((name, value) for name, value in added if name not in present)]


MAX_DEPTH = 64
_UPLOADS = ("multipart/form-data", "application/octet-stream", "application/zstd")
_BRACKETS = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[{]|[\]}]', re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyLimits:
    """How much is taken."""

    body_bytes: int = 16 * 1024 * 1024
    upload_bytes: int = 256 * 1024 * 1024
    """Of files, and of archives to import."""
    depth: int = MAX_DEPTH

    def of(self, headers: Headers) -> tuple[int, bool]:
        """The most bytes that a request with these headers may bring, and whether it is files."""
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        is_upload = kind in _UPLOADS
        return (self.upload_bytes if is_upload else self.body_bytes), is_upload


class BodyLimitMiddleware:
    """Turns away what is too large or too deep."""

    def __init__(self, app: ASGIApp, limits: BodyLimits) -> None:
        self._app = app
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        most, is_upload = self._limits.of(headers := Headers(scope=scope))
        started = False

        async def told(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            _check_announced(headers, most)
            counted = _counted(receive, most)
            await self._app(scope, counted if is_upload else await self._whole(counted), told)
        except HttpProblem as problem:
            if started:
                raise
            await problem.response()(scope, receive, send)

    async def _whole(self, receive: Receive) -> Receive:
        """The body, read and looked at; then as if it came in only now."""
        body = await read_body(receive)
        if nesting_depth(body, self._limits.depth) > self._limits.depth:
            raise HttpProblem(
                422,
                "too_deep",
                f"the JSON nests deeper than {self._limits.depth} levels",
                next_step="Send it flatter.",
            )
        return replay_body(body, receive)


def _check_announced(headers: Headers, most: int) -> None:
    announced = headers.get("content-length", "0")
    if announced.isdigit() and int(announced) > most:
        raise _too_large(most)


def _counted(receive: Receive, most: int) -> Receive:
    """The same, until more came in than is taken: a length need not be announced, or not truly."""
    count = 0

    async def counted() -> Message:
        nonlocal count
        message = await receive()
        count += len(message.get("body", b"") or b"")
        if count > most:
            raise _too_large(most)
        return message

    return counted


def _too_large(most: int) -> HttpProblem:
    return HttpProblem(
        413,
        "too_large",
        f"the body has more than {most:,} bytes",
        next_step="Send it in smaller parts, or as a file.",
        headers={"Connection": "close"},
    )


def nesting_depth(body: bytes, enough: int) -> int:
    """How deep brackets nest outside of strings; counting stops beyond `enough`."""
    if body.count(b"[") + body.count(b"{") <= enough:
        return 0
    depth = deepest = 0
    for found in _BRACKETS.finditer(body):
        first = found[0][:1]
        if first in b"[{":
            depth += 1
            deepest = max(deepest, depth)
            if deepest > enough:
                break
        elif first in b"]}":
            depth = max(0, depth - 1)
    return deepest


async def read_body(receive: Receive) -> bytes:
    """All of it, or what came before the caller went away."""
    parts: list[bytes] = []
    while True:
        message = await receive()
        parts.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(parts)


def replay_body(body: bytes, receive: Receive) -> Receive:
    """The same body for the next door; after it, what else comes in."""
    ahead: Message | None = {"type": "http.request", "body": body, "more_body": False}

    async def replay() -> Message:
        nonlocal ahead
        if ahead is None:
            return await receive()
        message, ahead = ahead, None
        return message

    return replay


_HIDDEN = "\udc2f"
_ENCODED = re.compile(rb"%2f", re.IGNORECASE)


class EncodedSlashMiddleware:
    """The innermost door: only routes see hidden slashes."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        raw = scope.get("raw_path") or b""
        if scope["type"] == "http" and _ENCODED.search(raw) is not None:
            await self._hiding(raw, scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _hiding(self, raw: bytes, scope: Scope, receive: Receive, send: Send) -> None:
        """In a scope of its own: the server and the log write the address as it came."""
        parts = _ENCODED.split(raw.partition(b"?")[0])
        inner = {**scope, "path": _HIDDEN.join(unquote(part.decode("latin-1")) for part in parts)}
        try:
            await self._app(inner, receive, send)
        finally:
            scope["route"] = inner.get("route")


def restore_slashes(id: str) -> str:
    """An id as it was before it was hidden."""
    return id.replace(_HIDDEN, "/") if isinstance(id, str) else id


def quote_id(id: str) -> str:
    """An id as an address has it."""
    return quote(id, safe="")
