"""API keys of the service: a request with a key acts for the key's owner. And share links, with which anybody may read
one conversation. Of both only a hash is stored."""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Any, NamedTuple, Protocol

from everthread.core.errors import Invalid
from everthread.core.ids import check_id, check_text

MAX_NAME_CHARACTERS = 200
SHARE_FIELD = "share"
"""In the metadata of a conversation: who may read it by a link."""
_WRITTEN = re.compile(r"et_(?P<id>[a-z0-9]{12})_(?P<secret>[A-Za-z0-9_-]{43})", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """The stored row of an API key."""

    id: str
    """The public part of the key, shown in lists and logs."""
    owner: str
    name: str
    is_admin: bool
    """Whether the key may also be used for operations on all owners."""
    created_at: datetime
    revoked_at: datetime | None
    digest: bytes
    """SHA-256 of the secret. The secret is long and random, so it cannot be guessed from its hash."""

    def opens_with(self, secret: str) -> bool:
        """Whether this is the key's secret, and the key was not revoked."""
        return self.revoked_at is None and hmac.compare_digest(self.digest, _digest(secret))


def without_share(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Metadata that let nobody in: of a copy, and of an archive, whose author may know the link that it names."""
    return {name: value for name, value in metadata.items() if name != SHARE_FIELD}


class NewKey(NamedTuple):
    """A newly created key with its secret, which cannot be read again later."""

    key: ApiKey
    written: str


def new_key(owner: str, *, name: str = "", is_admin: bool = False, now: datetime) -> NewKey:
    """Generate a new key. It is not stored yet; see `ApiKeys.add`."""
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
    """Split a key into its public part and its secret; None when it does not look like a key."""
    found = _WRITTEN.fullmatch(written)
    return None if found is None else (found["id"], found["secret"])


def _digest(secret: str) -> bytes:
    return sha256(secret.encode()).digest()


class ApiKeys(Protocol):
    """The API keys in a database."""

    async def add(self, key: ApiKey) -> None:
        """Store a new key."""

    async def get(self, id: str) -> ApiKey | None:
        """Return the key with this public part, revoked or not; None when there is no such key."""

    async def list(self, owner: str | None) -> Sequence[ApiKey]:
        """Return all keys of an owner, or with None of all owners, oldest first."""

    async def revoke(self, id: str) -> ApiKey:
        """Revoke a key and return it. Raises NotFound when there is no key with this id."""
