"""Connections as uvicorn keeps them, with limits: how many there may be, and how long the head of a request may take.

uvicorn waits for the rest of a request for ever, keeps heads of any length (h11, which it uses without httptools, does
not), and accepts connections until the system has no more sockets. So a few hundred that send nothing, or half a head,
would lock everybody else out, and one that sends a head without end would fill the memory. How long a body may take is
up to `BodyLimitMiddleware`, which knows whether somebody waits for it.
"""

from __future__ import annotations

import asyncio
import logging
import resource
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

_LOG = logging.getLogger("everthread.http")
HEAD_SECONDS = 10.0
"""How long a client may take from its first byte, or from connecting, to the end of a request's head."""
MAX_HEAD_BYTES = 256 * 1024
MAX_HEADERS = 500
_SPARE_FILES = 128
"""How many of the files that a process may open are left for files and databases."""
_TOO_MUCH = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\nConnection: close\r\nContent-Type: text/plain\r\n"
    b"Content-Length: 21\r\n\r\nthe head is too large"
)
_FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 5\r\nConnection: close\r\nContent-Type: text/plain\r\n"
    b"Content-Length: 20\r\n\r\ntoo many connections"
)


def most_connections(wanted: int) -> int:
    """The number of connections that is wanted, or that the system allows a process; 0 for the system's limit."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    possible = wanted or 1 << 30
    return possible if files == resource.RLIM_INFINITY else max(1, min(possible, files - _SPARE_FILES))


_READS_HEADS = hasattr(AutoHTTPProtocol, "on_headers_complete")
"""Whether heads are passed on while they are read, as by httptools; h11 limits them itself."""


class _LimitedProtocol(AutoHTTPProtocol):  # type: ignore[misc, valid-type]  # uvicorn picks it when it is imported
    """One connection."""

    max_connections: int
    head_seconds: float
    _head_timer: asyncio.TimerHandle | None = None
    _is_in_head = False
    _has_read = False
    """Whether there was a body, or the end of a head, in what came last."""
    _idle_bytes = 0
    """How many bytes came since then, of a head or after a body."""
    _is_too_large = False

    def connection_made(self, transport: Any) -> None:
        is_full = len(self.connections) >= self.max_connections
        super().connection_made(transport)
        if is_full:
            _LOG.warning("too many connections", extra={"connections": len(self.connections) - 1})
            transport.write(_FULL)
            transport.close()
        else:
            self._wait_for_head()

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        self._has_read = not _READS_HEADS
        super().data_received(data)
        if self._has_request():
            self._stop_waiting()
        else:
            self._wait_for_head()
        self._idle_bytes = 0 if self._has_read else self._idle_bytes + len(data)
        if self._idle_bytes > MAX_HEAD_BYTES and not self.transport.is_closing():
            self._refuse_head()

    def send_400_response(self, msg: str) -> None:
        if self._is_too_large:
            self._refuse_head()
        else:
            super().send_400_response(msg)

    def _refuse_head(self) -> None:
        self.transport.write(_TOO_MUCH)
        self.transport.close()

    def on_message_begin(self) -> None:
        self._is_in_head = True
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._is_in_head:
            return  # what comes after a body must not pass for a key, or for what a proxy said
        super().on_header(name, value)
        if len(self.headers) > MAX_HEADERS:
            self._is_too_large = True
            raise ValueError("too many headers")  # the parser stops, before the request begins

    def on_headers_complete(self) -> None:
        self._is_in_head, self._has_read = False, True
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._has_read = True
        super().on_body(body)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def _has_request(self) -> bool:
        """Whether a request has come in whose response is not complete."""
        return self.cycle is not None and not self.cycle.response_complete

    def _wait_for_head(self) -> None:
        if self._head_timer is None:
            self._head_timer = self.loop.call_later(self.head_seconds, self._give_up)

    def _stop_waiting(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _give_up(self) -> None:
        self._head_timer = None
        if not self._has_request():
            self.transport.abort()


def limited_protocol(max_connections: int, head_seconds: float = HEAD_SECONDS) -> type[asyncio.Protocol]:
    """uvicorn's protocol, within these limits."""
    limits = {"max_connections": max_connections, "head_seconds": head_seconds}
    return type("LimitedProtocol", (_LimitedProtocol,), limits)
