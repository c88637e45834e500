"""Who asks: the holder of a key, the bearer of a token, or, where the server is open only to its own machine, whoever
sits at it (the owner `local`).

A wrong key and a revoked one get the same answer. On an open server a browser must not lend other sites its place on
the machine: a foreign `Host` (a name that was made to point here) and a foreign `Origin` are turned away.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from everthread.core.access import Keys, parts_of
from everthread.core.errors import EverthreadError
from everthread.core.ids import LOCAL
from everthread.http.errors import Refused, problem_of
from everthread.http.tokens import Tokens

OPEN_PATHS = frozenset({"/", "/icon.svg", "/healthz", "/readyz", "/ok", "/openapi.json"})
"""What tells nothing of anybody."""
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Whoever asks, and for whom they speak."""

    owner: str
    via: Literal["local", "key", "token"]
    is_admin: bool = False
    """Whether they may see and set what concerns all owners."""
    key_id: str | None = None


LOCAL_CALLER = Caller(owner=LOCAL, via="local", is_admin=True)


class Rates:
    """So many requests a minute for each caller: a bucket that fills steadily and holds a tenth of them at once."""

    def __init__(self, per_minute: int) -> None:
        self._per_second = per_minute / 60
        self._room = max(10.0, per_minute / 10)
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, name: str, now: float) -> float:
        """0.0, or in how many seconds there will be room again."""
        left, at = self._buckets.pop(name, (self._room, now))
        left = min(self._room, left + (now - at) * self._per_second)
        wait = 0.0 if left >= 1 else (1 - left) / self._per_second
        self._buckets[name] = (left if wait else left - 1, now)
        while len(self._buckets) > _MOST_BUCKETS:
            self._buckets.popitem(last=False)
        return wait


_MOST_BUCKETS = 10_000


class Gate:
    """Lets in whoever may come, and says who it is."""

    def __init__(
        self, app: ASGIApp, *, keys: Keys, tokens: Tokens | None, needs_key: bool, rates: Rates | None = None
    ) -> None:
        self._app = app
        self._keys = keys
        self._tokens = tokens
        self._needs_key = needs_key
        self._rates = rates

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or (_is_open(scope["path"]) and scope["method"] in ("GET", "HEAD")):
            await self._app(scope, receive, send)
            return
        try:
            caller = await self._caller(Headers(scope=scope), scope["method"])
            self._limit(caller)
        except Refused as problem:
            await problem.response()(scope, receive, send)
            return
        except EverthreadError as problem:
            await problem_of(problem)(scope, receive, send)
            return
        scope.setdefault("state", {})["caller"] = caller
        await self._app(scope, receive, send)

    async def _caller(self, headers: Headers, method: str) -> Caller:
        given = _given(headers)
        if given is not None:
            return await self._known(given)
        if self._needs_key:
            raise _unauthorized("this server asks for a key")
        _check_place(headers)
        return LOCAL_CALLER

    async def _known(self, given: str) -> Caller:
        if (parts := parts_of(given)) is not None:
            key = await self._keys.api_key(parts[0])
            if key is not None and key.opens_with(parts[1]):
                return Caller(owner=key.owner, via="key", is_admin=key.is_admin, key_id=key.id)
        elif self._tokens is not None:
            owner, is_admin = await self._tokens.bearer(given)
            return Caller(owner=owner, via="token", is_admin=is_admin)
        raise _unauthorized("this key opens nothing here")

    def _limit(self, caller: Caller) -> None:
        if self._rates is None or caller.via == "local":
            return
        wait = self._rates.take(caller.key_id or caller.owner, time.monotonic())
        if wait:
            raise Refused(
                429,
                "too_many_requests",
                "this key asks more often than it may",
                next_step="Wait as long as Retry-After says.",
                retryable=True,
                headers={"Retry-After": str(max(1, round(wait)))},
            )


def _is_open(path: str) -> bool:
    return path in OPEN_PATHS or path.startswith("/assets/")


def _given(headers: Headers) -> str | None:
    """What stands in `Authorization: Bearer …`, or where LangGraph's clients put it."""
    scheme, _, value = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return value.strip()
    if scheme:
        raise _unauthorized("only Authorization: Bearer is understood")
    return headers.get("x-api-key")


def _check_place(headers: Headers) -> None:
    host = urlsplit(f"//{headers.get('host', '')}").hostname
    if host not in _LOOPBACK:
        raise Refused(
            403,
            "foreign_host",
            "without a key this server answers only to its own machine's name",
            next_step="Ask for http://127.0.0.1, or send a key.",
        )
    origin = headers.get("origin")
    if origin is not None and urlsplit(origin).netloc != headers.get("host"):
        raise Refused(
            403,
            "foreign_origin",
            "a page from elsewhere may not speak for whoever sits at this machine",
            next_step="Send a key, and allow the origin with the setting cors_origins.",
        )


def _unauthorized(detail: str) -> Refused:
    return Refused(
        401,
        "unauthorized",
        detail,
        next_step="Send Authorization: Bearer with a key; `everthread key create` makes one.",
        headers={"WWW-Authenticate": "Bearer"},
    )
