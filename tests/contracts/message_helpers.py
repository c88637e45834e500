"""Helpers the contract tests share: how a message is written, and how a history is read back."""

from __future__ import annotations

from typing import Any

from everthread import Conversation, Everthread, Message


def says(text: object, **fields: Any) -> dict[str, Any]:
    """A user's message in OpenAI's shape."""
    return {"role": "user", "content": text, **fields}


async def history(conv: Conversation, **options: Any) -> list[Message]:
    """What `messages()` yields."""
    return [message async for message in conv.messages(**options)]


async def texts(conv: Conversation, **options: Any) -> list[str]:
    """The texts that `messages()` yields."""
    return [message.text for message in await history(conv, **options)]


async def seqs(conv: Conversation, **options: Any) -> list[int]:
    """The seqs that `messages()` yields."""
    return [message.seq for message in await history(conv, **options)]


async def appended(conv: Conversation, *said: str, **options: Any) -> list[int]:
    """Append these texts; give their seqs."""
    return [receipt.seq for receipt in await conv.append([says(text) for text in said], **options)]


async def entry_count(et: Everthread, conv: Conversation) -> int:
    """How many entries the conversation's log has, marks and revisions included."""
    (count,) = [head.count for head in await et.heads() if (head.owner, head.conversation_id) == (conv.owner, conv.id)]
    return count
