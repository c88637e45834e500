"""Memories: what is known of a user, or for one conversation or task, beyond the messages themselves.

Each says where it is from. A newer one takes the place of an older one about the same, which stays readable as its
past; one that is forgotten is found no more until it is restored. Their text leaves the database with an erase.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Literal

from everthread.core.notes import MemorySource
from everthread.core.trust import Trust


class MemoryKind(StrEnum):
    """What sort of thing is remembered: a preference, a fact, the user's profile, or an instruction.

    ```python
    await conv.remember("The user is vegetarian.", kind=everthread.MemoryKind.PROFILE)
    ```
    """

    PREFERENCE = "preference"
    """What the user likes or wants."""
    FACT = "fact"
    PROFILE = "profile"
    """Who the user is."""
    INSTRUCTION = "instruction"
    """How the user wants to be treated."""


class MemoryScope(StrEnum):
    """Where a memory applies: to the user everywhere, to one conversation, or to one task of a subagent.

    ```python
    await conv.remember("The budget is 900 euros.", scope=everthread.MemoryScope.CONVERSATION)
    ```
    """

    USER = "user"
    """Every conversation of the owner."""
    CONVERSATION = "conversation"
    TASK = "task"
    """One run of a subagent, which is a child conversation."""


class MemoryState(StrEnum):
    """Whether a memory is live, superseded by a newer one (`past`), or forgotten.

    ```python
    page = await et.memories.list("local", include_past=True)
    print([memory.text for memory in page if memory.state is everthread.MemoryState.PAST])
    ```
    """

    LIVE = "live"
    PAST = "past"
    """Superseded by a newer one."""
    FORGOTTEN = "forgotten"


Origin = Literal["person", "agent", "rules", "model"]
"""Who wrote it down: the program that called `add`, the agent's own function, or the extraction in the background."""

ALWAYS_SHOWN = (MemoryKind.PROFILE, MemoryKind.INSTRUCTION)
"""What is pinned unless it is said otherwise: no question has the words of "call me Max"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """One thing that is remembered. Its text never changes: a new text is a new memory that supersedes it.

    ```python
    memory = await conv.remember("The user lives in Kunming.", subject="home")
    memory = await et.memories.update("local", memory.id, text="The user lives in Dali.")
    print(memory.text, memory.supersedes)
    ```
    """

    id: str
    owner: str
    text: str
    kind: MemoryKind = MemoryKind.FACT
    scope: MemoryScope = MemoryScope.USER
    conversation_id: str | None = None
    """The conversation or task it applies to; None if it applies everywhere."""
    subject: str | None = None
    """What it is about, such as `name`: of each subject only the newest memory is live."""
    source: MemorySource | None = None
    """The message it comes from."""
    origin: Origin = "person"
    trust: Trust = Trust.USER
    """How far it is trusted: no more than the least trusted of what it was made from. One of `data` is shown in its own
    conversation only, until `Memories.confirm`."""
    confidence: float = 1.0
    tokens: int = 0
    """How many tokens the text has."""
    supersedes: str | None = None
    """The id of the memory it replaced."""
    superseded_by: str | None = None
    state: MemoryState = MemoryState.LIVE
    pinned_at: datetime | None = None
    """Since when every context shows it; None if only related questions do."""
    past_at: datetime | None = None
    """When a newer one replaced it."""
    created_at: datetime
    updated_at: datetime

    made_at_seq: int | None = None
    """The end of the log when an agent wrote it down in words that the user has not said: anything before may be in
    it."""
    quarantined_by: tuple[MemorySource, ...] = ()
    """The quarantined messages that it may be made from: while there are any, it is shown and found nowhere."""

    @property
    def is_pinned(self) -> bool:
        """Whether every context shows it."""
        return self.pinned_at is not None

    @property
    def is_live(self) -> bool:
        """Whether it is neither superseded nor forgotten."""
        return self.state is MemoryState.LIVE


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryHit:
    """A memory that a search found. Scores only compare within one search.

    ```python
    for hit in await et.memories.search("local", "allergies"):
        print(hit.score, hit.memory.text)
    ```
    """

    memory: Memory
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Habit:
    """A tool or skill that is used often.

    ```python
    for habit in await et.memories.habits("local"):
        print(habit.name, habit.uses, habit.last_used_at)
    ```
    """

    kind: Literal["tool", "skill"]
    name: str
    uses: int
    conversations: int
    """In how many conversations."""
    last_used_at: datetime
