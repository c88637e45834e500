"""How large and how deep a request may be, told before anything of it is parsed.

A body of JSON is read whole and its nesting counted; files are counted as they come in.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from everthread.http.bodies import replayed, whole_body
from everthread.http.errors import Refused

MAX_DEPTH = 64
_UPLOADS = ("multipart/form-data", "application/octet-stream", "application/zstd")
_BRACKETS = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[{]|[\]}]', re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
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


class LimitedBodies:
    """Turns away what is too large or too deep."""

    def __init__(self, app: ASGIApp, limits: Limits) -> None:
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
        except Refused as problem:
            if started:
                raise
            await problem.response()(scope, receive, send)

    async def _whole(self, receive: Receive) -> Receive:
        """The body, read and looked at; then as if it came in only now."""
        body = await whole_body(receive)
        if depth_of(body, self._limits.depth) > self._limits.depth:
            raise Refused(
                422,
                "too_deep",
                f"the JSON nests deeper than {self._limits.depth} levels",
                next_step="Send it flatter.",
            )
        return replayed(body, receive)


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


def _too_large(most: int) -> Refused:
    return Refused(
        413,
        "too_large",
        f"the body has more than {most:,} bytes",
        next_step="Send it in smaller parts, or as a file.",
        headers={"Connection": "close"},
    )


def depth_of(body: bytes, enough: int) -> int:
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
