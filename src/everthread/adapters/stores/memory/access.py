"""Keys and replies in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from everthread.core.access import ApiKey
from everthread.core.errors import NotFound
from everthread.core.replies import KEPT_SECONDS, Reply


class Porter:
    """The keys of all owners, and what was answered to them."""

    def __init__(self) -> None:
        self._keys: dict[str, ApiKey] = {}
        self._replies: dict[tuple[str, str], tuple[Reply, int]] = {}

    def add(self, key: ApiKey) -> None:
        self._keys[key.id] = key

    def read(self, id: str) -> ApiKey | None:
        return self._keys.get(id)

    def every(self, owner: str | None) -> Sequence[ApiKey]:
        found = [key for key in self._keys.values() if owner in (None, key.owner)]
        return sorted(found, key=lambda key: (key.created_at, key.id))

    def revoke(self, id: str, now: datetime) -> ApiKey:
        found = self._keys.get(id)
        if found is None:
            raise NotFound(f"no key {id!r}")
        self._keys[id] = replace(found, revoked_at=found.revoked_at or now)
        return self._keys[id]

    def begin_reply(self, owner: str, key: str, request: bytes, lease_micros: int, now: int) -> Reply | None:
        """Make room for an answer, or give the one that stands."""
        old = now - KEPT_SECONDS * 1_000_000
        self._replies = {place: kept for place, kept in self._replies.items() if place[0] != owner or kept[1] >= old}
        stands, begun_at = self._replies.get((owner, key), (None, now))
        is_left = stands is not None and stands.status is None and stands.running_until <= now
        if stands is not None and not (is_left and stands.request == request):
            return stands
        self._replies[owner, key] = (Reply(request, None, None, b"[]", b"", now + lease_micros), begun_at)
        return None

    def keep_reply(self, owner: str, key: str, reply: Reply) -> None:
        """Keep an answer that was made."""
        if (place := self._being_made(owner, key, reply.request)) is not None:
            self._replies[place] = (reply, self._replies[place][1])

    def drop_reply(self, owner: str, key: str, request: bytes) -> None:
        """Give up one that could not be made."""
        if (place := self._being_made(owner, key, request)) is not None:
            del self._replies[place]

    def _being_made(self, owner: str, key: str, request: bytes) -> tuple[str, str] | None:
        stands, _ = self._replies.get((owner, key), (None, 0))
        return (owner, key) if stands is not None and stands.request == request and stands.status is None else None

    def forget(self, owner: str, conversation: str | None) -> dict[str, int]:
        """What an erase does to keys and replies."""
        mine = {place: kept for place, kept in self._replies.items() if place[0] == owner}
        if conversation is None:
            keys = [key for key in self._keys.values() if key.owner == owner]
            for key in keys:
                del self._keys[key.id]
            for place in mine:
                del self._replies[place]
            return {"api_keys": len(keys), "replies": len(mine)}
        about = [
            place
            for place, (reply, _) in mine.items()
            if not reply.is_erased and reply.conversation in (None, conversation)
        ]
        for place in about:
            reply, begun_at = self._replies[place]
            self._replies[place] = (reply._replace(request=b"", headers=b"[]", body=b"", status=0), begun_at)
        return {"replies": len(about)}
