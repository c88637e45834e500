"""Who asks: the holder of a key, the bearer of a token, or, where the server is open only to its own machine, whoever
sits at it (the owner `local`).

A wrong key and a revoked one get the same answer. On an open server a browser must not lend other sites its place on
the machine: a foreign `Host` (a name that was made to point here) and a foreign `Origin` are turned away.

Tokens (JWT) that somebody else gives out: checked by a shared secret, or by the keys at an address (JWKS).
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlsplit

import jwt
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from everthread.core.access import ApiKeys, parts_of
from everthread.core.errors import EverthreadError, Invalid
from everthread.core.ids import LOCAL, check_id
from everthread.http.errors import HttpProblem, problem_response

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


class RateLimiter:
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


class AuthMiddleware:
    """Lets in whoever may come, and says who it is."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        keys: ApiKeys,
        tokens: TokenVerifier | None,
        needs_key: bool,
        rates: RateLimiter | None = None,
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
        except HttpProblem as problem:
            await problem.response()(scope, receive, send)
            return
        except EverthreadError as problem:
            await problem_response(problem)(scope, receive, send)
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
            key = await self._keys.get(parts[0])
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
            raise HttpProblem(
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
        raise HttpProblem(
            403,
            "foreign_host",
            "without a key this server answers only to its own machine's name",
            next_step="Ask for http://127.0.0.1, or send a key.",
        )
    origin = headers.get("origin")
    if origin is not None and urlsplit(origin).netloc != headers.get("host"):
        raise HttpProblem(
            403,
            "foreign_origin",
            "a page from elsewhere may not speak for whoever sits at this machine",
            next_step="Send a key, and allow the origin with the setting cors_origins.",
        )


def _unauthorized(detail: str) -> HttpProblem:
    return HttpProblem(
        401,
        "unauthorized",
        detail,
        next_step="Send Authorization: Bearer with a key; `everthread key create` makes one.",
        headers={"WWW-Authenticate": "Bearer"},
    )


ADMIN_CLAIM = "everthread_admin"
_SHARED = ("HS256", "HS384", "HS512")
_PUBLIC = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")


class TokenVerifier:
    """Which tokens are taken. One way of signing only: a public key must never be read as a shared secret."""

    def __init__(
        self,
        *,
        secret: str | None = None,
        jwks_url: str | None = None,
        audience: str | None = None,
        issuer: str | None = None,
    ) -> None:
        if (secret is None) == (jwks_url is None):
            raise Invalid("set either a secret or the address of keys, not both", field="jwt_secret")
        if secret is not None and len(secret) < 32:
            raise Invalid("must have at least 32 characters; a shorter one can be guessed", field="jwt_secret")
        self._secret = secret
        self._remote = None if jwks_url is None else jwt.PyJWKClient(jwks_url, lifespan=300, timeout=5)
        self._audience = audience
        self._issuer = issuer

    async def bearer(self, token: str) -> tuple[str, bool]:
        """The owner that a token speaks for, and whether as an admin."""
        try:
            claims = self._claims(token, await self._key(token))
            owner = check_id(claims.get("sub"), "sub")
        except jwt.PyJWKClientConnectionError:
            raise HttpProblem(
                503,
                "keys_unreachable",
                "the keys that tokens are checked by cannot be reached",
                next_step="Try again in a moment.",
                retryable=True,
                headers={"Retry-After": "5"},
            ) from None
        except (jwt.PyJWTError, Invalid):
            raise HttpProblem(
                401,
                "unauthorized",
                "this token opens nothing here",
                next_step="Get a fresh token from whoever gives them out.",
                headers={"WWW-Authenticate": 'Bearer error="invalid_token"'},
            ) from None
        return owner, claims.get(ADMIN_CLAIM) is True

    async def _key(self, token: str) -> Any:
        if self._remote is None:
            return self._secret
        return (await asyncio.to_thread(self._remote.get_signing_key_from_jwt, token)).key

    def _claims(self, token: str, key: Any) -> dict[str, Any]:
        claims: dict[str, Any] = jwt.decode(
            token,
            key,
            algorithms=list(_SHARED if self._remote is None else _PUBLIC),
            audience=self._audience,
            issuer=self._issuer,
            options={"require": ["exp", "sub"], "verify_aud": self._audience is not None},
        )
        return claims
