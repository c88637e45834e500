"""Tokens (JWT) that somebody else gives out: checked by a shared secret, or by the keys at an address (JWKS)."""

from __future__ import annotations

import asyncio
from typing import Any

import jwt

from everthread.core.errors import Invalid
from everthread.core.ids import check_id
from everthread.http.errors import Refused

ADMIN_CLAIM = "everthread_admin"
_SHARED = ("HS256", "HS384", "HS512")
_PUBLIC = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")


class Tokens:
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
            raise Refused(
                503,
                "keys_unreachable",
                "the keys that tokens are checked by cannot be reached",
                next_step="Try again in a moment.",
                retryable=True,
                headers={"Retry-After": "5"},
            ) from None
        except (jwt.PyJWTError, Invalid):
            raise Refused(
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
