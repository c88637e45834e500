"""Middleware that every request passes, but for `auth` and `idempotency`; `app` puts them in their order.

RequestLogMiddleware        the outermost: an id, a log line, metrics and a span for each request; unforeseen errors
SecurityHeadersMiddleware   headers that keep browsers careful
EventStreamMiddleware       how many event streams may be open, and their end when the server stops
BodyLimitMiddleware         how large and how deep a body may be, before anything of it is parsed
EncodedSlashMiddleware      the innermost: ids with a slash, percent-encoded in a path
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections import Counter as Counts
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from urllib.parse import quote, unquote

from opentelemetry import propagate, trace
from opentelemetry.trace import SpanKind, StatusCode
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from everthread.core.ids import new_id
from everthread.history.payload_json import nesting_depth
from everthread.http.errors import HttpProblem, internal_error_response
from everthread.http.request_metrics import RequestMetrics
from everthread.http.sse import ENDS_BY_ITSELF, is_event_stream, receive_until

_LOG = logging.getLogger("everthread.http")
_TRACER = trace.get_tracer("everthread.http")


# -- log, traces -----------------------------------------------------------------------------------------------------

_VALID_REQUEST_ID = re.compile(r"[\w.:-]{1,128}", re.ASCII)
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_BREAK_SECONDS = 1.0


class RequestLogMiddleware:
    """An id, a log line, metrics and a span for each request; and the last stop of exceptions nobody foresaw."""

    def __init__(self, app: ASGIApp, metrics: RequestMetrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given_id = Headers(scope=scope).get("x-request-id", "")
        request_id = given_id if _VALID_REQUEST_ID.fullmatch(given_id) else new_id()
        scope.setdefault("state", {})["request_id"] = request_id
        started = time.perf_counter()
        status = 0

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)["X-Request-Id"] = request_id
            await send(message)

        with self._metrics.running(), _span(scope, request_id) as span:
            try:
                await self._app(scope, receive, send_with_id)
            except asyncio.CancelledError:
                if not scope["app"].state.is_stopping:  # else the server waits no longer, and would log a traceback
                    raise
            except Exception as problem:  # noqa: BLE001 - the stream's edge: nothing of a defect reaches a client
                _LOG.error("defect", exc_info=problem, extra={"request_id": request_id, "path": _shown_path(scope)})
                if not status:
                    await internal_error_response()(scope, receive, send_with_id)
            seconds = time.perf_counter() - started
            # The route's template, not the path: there are few of them, and they hold no ids.
            route = getattr(scope.get("route"), "path", None) or "none"
            _end_span(span, scope["method"], route, status)
        method = scope["method"] if scope["method"] in _METHODS else "other"
        self._metrics.observe(method, route, status, seconds)
        caller = scope["state"].get("caller")
        _LOG.info(
            "request",
            extra={  # no id of a conversation, no query, no body
                "request_id": request_id,
                "method": method,
                "route": route,
                "status": status,
                "seconds": round(seconds, 6),
                "owner": None if caller is None else caller.owner,
                "key": None if caller is None else caller.key_id,
            },
        )


def _shown_path(scope: Scope) -> str:
    """Without the secret of a share link."""
    path: str = scope["path"]
    return "/shared/***" if path.startswith("/shared/") else path


@contextmanager
def _span(scope: Scope, request_id: str) -> Iterator[trace.Span]:
    """A span around the request, continuing the caller's trace; without an OpenTelemetry SDK it does nothing."""
    parent = propagate.extract(dict(Headers(scope=scope)))
    attributes = {
        "http.request.method": scope["method"],
        "url.path": _shown_path(scope),
        "everthread.request_id": request_id,
    }
    with _TRACER.start_as_current_span(scope["method"], parent, SpanKind.SERVER, attributes) as span:
        yield span


def _end_span(span: trace.Span, method: str, route: str, status: int) -> None:
    span.update_name(f"{method} {route}")
    span.set_attribute("http.route", route)
    span.set_attribute("http.response.status_code", status)
    if status >= 500:
        span.set_status(StatusCode.ERROR)


# -- security headers ------------------------------------------------------------------------------------------------

_ALWAYS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),  # whose answer it is stands in X-Api-Key, which no cache between us looks at
)
_ON_HTML = (
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
        b"font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    ),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-opener-policy", b"same-origin"),
)


class SecurityHeadersMiddleware:
    """Tells browsers to guess no types, frame nothing and load nothing from elsewhere, and caches to keep nothing,
    unless a response says otherwise."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers: list[tuple[bytes, bytes]] = message.get("headers", [])
                present = {name.lower(): value for name, value in headers}
                is_html = present.get(b"content-type", b"").startswith(b"text/html")
                added = (*_ALWAYS, *(_ON_HTML if is_html else ()))
                message = {**message, "headers": [*headers, *(pair for pair in added if pair[0] not in present)]}
            await send(message)

        await self._app(scope, receive, send_with_headers if scope["type"] == "http" else send)


# -- event streams ---------------------------------------------------------------------------------------------------


class EventStreams:
    """The event streams that are open in this process."""

    def __init__(self, max_open: int = 0, max_per_owner: int = 0) -> None:
        self._max_open = max_open
        self._max_per_owner = max_per_owner
        self._of_owners: Counts[str] = Counts()
        self.start()

    def start(self) -> None:
        """Forget a `close`: an app may be started more than once, each time in a loop of its own."""
        self._closing = asyncio.Event()
        self._one_ended = asyncio.Event()

    @property
    def open(self) -> int:
        return self._of_owners.total()

    def is_full(self, owner: str) -> bool:
        """Whether no other stream may be opened, at all or by this owner."""
        return 0 < self._max_open <= self.open or 0 < self._max_per_owner <= self._of_owners[owner]

    def add(self, owner: str) -> None:
        self._of_owners[owner] += 1

    def remove(self, owner: str) -> None:
        self._of_owners[owner] -= 1
        if not self._of_owners[owner]:
            del self._of_owners[owner]
        self._one_ended.set()

    async def wait_for_ends(self, seconds: float) -> None:
        """Wait until none is open, at most so long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self.open:
                    self._one_ended.clear()
                    await self._one_ended.wait()

    def close(self) -> None:
        """End every stream that is open, also those that have no end of their own."""
        self._closing.set()

    @property
    def is_closed(self) -> bool:
        return self._closing.is_set()

    async def receive(self, receive: Receive) -> Message:
        """The client's next message; once the streams are closed, a disconnect."""
        return await receive_until(self._closing, receive)


class EventStreamMiddleware:
    """Counts event streams, refuses more followers than there may be, and ends streams when told to: the app hears that
    its client has gone, and the client gets the end of the response. The stream of a run that is cut before its last
    event breaks off instead: else its client would take it for whole, and not come back for the rest."""

    def __init__(self, app: ASGIApp, streams: EventStreams, metrics: RequestMetrics) -> None:
        self._app = app
        self._streams = streams
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        streams = self._streams
        is_stream = is_refused = is_complete = False

        async def counting_send(message: Message) -> None:
            nonlocal is_stream, is_refused, is_complete
            if message["type"] == "http.response.start" and is_event_stream(message):
                if streams.is_full(_owner(scope)) and _is_follower(scope):
                    is_refused = True
                    self._metrics.count_refused_stream()
                    await _too_many_streams().response()(scope, receive, send)
                    return
                is_stream = True
                streams.add(_owner(scope))
            if not is_refused:
                is_complete = not message.get("more_body", True)
                await send(message)

        async def ending_receive() -> Message:
            if is_refused:
                return {"type": "http.disconnect"}
            return await (streams.receive(receive) if is_stream else receive())

        try:
            await self._app(scope, ending_receive, counting_send)
            if is_stream and not is_complete:
                await self._end(scope, receive, send)
        finally:
            if is_stream:
                streams.remove(_owner(scope))

    async def _end(self, scope: Scope, receive: Receive, send: Send) -> None:
        """End the response of a stream; without effect if the client has gone."""
        if self._streams.is_closed and scope["state"].get(ENDS_BY_ITSELF):
            with suppress(TimeoutError):  # our server breaks the connection now; under another it ends in good order
                async with asyncio.timeout(_BREAK_SECONDS):
                    while (await receive())["type"] != "http.disconnect":
                        pass
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def _owner(scope: Scope) -> str:
    owner: str = scope["state"]["caller"].owner
    return owner


def _is_follower(scope: Scope) -> bool:
    """Whether a request only follows what runs already. Requests that start something were admitted, and are
    answered."""
    path: str = scope["path"]
    return scope["method"] == "GET" or path.endswith("/stream/events")


def _too_many_streams() -> HttpProblem:
    return HttpProblem(
        503,
        "too_many_streams",
        "too many streams are open; try again",
        next_step="Follow it later with the same Last-Event-ID, or read how it ended.",
        retryable=True,
        headers={"Retry-After": "5"},
    )


# -- bodies ----------------------------------------------------------------------------------------------------------

BODY_SECONDS = 30.0
"""How long a client may pause while it sends a body."""
SLOWEST_BYTES_PER_SECOND = 256
_UPLOADS = ("multipart/form-data", "application/octet-stream", "application/zstd")
_IMPORT = "/api/v1/import"
"""Where any body is a file, whatever its type is called."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyLimits:
    """How large and how deep a body may be."""

    body_bytes: int = 16 * 1024 * 1024
    upload_bytes: int = 256 * 1024 * 1024
    """For files, and for archives to import."""
    depth: int = 64


class BodyLimitMiddleware:
    """Refuses bodies that are too large or nest too deep. JSON is read whole; uploads are counted as they come in."""

    def __init__(self, app: ASGIApp, limits: BodyLimits) -> None:
        self._app = app
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        is_upload = kind in _UPLOADS or scope["path"] == _IMPORT
        max_bytes = self._limits.upload_bytes if is_upload else self._limits.body_bytes
        has_started = False

        async def watched_send(message: Message) -> None:
            nonlocal has_started
            has_started = True
            await send(message)

        try:
            announced = headers.get("content-length", "0")
            if announced.isdigit() and int(announced) > max_bytes:
                raise _too_large(max_bytes)
            counted = _count_bytes(receive, max_bytes)
            await self._app(scope, counted if is_upload else await self._checked_body(counted), watched_send)
        except HttpProblem as problem:
            if has_started:
                raise
            await problem.response()(scope, receive, send)

    async def _checked_body(self, receive: Receive) -> Receive:
        body = await read_body(receive)
        if b"\x00" in body:  # parsers guess UTF-16 and UTF-32, in which brackets are counted wrongly
            raise HttpProblem(422, "invalid", "the body is not UTF-8", next_step="Send JSON as UTF-8.")
        if nesting_depth(body, self._limits.depth) > self._limits.depth:
            raise HttpProblem(
                422,
                "too_deep",
                f"the JSON is nested deeper than {self._limits.depth} levels",
                next_step="Send a flatter structure.",
            )
        return replay_body(body, receive)


def _count_bytes(receive: Receive, max_bytes: int) -> Receive:
    """Count the bytes that really come in, since a Content-Length may be missing or wrong, and give up on a client
    that sends nothing for some time, or less than a modem could."""
    count = 0
    is_complete = False
    waited = 0.0

    async def counted() -> Message:
        nonlocal count, is_complete, waited
        if is_complete:  # what is waited for now is that the client goes, which may take as long as the response
            return await receive()
        began = time.monotonic()
        try:
            async with asyncio.timeout(BODY_SECONDS):
                message = await receive()
        except TimeoutError:
            raise _too_slow() from None
        waited += time.monotonic() - began
        count += len(message.get("body", b"") or b"")
        is_complete = not message.get("more_body", False)
        if count > max_bytes:
            raise _too_large(max_bytes)
        if not is_complete and waited > BODY_SECONDS and count < waited * SLOWEST_BYTES_PER_SECOND:
            raise _too_slow()
        return message

    return counted


def _too_slow() -> HttpProblem:
    return HttpProblem(
        408,
        "too_slow",
        "the body did not come in time",
        next_step="Send it again, over a faster connection.",
        retryable=True,
        headers={"Connection": "close"},
    )


def _too_large(max_bytes: int) -> HttpProblem:
    return HttpProblem(
        413,
        "too_large",
        f"the body is larger than {max_bytes:,} bytes",
        next_step="Send it in smaller parts, or as a file.",
        headers={"Connection": "close"},
    )


async def read_body(receive: Receive) -> bytes:
    """All of a body, or what came before the caller went away."""
    parts: list[bytes] = []
    while True:
        message = await receive()
        parts.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(parts)


def replay_body(body: bytes, receive: Receive) -> Receive:
    """Gives a body that was read to the next middleware, and after it whatever else comes in."""
    pending: Message | None = {"type": "http.request", "body": body, "more_body": False}

    async def replay() -> Message:
        nonlocal pending
        if pending is None:
            return await receive()
        message, pending = pending, None
        return message

    return replay


# -- slashes in ids --------------------------------------------------------------------------------------------------

_HIDDEN_SLASH = "\udc2f"
"""Half of a surrogate pair, which no decoded path can hold."""
_ENCODED_SLASH = re.compile(rb"%2f", re.IGNORECASE)


class EncodedSlashMiddleware:
    """Lets an id in a path have a slash. A server decodes a path before routes match it, so `a%2Fb` would fall apart:
    an encoded slash is replaced by another character, and `restore_slashes` puts it back where an id is read."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        raw = scope.get("raw_path") or b""
        if scope["type"] != "http" or _ENCODED_SLASH.search(raw) is None:
            await self._app(scope, receive, send)
            return
        parts = _ENCODED_SLASH.split(raw.partition(b"?")[0])
        # In a scope of its own: the server and the log write the path as it came.
        inner = {**scope, "path": _HIDDEN_SLASH.join(unquote(part.decode("latin-1")) for part in parts)}
        try:
            await self._app(inner, receive, send)
        finally:
            scope["route"] = inner.get("route")


def restore_slashes(id: str) -> str:
    """An id from a path, with its slashes."""
    return id.replace(_HIDDEN_SLASH, "/") if isinstance(id, str) else id


def quote_id(id: str) -> str:
    """An id encoded for a path."""
    return quote(id, safe="")
