"""A thread's state where no graph of ours has one: the conversation's messages, as LangGraph would show them.

A conversation that came in by another door has no checkpoint; its newest messages are shown, and a cursor to those
before them. So a client of the protocol reads every conversation there is.
"""

from __future__ import annotations

from typing import Any

from langchain_core.messages import convert_to_messages

from everthread.conversation import Conversation
from everthread.core import payloads
from everthread.core.errors import Invalid
from everthread.core.nouns import Message, Ref
from everthread.core.ports import PathQuery
from everthread.http.protocol.wire import Json
from everthread.instance import Everthread

NEWEST = 200
_TYPES = {"user": "human", "assistant": "ai"}


async def projected(et: Everthread, conversation: Conversation, cursor: str | None = None) -> Json:
    """The newest messages, or those before a cursor, as a state."""
    ref = Ref(conversation.owner, conversation.id)
    before = None if cursor is None else _position(cursor)
    pairs = await et.store.path(ref, PathQuery(before=before, limit=NEWEST + 1, newest_first=True))
    newest = [Message(entry, place) for place, entry in pairs[:NEWEST]][::-1]
    return {
        "values": {"messages": [shown(message) for message in newest]} if newest else {},
        "next": [],
        "tasks": [],
        "metadata": None,
        "created_at": conversation.updated_at,
        "checkpoint": None,
        "parent_checkpoint": None,
        "interrupts": [],
        "checkpoint_id": None,
        "parent_checkpoint_id": None,
        "older_cursor": str(newest[0].seq) if len(pairs) > NEWEST else None,
    }


def _position(cursor: str) -> int:
    if not cursor.isdecimal() or len(cursor) > 15:
        raise Invalid("is not one that a state gave as `older_cursor`; begin without", field="cursor")
    return int(cursor)


def shown(message: Message) -> Any:
    """A message in LangChain's form, whatever form it came in."""
    payload = {**message.payload, "id": payloads.message_id(message.payload) or message.id}
    try:
        return convert_to_messages([payload])[0].model_dump()
    except (ValueError, TypeError, NotImplementedError, KeyError):  # a role or a form that LangChain does not know
        return {**payload, "type": payload.get("type") or _TYPES.get(message.role, message.role)}
