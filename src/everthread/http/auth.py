"""Who calls: the holder of an API key, the bearer of a token, or, where the server is open only to its own machine,
whoever sits at it (the owner `local`). And how often they may.

A wrong key and a revoked one get the same response. On an open server nobody must lend others their place on the
machine: a browser does for other sites, so a foreign `Host` (a name that was made to point here) and a foreign `Origin`
are refused, except for the origins that the setting `cors_origins` names one by one; a proxy does for everybody, so what
says that it was forwarded is refused too. And once there are keys, the server has several users: then everybody needs
one, unless `require_key` is false.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import SplitResult, urlsplit

import jwt
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from everthread.core.access import ApiKeys, parts_of
from everthread.core.errors import EverthreadError, Invalid
from everthread.core.ids import LOCAL, check_id
from everthread.http.errors import HttpProblem, problem_response
from everthread.settings import Settings

OPEN_PATHS = frozenset({"/", "/icon.svg", "/healthz", "/readyz", "/ok", "/openapi.json"})
"""They say nothing about anybody."""
ADMIN_CLAIM = "everthread_admin"
_FORWARDED = ("forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip")
"""What proxies add to a request."""
_KEYS_SECONDS = 1.0
"""For how long it is believed that there are keys, or none: a server without any asks at every request."""
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_SHARED_SECRET_ALGORITHMS = ("HS256", "HS384", "HS512")
_PUBLIC_KEY_ALGORITHMS = (
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who sent a request, and on whose behalf."""

    owner: str
    via: Literal["local", "key", "token"]
    is_admin: bool = False
    """Whether they may see and change what concerns all owners."""
    key_id: str | None = None


LOCAL_CALLER = Caller(owner=LOCAL, via="local", is_admin=True)


class AuthMiddleware:
    """Finds out who calls, and refuses the others. Routes find the `Caller` in `request.state.caller`."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        keys: ApiKeys,
        tokens: TokenVerifier | None,
        needs_key: bool,
        is_local_trusted: bool = False,
        rate_limiter: RateLimiter | None = None,
        trusted_origins: frozenset[str] = frozenset(),
    ) -> None:
        """`is_local_trusted`: where no key is needed, that also holds for what a proxy forwards and once there are
        keys."""
        self._app = app
        self._keys = keys
        self._tokens = tokens
        self._needs_key = needs_key
        self._is_local_trusted = is_local_trusted
        self._has_keys = False
        self._asked_at: float | None = None
        self._rate_limiter = rate_limiter
        self._trusted_origins = trusted_origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or (_is_open(scope["path"]) and scope["method"] in ("GET", "HEAD")):
            await self._app(scope, receive, send)
            return
        try:
            caller = await self._authenticate(Headers(scope=scope))
            self._check_rate(caller)
        except HttpProblem as problem:
            await problem.response()(scope, receive, send)
            return
        except EverthreadError as problem:
            await problem_response(problem)(scope, receive, send)
            return
        scope.setdefault("state", {})["caller"] = caller
        await self._app(scope, receive, send)

    async def _authenticate(self, headers: Headers) -> Caller:
        credential = _credential(headers)
        if credential is None:
            if self._needs_key:
                raise _unauthorized("this server requires an API key")
            _check_same_machine(headers, self._trusted_origins)
            if not self._is_local_trusted:
                await self._check_nobody_else(headers)
            return LOCAL_CALLER
        if (parts := parts_of(credential)) is not None:
            key = await self._keys.get(parts[0])
            if key is not None and key.opens_with(parts[1]):
                return Caller(owner=key.owner, via="key", is_admin=key.is_admin, key_id=key.id)
        elif self._tokens is not None:
            owner, is_admin = await self._tokens.verify(credential)
            return Caller(owner=owner, via="token", is_admin=is_admin)
        raise _unauthorized("invalid or revoked API key")

    async def _check_nobody_else(self, headers: Headers) -> None:
        """Refuse what may come from others than whoever sits at this machine."""
        if (name := next((name for name in _FORWARDED if name in headers), None)) is not None:
            raise _unauthorized(
                f"a request that a proxy forwarded (it has the header {name}) needs an API key",
                "Set EVERTHREAD_REQUIRE_KEY=true behind a proxy, and send Authorization: Bearer with a key; "
                "`everthread key create` makes one. EVERTHREAD_REQUIRE_KEY=false lets in whomever the proxy lets in.",
            )
        if self._tokens is not None or await self._are_there_keys():
            raise _unauthorized(
                "this server has API keys, so every request needs one",
                "Send Authorization: Bearer with a key; `everthread key create` makes one. "
                "EVERTHREAD_REQUIRE_KEY=false lets everybody on this machine in without one.",
            )

    async def _are_there_keys(self) -> bool:
        now = time.monotonic()
        if self._asked_at is None or now - self._asked_at > _KEYS_SECONDS:
            self._has_keys = any(key.revoked_at is None for key in await self._keys.list(None))
            self._asked_at = now
        return self._has_keys

    def _check_rate(self, caller: Caller) -> None:
        if self._rate_limiter is None or caller.via == "local":
            return
        wait = self._rate_limiter.take(caller.key_id or caller.owner, time.monotonic())
        if wait:
            raise HttpProblem(
                429,
                "too_many_requests",
                "rate limit exceeded",
                next_step="Wait for the seconds in Retry-After.",
                retryable=True,
                headers={"Retry-After": str(max(1, round(wait)))},
            )


def _is_open(path: str) -> bool:
    return path in OPEN_PATHS or path.startswith("/assets/")


def _credential(headers: Headers) -> str | None:
    """From `Authorization: Bearer …`, or from where LangGraph's clients put it."""
    scheme, _, value = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return value.strip()
    if scheme:
        raise _unauthorized("unsupported authorization scheme; only Bearer is accepted")
    return headers.get("x-api-key") or None  # pages send an empty one where no key was entered


def _check_same_machine(headers: Headers, trusted_origins: frozenset[str]) -> None:
    """Of a page from elsewhere, only its exact origin counts: `*` trusts nobody without a key."""
    if _parts_of_url(f"//{headers.get('host', '')}").hostname not in _LOOPBACK:
        raise HttpProblem(
            403,
            "foreign_host",
            "without an API key this server only accepts requests addressed to localhost",
            next_step="Use http://127.0.0.1, or send a key.",
        )
    origin = headers.get("origin")
    if origin is not None and _parts_of_url(origin).netloc != headers.get("host") and origin not in trusted_origins:
        raise HttpProblem(
            403,
            "foreign_origin",
            "requests from pages of other sites need an API key",
            next_step="Name the origin of the page in the setting cors_origins, or send a key.",
        )


def _parts_of_url(url: str) -> SplitResult:
    """Its parts; none where it is no URL, such as one with half a bracket."""
    try:
        return urlsplit(url)
    except ValueError:
        return SplitResult("", "", "", "", "")


def _unauthorized(
    detail: str, next_step: str = "Send Authorization: Bearer with a key; `everthread key create` makes one."
) -> HttpProblem:
    return HttpProblem(
        401,
        "unauthorized",
        detail,
        next_step=next_step,
        headers={"WWW-Authenticate": "Bearer"},
    )


class RateLimiter:
    """A token bucket per caller: it refills steadily, and holds a tenth of a minute's requests at once."""

    _MAX_BUCKETS = 10_000

    def __init__(self, per_minute: int) -> None:
        self._per_second = per_minute / 60
        self._capacity = max(10.0, per_minute / 10)
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, name: str, now: float) -> float:
        """0.0, or how many seconds to wait for the next request."""
        left, at = self._buckets.pop(name, (self._capacity, now))
        left = min(self._capacity, left + (now - at) * self._per_second)
        wait = 0.0 if left >= 1 else (1 - left) / self._per_second
        self._buckets[name] = (left if wait else left - 1, now)
        while len(self._buckets) > self._MAX_BUCKETS:
            self._buckets.popitem(last=False)
        return wait


class TokenVerifier:
    """Checks tokens (JWT) that somebody else issues: by a shared secret, or by public keys at a URL (JWKS).

    One way of signing only: a public key must never be taken for a shared secret.
    """

    def __init__(
        self,
        *,
        secret: str | None = None,
        jwks_url: str | None = None,
        audience: str | None = None,
        issuer: str | None = None,
    ) -> None:
        if (secret is None) == (jwks_url is None):
            raise Invalid("set either jwt_secret or jwt_jwks_url, not both", field="jwt_secret")
        if secret is not None and len(secret) < 32:
            raise Invalid("must have at least 32 characters; a shorter one can be guessed", field="jwt_secret")
        self._secret = secret
        self._jwks = None if jwks_url is None else jwt.PyJWKClient(jwks_url, lifespan=300, timeout=5)
        self._audience = audience
        self._issuer = issuer

    @classmethod
    def from_settings(cls, settings: Settings) -> TokenVerifier | None:
        """None where the settings have neither a secret nor a URL of keys."""
        secret = settings.jwt_secret.get_secret_value() if settings.jwt_secret else None
        if secret is None and settings.jwt_jwks_url is None:
            return None
        return cls(
            secret=secret, jwks_url=settings.jwt_jwks_url, audience=settings.jwt_audience, issuer=settings.jwt_issuer
        )

    async def verify(self, token: str) -> tuple[str, bool]:
        """The owner that a token speaks for, and whether as an admin."""
        try:
            claims = self._claims(token, await self._key(token))
            owner = check_id(claims.get("sub"), "sub")
        except jwt.PyJWKClientConnectionError:
            raise HttpProblem(
                503,
                "keys_unreachable",
                "the signing keys for tokens are unreachable",
                next_step="Try again in a moment.",
                retryable=True,
                headers={"Retry-After": "5"},
            ) from None
        except (jwt.PyJWTError, Invalid):
            raise HttpProblem(
                401,
                "unauthorized",
                "invalid or expired token",
                next_step="Get a fresh token from its issuer.",
                headers={"WWW-Authenticate": 'Bearer error="invalid_token"'},
            ) from None
        return owner, claims.get(ADMIN_CLAIM) is True

    async def _key(self, token: str) -> Any:
        if self._jwks is None:
            return self._secret
        return (await asyncio.to_thread(self._jwks.get_signing_key_from_jwt, token)).key

    def _claims(self, token: str, key: Any) -> dict[str, Any]:
        claims: dict[str, Any] = jwt.decode(
            token,
            key,
            algorithms=list(_SHARED_SECRET_ALGORITHMS if self._jwks is None else _PUBLIC_KEY_ALGORITHMS),
            audience=self._audience,
            issuer=self._issuer,
            options={"require": ["exp", "sub"], "verify_aud": self._audience is not None},
        )
        return claims
