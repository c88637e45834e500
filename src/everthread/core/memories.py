"""Memories: what is known of a user, or for one conversation or task, beyond the messages themselves.

Each says where it is from. A newer one takes the place of an older one about the same, which stays readable as its
past; one that is forgotten is found no more until it is restored. Their text leaves the database with an erase.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Literal

from everthread.core.notes import Source


class MemoryKind(StrEnum):
    """What sort of thing is remembered."""

    PREFERENCE = "preference"
    """What the user likes or wants."""
    FACT = "fact"
    PROFILE = "profile"
    """Who the user is."""
    INSTRUCTION = "instruction"
    """How the user wants to be served."""


class MemoryScope(StrEnum):
    """Where a memory holds."""

    USER = "user"
    """In every conversation of the owner."""
    CONVERSATION = "conversation"
    TASK = "task"
    """In one run of a subagent, which is a child conversation."""


class MemoryState(StrEnum):
    """Where a memory stands."""

    LIVE = "live"
    PAST = "past"
    """A newer one took its place."""
    FORGOTTEN = "forgotten"


Origin = Literal["person", "agent", "rules", "model"]
"""Who wrote it down: the program that called `add`, the agent's own function, or the extraction in the background."""

ALWAYS_SHOWN = (MemoryKind.PROFILE, MemoryKind.INSTRUCTION)
"""What is pinned unless it is said otherwise: no question has the words of "call me Max"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """One thing that is remembered. Its text never changes: another text is another memory that supersedes it."""

    id: str
    owner: str
    text: str
    kind: MemoryKind = MemoryKind.FACT
    scope: MemoryScope = MemoryScope.USER
    conversation_id: str | None = None
    """The conversation, or the task, that it holds in; None for one of the user."""
    subject: str | None = None
    """What it is about, such as `name`: of one subject the newest counts."""
    source: Source | None = None
    """The message that it is known from."""
    origin: Origin = "person"
    confidence: float = 1.0
    tokens: int = 0
    """What the text counts to."""
    supersedes: str | None = None
    """The id of the memory whose place it took."""
    superseded_by: str | None = None
    state: MemoryState = MemoryState.LIVE
    pinned_at: datetime | None = None
    """Since when every context shows it; None: only where a question calls for it."""
    past_at: datetime | None = None
    """Since when a newer one stands in its place."""
    created_at: datetime
    updated_at: datetime

    @property
    def is_pinned(self) -> bool:
        return self.pinned_at is not None

    @property
    def is_live(self) -> bool:
        return self.state is MemoryState.LIVE


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryHit:
    """A memory that a search found; scores compare only within one search."""

    memory: Memory
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Habit:
    """A tool, or a skill, that is used often."""

    kind: Literal["tool", "skill"]
    name: str
    uses: int
    conversations: int
    """In how many of them."""
    last_used_at: datetime
