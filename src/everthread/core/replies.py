"""Stored replies to HTTP requests with an idempotency key, so that a retry gets the same reply.

A reply is begun before the request is handled and stored when it was answered. An erase blanks the replies that may
quote the erased text and leaves the key alone, which still refuses a retry: that must not bring back what was erased.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

KEPT_SECONDS = 7 * 24 * 3600
"""How long a stored reply is returned to retries."""


class Reply(NamedTuple):
    """The stored reply to a request, or the note that the request is still running."""

    request: bytes
    """A hash of the request; empty once erased."""
    conversation: str | None
    """The id of the conversation whose text the reply may hold; None when that is not a single one."""
    status: int | None
    """The HTTP status; None while the request is running."""
    headers: bytes
    """The HTTP headers as JSON: pairs of names and values."""
    body: bytes
    running_until: int
    """When the running request counts as dead, so that a retry may run it again."""

    @property
    def is_erased(self) -> bool:
        return not self.request


class Replies(Protocol):
    """The stored replies, by owner and idempotency key."""

    async def begin(self, owner: str, key: str, request: bytes, *, lease_seconds: float) -> Reply | None:
        """Return the stored reply for this key, finished or running. Returns None, and records the request as running,
        when the caller is to handle it: it is the first with this key, or the one before it died."""

    async def renew(self, owner: str, key: str, request: bytes, *, lease_seconds: float) -> None:
        """Say that the request is still running. Does nothing when it is not, or was erased."""

    async def keep(self, owner: str, key: str, reply: Reply) -> None:
        """Store the finished reply. Does nothing when it was erased in the meantime."""

    async def drop(self, owner: str, key: str, request: bytes) -> None:
        """Forget a running request that failed, so that a retry may run it again."""
