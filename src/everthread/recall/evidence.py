"""What ranking is told: the messages that were read, what is known besides their texts, how much each signal counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from everthread.core.queries import Term
from everthread.recall.nearness import Places
from everthread.text.dates import TimeRange


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallWeights:
    """How much each signal counts; 0 turns one off."""

    neighbours: float = 0.4
    """What the next message lends of its own score, half of it at each further step."""
    asking: float = 1.5
    """How many times as much comes from a message that asks to the one after it."""
    around: float = 0.3
    meaning: float = 0.3
    """The share of meaning in words and meaning together, for a question that the embedder understands."""
    user: float = 0.3
    assistant: float = 0.5
    speaker: float = 0.3
    date: float = 0.5
    alone_tokens: int = 100
    """A message of so many tokens needs its neighbours half as much as a short one."""
    tool_damping: float = 3.0
    """How much less neighbours lend, and meaning weighs, for each share of the messages that are results of tools."""


class Heard(NamedTuple):
    """A message that was read."""

    order: int
    """Rises through a conversation; those of two conversations are far apart."""
    place: int
    """Where it stands on its path; neighbours differ by one."""
    conversation_id: str
    role: str
    name: str | None
    text: str
    said_at: datetime | None = None
    """Where the question names a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What is known besides the texts."""

    places: Places
    rarity: Mapping[Term, float]
    likeness: Mapping[tuple[int, int], float] = field(default_factory=dict)
    """Of the passages nearest in meaning, by order and number of the passage: the cosine."""
    grasp: float = 0.0
    """Which share of the question the embedder understands."""
    times: Sequence[TimeRange] = ()
