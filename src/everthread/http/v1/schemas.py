"""Response models that several routes share: the models document the responses, the functions build them.

Responses are built as plain dicts, because a message may hold what no model can write (half a surrogate pair, a number
of a thousand digits); a test compares both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any

from pydantic import BaseModel, Field

from everthread.conversation import Conversation
from everthread.core.compactions import Compaction
from everthread.core.nouns import Branch, EraseReport, Message, Receipt
from everthread.core.payloads import is_cut


class ConversationOut(BaseModel):
    """A conversation."""

    id: str
    title: str | None
    metadata: dict[str, Any]
    parent_id: str | None = Field(description="The conversation it is a subagent of.")
    is_active: bool
    is_deleted: bool
    off_record: bool
    entry_count: int = Field(description="Entries in its log, including marks and revisions.")
    message_count: int = Field(description="Messages of its active branch, including deleted ones.")
    last_said_at: datetime | None = Field(description="When its newest message was said, wherever that was.")
    created_at: datetime
    updated_at: datetime
    deleted_at: datetime | None


class ConversationPage(BaseModel):
    """Conversations, newest first."""

    items: list[ConversationOut]
    next_cursor: str | None = Field(description="`cursor` for the next page; null on the last one.")


class MessageOut(BaseModel):
    """A message; `payload` is exactly what was sent."""

    id: str
    seq: int = Field(description="Its position in the conversation.")
    entry_seq: int = Field(description="The log entry that holds this revision.")
    role: str
    name: str | None
    text: str
    payload: dict[str, Any]
    tokens: int
    parent_seq: int | None
    revision: int
    is_deleted: bool
    is_pinned: bool
    is_quarantined: bool
    is_removed: bool = Field(description="Whether the framework it was captured from removed it from its own state.")
    origin: str = Field(description="The door it came through: user, model, own_tool, outside_tool, import, subagent.")
    is_complete: bool = Field(description="False for the partial text of an answer that was cut short.")
    has_secret: bool
    said_at: datetime | None
    created_at: datetime
    updated_at: datetime


class MessagePage(BaseModel):
    """Messages of a branch, oldest first."""

    items: list[MessageOut]
    has_older: bool = Field(description="If so, ask again with `before` set to the first seq.")
    has_newer: bool = Field(description="If so, ask again with `after` set to the last seq.")


class ReceiptOut(BaseModel):
    """The result for one message."""

    id: str
    seq: int
    revision: int
    new: bool = Field(description="False if the same message was there already.")


class Receipts(BaseModel):
    """The result for each message, in their order."""

    receipts: list[ReceiptOut]


class BranchOut(BaseModel):
    """A path through the conversation."""

    id: str
    leaf_seq: int
    fork_seq: int
    is_active: bool
    created_at: datetime


class Branches(BaseModel):
    """Every branch, oldest first."""

    items: list[BranchOut]


class CompactionOut(BaseModel):
    """A summary, and the range of messages that it covers."""

    number: int = Field(description="Its number among the conversation's compactions, from 1.")
    id: str
    level: int
    first_seq: int
    last_seq: int
    summary: str
    children: list[str]
    strategy: str
    model: str | None
    trigger: str
    original_count: int
    new_count: int
    tokens_before: int
    tokens_after: int
    facts_total: int
    facts_kept: int
    struck: list[str] = Field(
        description="Sentences of the model that its messages do not support, each after the reason."
    )
    seconds: float
    is_live: bool
    created_at: datetime
    undone_at: datetime | None
    invalid_at: datetime | None


class EraseOut(BaseModel):
    """What was erased, and what no program can reach from here."""

    conversation_id: str | None
    message_id: str | None
    memory_id: str | None
    conversations: int
    entries: int
    reached: dict[str, int]
    cannot_reach: list[str]
    erased_at: datetime


def conversation_out(one: Conversation) -> dict[str, Any]:
    info = one.info
    return {
        "id": info.id,
        "title": info.title,
        "metadata": info.metadata,
        "parent_id": info.parent_id,
        "is_active": info.is_active,
        "is_deleted": one.is_deleted,
        "off_record": info.off_record,
        "entry_count": info.entry_count,
        "message_count": info.message_count,
        "last_said_at": info.last_said_at,
        "created_at": info.created_at,
        "updated_at": info.updated_at,
        "deleted_at": info.deleted_at,
    }


def message_out(one: Message) -> dict[str, Any]:
    return {
        "id": one.id,
        "seq": one.seq,
        "entry_seq": one.entry_seq,
        "role": one.role,
        "name": one.name,
        "text": one.text,
        "payload": one.payload,
        "tokens": one.tokens,
        "parent_seq": one.parent_seq,
        "revision": one.revision,
        "is_deleted": one.is_deleted,
        "is_pinned": one.is_pinned,
        "is_quarantined": one.is_quarantined,
        "is_removed": one.is_removed,
        "origin": one.origin,
        "is_complete": _is_complete(one.payload),
        "has_secret": one.has_secret,
        "said_at": one.said_at,
        "created_at": one.created_at,
        "updated_at": one.updated_at,
    }


def _is_complete(payload: Mapping[str, Any]) -> bool:
    """What a turn that was cut short leaves says so itself (`runs/close.py`), and a model that its limit stopped."""
    extra = payload.get("additional_kwargs")
    kept = extra.get("everthread") if isinstance(extra, Mapping) else None
    state = kept.get("state", "complete") if isinstance(kept, Mapping) else "complete"
    return state == "complete" and not is_cut(payload)


def receipt_out(one: Receipt) -> dict[str, Any]:
    return one._asdict()


def branch_out(one: Branch) -> dict[str, Any]:
    return asdict(one)


def compaction_out(number: int, one: Compaction) -> dict[str, Any]:
    fields = {name: value for name, value in asdict(one).items() if name in CompactionOut.model_fields}
    return {"number": number, **fields, "is_live": one.is_live}


def erase_out(report: EraseReport) -> dict[str, Any]:
    return {name: value for name, value in asdict(report).items() if name != "owner"}
