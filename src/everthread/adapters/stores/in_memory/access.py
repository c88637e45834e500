"""API keys and stored replies, in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from everthread.adapters.stores.in_memory.rows import InMemoryDatabase
from everthread.core.access import ApiKey
from everthread.core.errors import NotFound
from everthread.core.replies import KEPT_SECONDS, Reply


class InMemoryApiKeys:
    """`store.api_keys` of core/ports.py: the keys of all owners."""

    def __init__(self, database: InMemoryDatabase) -> None:
        self._database = database
        self._keys: dict[str, ApiKey] = {}

    async def add(self, key: ApiKey) -> None:
        self._keys[key.id] = key

    async def get(self, id: str) -> ApiKey | None:
        return self._keys.get(id)

    async def list(self, owner: str | None) -> Sequence[ApiKey]:
        found = [key for key in self._keys.values() if owner in (None, key.owner)]
        return sorted(found, key=lambda key: (key.created_at, key.id))

    async def revoke(self, id: str) -> ApiKey:
        found = self._keys.get(id)
        if found is None:
            raise NotFound(f"no key {id!r}")
        self._keys[id] = replace(found, revoked_at=found.revoked_at or self._database.clock())
        return self._keys[id]

    def forget(self, owner: str) -> int:
        """Destroy the keys of an owner."""
        gone = [key.id for key in self._keys.values() if key.owner == owner]
        for id in gone:
            del self._keys[id]
        return len(gone)


class InMemoryReplies:
    """`store.replies` of core/ports.py: the replies to requests with an idempotency key."""

    def __init__(self, database: InMemoryDatabase) -> None:
        self._database = database
        self._replies: dict[tuple[str, str], tuple[Reply, int]] = {}
        """By owner and key; with the time it was begun."""

    async def begin(self, owner: str, key: str, request: bytes, *, lease_seconds: float) -> Reply | None:
        now, lease = self._database.now(), int(lease_seconds * 1_000_000)
        old = now - KEPT_SECONDS * 1_000_000
        self._replies = {place: kept for place, kept in self._replies.items() if place[0] != owner or kept[1] >= old}
        stands, begun_at = self._replies.get((owner, key), (None, now))
        is_left = stands is not None and stands.status is None and stands.running_until <= now
        if stands is not None and not (is_left and stands.request == request):
            return stands
        self._replies[owner, key] = (Reply(request, None, None, b"[]", b"", now + lease), begun_at)
        return None

    async def renew(self, owner: str, key: str, request: bytes, *, lease_seconds: float) -> None:
        if (place := self._being_made(owner, key, request)) is not None:
            reply, begun_at = self._replies[place]
            until = self._database.now() + int(lease_seconds * 1_000_000)
            self._replies[place] = (reply._replace(running_until=until), begun_at)

    async def keep(self, owner: str, key: str, reply: Reply) -> None:
        if (place := self._being_made(owner, key, reply.request)) is not None:
            self._replies[place] = (reply, self._replies[place][1])

    async def drop(self, owner: str, key: str, request: bytes) -> None:
        if (place := self._being_made(owner, key, request)) is not None:
            del self._replies[place]

    def _being_made(self, owner: str, key: str, request: bytes) -> tuple[str, str] | None:
        stands, _ = self._replies.get((owner, key), (None, 0))
        return (owner, key) if stands is not None and stands.request == request and stands.status is None else None

    def forget(self, owner: str, conversation: str | None) -> int:
        """Delete an owner's replies, or blank those that may quote a conversation."""
        mine = {place: kept for place, kept in self._replies.items() if place[0] == owner}
        if conversation is None:
            for place in mine:
                del self._replies[place]
            return len(mine)
        return self.blank(owner, conversation)

    def blank(self, owner: str, conversation: str | None) -> int:
        """Blank the replies that may quote a conversation; with None, a memory, which belongs to none."""
        about = [
            place
            for place, (reply, _) in self._replies.items()
            if place[0] == owner and not reply.is_erased and reply.conversation in (None, conversation)
        ]
        for place in about:
            reply, begun_at = self._replies[place]
            self._replies[place] = (reply._replace(request=b"", headers=b"[]", body=b"", status=0), begun_at)
        return len(about)
