"""In what order sessions are listed: by when something was last said in them, which for imported ones is long before
they were written to the log."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from everthread.conversation import Conversation
from everthread.core.errors import NotFound

LOOKED_AT = 200
"""So many of those that were written last are put in order, where fewer are asked for."""


async def newest_first(
    conversations: Iterable[Conversation],
) -> list[tuple[Conversation, datetime]]:
    """Conversations with the time of their last message, the newest first; those that are not imported have the place
    of their making, and the time of their last change."""
    found = [(one, await _last_said_at(one)) for one in conversations]
    found.sort(key=lambda each: each[1] or each[0].created_at, reverse=True)
    return [(one, said_at or one.updated_at) for one, said_at in found]


async def _last_said_at(conversation: Conversation) -> datetime | None:
    """Of an imported conversation; None of others."""
    if "agent" not in conversation.info.metadata:
        return None
    try:
        last = await conversation.tail(1, include_deleted=True)
    except NotFound:  # erased meanwhile
        return None
    return last[0].said_at if last else None
