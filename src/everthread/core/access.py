"""Keys of the service: who holds one speaks for an owner. Of a key only its hash is kept."""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import NamedTuple, Protocol

from everthread.core.errors import Invalid
from everthread.core.ids import check_id, check_text

MAX_NAME_CHARACTERS = 200
_WRITTEN = re.compile(r"et_(?P<id>[a-z0-9]{12})_(?P<secret>[A-Za-z0-9_-]{43})", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """A key as it is kept."""

    id: str
    """Its public part, which lists and logs show."""
    owner: str
    name: str
    is_admin: bool
    """Whether it may also see and set what concerns all owners."""
    created_at: datetime
    revoked_at: datetime | None
    digest: bytes
    """SHA-256 of the secret, which is random and long: nothing can be guessed from it."""

    def opens_with(self, secret: str) -> bool:
        """Whether this secret is the key's, and the key still good."""
        return self.revoked_at is None and hmac.compare_digest(self.digest, _digest(secret))


class NewKey(NamedTuple):
    """A key that was just made; the only time that it can be read."""

    key: ApiKey
    written: str


def new_key(owner: str, *, name: str = "", is_admin: bool = False, now: datetime) -> NewKey:
    """A fresh key, not kept yet."""
    if len(check_text(name, "name")) > MAX_NAME_CHARACTERS:
        raise Invalid(f"must have at most {MAX_NAME_CHARACTERS} characters", field="name")
    id = "".join(secrets.choice("abcdefghijklmnopqrstuvwxyz0123456789") for _ in range(12))
    secret = secrets.token_urlsafe(32)
    key = ApiKey(
        id=id,
        owner=check_id(owner, "owner"),
        name=name,
        is_admin=is_admin,
        created_at=now,
        revoked_at=None,
        digest=_digest(secret),
    )
    return NewKey(key, f"et_{id}_{secret}")


def parts_of(written: str) -> tuple[str, str] | None:
    """The public part and the secret of what looks like a key."""
    found = _WRITTEN.fullmatch(written)
    return None if found is None else (found["id"], found["secret"])


def _digest(secret: str) -> bytes:
    return sha256(secret.encode()).digest()


class ApiKeys(Protocol):
    """The keys of a database."""

    async def add(self, key: ApiKey) -> None:
        """Keep a new one."""

    async def get(self, id: str) -> ApiKey | None:
        """One by its public part, revoked or not."""

    async def list(self, owner: str | None) -> Sequence[ApiKey]:
        """All of an owner or of everybody, oldest first."""

    async def revoke(self, id: str) -> ApiKey:
        """Make it worthless from now on; NotFound when there is none by this id."""
