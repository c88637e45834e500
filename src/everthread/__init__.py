"""Conversations of LLM agents that never end and never forget.

async with everthread.open("sqlite:///data/et.db") as et:
    conv = await et.conversations.create()
    await conv.append([{"role": "user", "content": "hello"}])
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from everthread.bootstrap import agent, open
from everthread.compaction.compactor import CompactionDiff, CompactionOutcome
from everthread.compaction.policy import CompactionPolicy
from everthread.compaction.summarise import Summariser
from everthread.context.assemble import Context, Part
from everthread.context.budget import Budget
from everthread.context.manifest import Manifest, Omission
from everthread.context.read_view import SeenContext
from everthread.conversation import Conversation
from everthread.core.compactions import Compaction
from everthread.core.documents import Collection, Document, Passage, PassageHit, PassageHits, Route
from everthread.core.errors import (
    Conflict,
    ContextOverflow,
    Erased,
    EverthreadError,
    HeadMoved,
    Invalid,
    KeyReused,
    MissingExtra,
    ModelBusy,
    ModelError,
    ModelKeyMissing,
    ModelOverflow,
    ModelRefused,
    ModelTimeout,
    ModelUnreachable,
    NotFound,
    StoreBusy,
    StoreDamaged,
    StoreError,
    StoreFull,
    StoreGone,
    TurnLost,
    TurnRunning,
)
from everthread.core.jobs import Job, JobReport, JobState, Pace
from everthread.core.memories import Habit, Memory, MemoryHit, MemoryKind, MemoryScope, MemoryState
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
from everthread.core.tools import tool
from everthread.core.turn_events import TurnEvent
from everthread.core.turns import Turn, TurnState
from everthread.history.full_history import FullHistory, Gap
from everthread.instance import CompactionConfig, Everthread
from everthread.recall.knowledge import Knowledge
from everthread.recall.memories import Memories
from everthread.recall.policy import RecallPolicy, RecallWeights
from everthread.recall.search import RecallHit, RecallHits

if TYPE_CHECKING:
    from everthread.turn.run import run_turn

__all__ = [
    "Branch",
    "Budget",
    "Collection",
    "Compaction",
    "CompactionConfig",
    "CompactionDiff",
    "CompactionOutcome",
    "CompactionPolicy",
    "Conflict",
    "Context",
    "ContextOverflow",
    "Conversation",
    "Document",
    "EraseReport",
    "Erased",
    "Everthread",
    "EverthreadError",
    "FullHistory",
    "Gap",
    "Habit",
    "Head",
    "HeadMoved",
    "Hit",
    "Hits",
    "Invalid",
    "Job",
    "JobReport",
    "JobState",
    "KeyReused",
    "Knowledge",
    "Manifest",
    "Memories",
    "Memory",
    "MemoryHit",
    "MemoryKind",
    "MemoryScope",
    "MemoryState",
    "Message",
    "MissingExtra",
    "ModelBusy",
    "ModelError",
    "ModelKeyMissing",
    "ModelOverflow",
    "ModelRefused",
    "ModelTimeout",
    "ModelUnreachable",
    "NotFound",
    "Omission",
    "Pace",
    "Page",
    "Part",
    "Passage",
    "PassageHit",
    "PassageHits",
    "Problem",
    "RecallHit",
    "RecallHits",
    "RecallPolicy",
    "RecallWeights",
    "Receipt",
    "Route",
    "SeenContext",
    "StoreBusy",
    "StoreDamaged",
    "StoreError",
    "StoreFull",
    "StoreGone",
    "Summariser",
    "Turn",
    "TurnEvent",
    "TurnLost",
    "TurnRunning",
    "TurnState",
    "VerifyReport",
    "agent",
    "open",
    "run_turn",
    "tool",
]


def __getattr__(name: str) -> Any:
    """`run_turn` is imported when it is first used: it needs LangGraph, which is an extra and slow to import."""
    if name == "run_turn":
        try:
            from everthread.turn.run import run_turn  # noqa: PLC0415
        except ImportError as problem:
            raise MissingExtra("run_turn needs an extra: pip install 'everthread[agent]'") from problem
        return run_turn
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
