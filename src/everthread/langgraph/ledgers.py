"""A conversation's log as a capture uses it: made when there is something to write, read by message id."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from everthread.conversation import Conversation
from everthread.core.errors import NotFound
from everthread.core.nouns import Ref
from everthread.instance import Everthread

Kept = Mapping[str, Any] | None
"""A message as the log has it; None for one that is not to be written: erased, or another conversation's."""


class Ledger:
    """One conversation that may not exist yet. A parent is made before its child."""

    def __init__(
        self,
        et: Everthread,
        id: str,
        owner: str,
        *,
        parent: Ledger | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        self.id = id
        self._et = et
        self._owner = owner
        self._parent = parent
        self._metadata = metadata
        self._conversation: Conversation | None = None

    async def read(self, ids: Iterable[str]) -> dict[str, Kept]:
        """Those of these messages that the log has, each in its newest revision."""
        if await self._existing() is None:
            return {}
        entries = await self._et.store.log.find(Ref(self._owner, self.id), ids=list(ids))
        return {entry.id: None if entry.raw is None else json.loads(entry.raw) for entry in entries}

    async def write(self, payloads: Iterable[Mapping[str, Any]]) -> None:
        """Append; durable when this returns."""
        conversation = await self._ensured()
        await conversation.append(list(payloads))

    async def conversation(self) -> Conversation:
        """The conversation itself."""
        return await self._ensured()

    async def _existing(self) -> Conversation | None:
        if self._conversation is None:
            try:
                self._conversation = await self._et.conversations.get(self.id, self._owner)
            except NotFound:
                return None
        return self._conversation

    async def _ensured(self) -> Conversation:
        if self._conversation is None:
            parent = None if self._parent is None else await self._parent._ensured()
            self._conversation = await self._et.conversations.ensure(
                self.id, self._owner, parent_id=None if parent is None else parent.id, metadata=self._metadata
            )
        return self._conversation

    async def child_of(self, namespace: list[str]) -> str | None:
        """The id of the newest child that was made for this namespace."""
        conversation = await self._existing()
        if conversation is None:
            return None
        async for child in conversation.children():
            if child.metadata.get("namespace") == namespace:
                return child.id
        return None
