"""What a door answered to a request with an idempotency key, so that a retry gets the same answer.

A reply is begun before the request is looked at and kept when it is answered. What an erase may have to reach is
blanked by it: the key alone stays, and goes on refusing, since a retry must not bring back what was erased.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

KEPT_SECONDS = 7 * 24 * 3600
"""So long an answer is given again."""


class Reply(NamedTuple):
    """The answer to a request, or that one is being made."""

    request: bytes
    """A hash of all that was asked; empty once erased."""
    conversation: str | None
    """What it speaks of, where that is one conversation."""
    status: int | None
    """None while it is being made."""
    headers: bytes
    """JSON: pairs of names and values."""
    body: bytes
    running_until: int
    """When whoever makes it is given up for dead."""

    @property
    def is_erased(self) -> bool:
        return not self.request


class Replies(Protocol):
    """The replies to each owner's keys."""

    async def begin(self, owner: str, key: str, request: bytes, *, lease_seconds: float) -> Reply | None:
        """None: it is the caller's to make (the first, or the next after one that died). Otherwise what stands."""

    async def keep(self, owner: str, key: str, reply: Reply) -> None:
        """The answer is made; nothing happens when it was erased meanwhile."""

    async def drop(self, owner: str, key: str, request: bytes) -> None:
        """It could not be made: the next to ask may try."""
