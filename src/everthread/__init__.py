"""Conversations of LLM agents that never end and never forget.

async with everthread.open("sqlite:///data/et.db") as et:
    conv = await et.conversations.create()
    await conv.append([{"role": "user", "content": "hello"}])
"""

from __future__ import annotations

from everthread.bootstrap import open
from everthread.conversation import Conversation
from everthread.core.errors import (
    Conflict,
    ContextOverflow,
    Erased,
    EverthreadError,
    HeadMoved,
    Invalid,
    KeyReused,
    MissingExtra,
    ModelError,
    NotFound,
    StoreBusy,
    StoreDamaged,
    StoreError,
    StoreFull,
    StoreGone,
)
from everthread.core.nouns import (
    Branch,
    EraseReport,
    Head,
    Hit,
    Hits,
    Message,
    Page,
    Problem,
    Receipt,
    VerifyReport,
)
from everthread.instance import Everthread

__all__ = [
    "Branch",
    "Conflict",
    "ContextOverflow",
    "Conversation",
    "EraseReport",
    "Erased",
    "Everthread",
    "EverthreadError",
    "Head",
    "HeadMoved",
    "Hit",
    "Hits",
    "Invalid",
    "KeyReused",
    "Message",
    "MissingExtra",
    "ModelError",
    "NotFound",
    "Page",
    "Problem",
    "Receipt",
    "StoreBusy",
    "StoreDamaged",
    "StoreError",
    "StoreFull",
    "StoreGone",
    "VerifyReport",
    "open",
]
