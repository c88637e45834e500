"""Who calls: the holder of an API key, the bearer of a token, or, where the server is open only to its own machine, the
user of that machine (the owner `local`). And how often they may.

A wrong key and a revoked one get the same response. Event streams may be open for days, so while one is, it is checked
again and again whether the key still holds, and the stream ends with the token.

On an open server nobody must lend others their place on the machine. A browser does for other sites, so a foreign
`Host` (a name that was made to point here) and a foreign `Origin` are refused, except for the origins that the setting
`cors_origins` names one by one. A proxy does for everybody, so what says that it was forwarded is refused too. And once
there are keys, the server has several users: then everybody needs one, unless `require_key` is false.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import SplitResult, urlsplit

import jwt
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from everthread.core.access import ApiKeys, parts_of
from everthread.core.errors import EverthreadError, Invalid, StoreError
from everthread.core.ids import LOCAL, check_id
from everthread.http.errors import HttpProblem, problem_response
from everthread.http.sse import is_event_stream, receive_until
from everthread.settings import Settings

OPEN_PATHS = frozenset({"/", "/icon.svg", "/healthz", "/readyz", "/ok", "/openapi.json"})
"""Paths that reveal nothing about anybody, and need no key."""
ADMIN_CLAIM = "everthread_admin"
_FORWARDED = ("forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip")
"""Headers that proxies add to a request."""
_KEYS_SECONDS = 1.0
"""How long it is cached whether there are any keys: a server without keys would look for them at every request."""
RECHECK_SECONDS = 5.0
"""How long after its key was revoked a stream may go on."""
_KEYS_LIFE_SECONDS = 300.0
_KEYS_PAUSE_SECONDS = 10.0
"""For how long the address of the signing keys is left alone after it was asked, whatever it said: else a sender of
forged tokens would decide how often it is asked."""
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
    expires_at: float | None = None
    """When their token ends, in seconds since 1970."""


_LOG = logging.getLogger("everthread.http")
LOCAL_CALLER = Caller(owner=LOCAL, via="local", is_admin=True)


class AuthMiddleware:
    """Identifies the caller, and refuses unknown ones. Routes find the `Caller` in `request.state.caller`."""

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
        if caller.via == "local":
            await self._app(scope, receive, send)
        else:
            await self._serve_while_admitted(caller, scope, receive, send)

    async def _serve_while_admitted(self, caller: Caller, scope: Scope, receive: Receive, send: Send) -> None:
        """A response; if it is an event stream, only for as long as the caller may have it. At its end the app hears
        that its client has gone, and the client, from `EventStreamMiddleware`, that the response is complete."""
        refused = asyncio.Event()
        watch: asyncio.Task[None] | None = None

        async def watched_send(message: Message) -> None:
            nonlocal watch
            if message["type"] == "http.response.start" and is_event_stream(message):
                watch = asyncio.create_task(self._watch(caller, refused))
            if not refused.is_set():
                await send(message)

        async def watched_receive() -> Message:
            return await (receive() if watch is None else receive_until(refused, receive))

        try:
            await self._app(scope, watched_receive, watched_send)
        finally:
            if watch is not None:
                watch.cancel()

    async def _watch(self, caller: Caller, refused: asyncio.Event) -> None:
        """Wait until the caller's key or token is no longer valid, and signal it."""
        while await self._is_still_admitted(caller):
            left = RECHECK_SECONDS if caller.expires_at is None else max(0.0, caller.expires_at - time.time())
            await asyncio.sleep(min(RECHECK_SECONDS, left))
        refused.set()

    async def _is_still_admitted(self, caller: Caller) -> bool:
        if caller.expires_at is not None and time.time() >= caller.expires_at:
            return False
        if caller.key_id is None:
            return True
        try:
            key = await self._keys.get(caller.key_id)
        except StoreError:  # a database that is away for a moment revokes nothing
            return True
        return key is not None and key.revoked_at is None

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
            return await self._tokens.verify(credential)
        raise _unauthorized("invalid or revoked API key")

    async def _check_nobody_else(self, headers: Headers) -> None:
        """Refuse requests that may not come from the user of this machine."""
        if (name := next((name for name in _FORWARDED if name in headers), None)) is not None:
            _LOG.info(
                "refused a request without a key that a proxy forwarded (%s): set EVERTHREAD_REQUIRE_KEY=true behind a "
                "proxy; false lets in whomever the proxy lets in",
                name,
            )
            raise _unauthorized("a request that a proxy forwarded needs an API key")  # settings are not for strangers
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
    return path in OPEN_PATHS or path.startswith(("/assets/", "/shared/"))


def _credential(headers: Headers) -> str | None:
    """From `Authorization: Bearer …`, or from where LangGraph's clients put it."""
    scheme, _, value = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return value.strip()
    if scheme:
        raise _unauthorized("unsupported authorization scheme; only Bearer is accepted")
    return headers.get("x-api-key") or None  # pages send an empty one where no key was entered


def _check_same_machine(headers: Headers, trusted_origins: frozenset[str]) -> None:
    """Refuse pages from elsewhere, unless their exact origin is allowed: `*` trusts nobody without a key."""
    if _parts_of_url(f"//{headers.get('host', '')}").hostname not in _LOOPBACK:
        raise HttpProblem(
            403,
            "foreign_host",
            "without an API key this server only accepts requests addressed to localhost",
            next_step="Use http://127.0.0.1, or send a key.",
        )
    origin = headers.get("origin")
    is_foreign = origin is not None and _parts_of_url(origin).netloc != headers.get("host")
    if (is_foreign and origin not in trusted_origins) or (origin is None and _is_part_of_foreign_page(headers)):
        raise HttpProblem(
            403,
            "foreign_origin",
            "requests from pages of other sites need an API key",
            next_step="Name the origin of the page in the setting cors_origins, or send a key.",
        )


def _is_part_of_foreign_page(headers: Headers) -> bool:
    """An image, a script or a frame of another site is asked for without an `Origin`. That site cannot read the answer,
    but asking alone may cost us an export, or break off a run. A link that somebody follows is none."""
    return headers.get("sec-fetch-site") == "cross-site" and headers.get("sec-fetch-dest") != "document"


def _parts_of_url(url: str) -> SplitResult:
    """The parts of a URL; empty ones for text that is not a URL, such as one with half a bracket."""
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
        self._signing_keys = None if jwks_url is None else SigningKeys(jwks_url)
        self._audience = audience
        self._issuer = issuer

    @classmethod
    def from_settings(cls, settings: Settings) -> TokenVerifier | None:
        """A verifier; None if the settings have neither a secret nor a URL of keys."""
        secret = settings.jwt_secret.get_secret_value() if settings.jwt_secret else None
        if secret is None and settings.jwt_jwks_url is None:
            return None
        return cls(
            secret=secret, jwks_url=settings.jwt_jwks_url, audience=settings.jwt_audience, issuer=settings.jwt_issuer
        )

    async def verify(self, token: str) -> Caller:
        """The caller that a token stands for."""
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
        is_admin = claims.get(ADMIN_CLAIM) is True
        return Caller(owner=owner, via="token", is_admin=is_admin, expires_at=float(claims["exp"]))

    async def _key(self, token: str) -> Any:
        if self._signing_keys is None:
            return self._secret
        return await self._signing_keys.get(jwt.get_unverified_header(token).get("kid"))

    def _claims(self, token: str, key: Any) -> dict[str, Any]:
        claims: dict[str, Any] = jwt.decode(
            token,
            key,
            algorithms=list(_SHARED_SECRET_ALGORITHMS if self._signing_keys is None else _PUBLIC_KEY_ALGORITHMS),
            audience=self._audience,
            issuer=self._issuer,
            options={"require": ["exp", "sub"], "verify_aud": self._audience is not None},
        )
        return claims


class SigningKeys:
    """The public keys at a URL (JWKS), fetched one time after the other, in a thread of their own. A token that names
    an unknown key has them fetched again, but not at once: anybody can send one."""

    def __init__(self, url: str) -> None:
        self._client = jwt.PyJWKClient(url, cache_jwk_set=False, timeout=5)
        self._thread = ThreadPoolExecutor(1, "everthread-jwks")
        self._lock = asyncio.Lock()
        self._keys: dict[str, jwt.PyJWK] = {}
        self._fetched_at = self._asked_at = -math.inf
        self._has_failed = False

    async def get(self, id: object) -> Any:
        """The key by its id; PyJWKClientError if there is none, its ConnectionError if the keys cannot be fetched."""
        if not self._has(id):
            async with self._lock:
                if not self._has(id) and time.monotonic() - self._asked_at >= _KEYS_PAUSE_SECONDS:
                    await self._fetch()
        if not self._has(id):
            if self._has_failed:
                raise jwt.PyJWKClientConnectionError("the signing keys could not be fetched")
            raise jwt.PyJWKClientError("no such signing key")
        return self._keys[str(id)].key

    def _has(self, id: object) -> bool:
        return id in self._keys and time.monotonic() - self._fetched_at < _KEYS_LIFE_SECONDS

    async def _fetch(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(_KEYS_PAUSE_SECONDS):  # an address that answers byte by byte has no end
                found = await loop.run_in_executor(self._thread, self._client.get_signing_keys)
        except (jwt.PyJWTError, TimeoutError, ValueError, RecursionError):  # a document may be anything
            self._has_failed = True
        else:
            self._keys = {str(key.key_id): key for key in found}
            self._fetched_at = time.monotonic()
            self._has_failed = False
        finally:
            self._asked_at = time.monotonic()
