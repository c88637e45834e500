"""Conversations of LLM agents that never end and never forget.

async with everthread.open("sqlite:///data/et.db") as et:
    conv = await et.conversations.create()
    await conv.append([{"role": "user", "content": "hello"}])

The groups below are those of the Python reference (docs/reference/python.md).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    # Opening
    from everthread.bootstrap import agent, open
    from everthread.core.tools import tool
    from everthread.instance import Everthread
    from everthread.core.events import Metrics

    # Conversations
    from everthread.instance import Conversations
    from everthread.conversation import Conversation
    from everthread.core.nouns import Branch, ConversationInfo, Hit, Hits, Message, Page, Receipt, Ref
    from everthread.history.full_history import CheckpointReader, FullHistory, Gap

    # What a model sees
    from everthread.context.assemble import Context, Part, Piece
    from everthread.context.budget import Budget
    from everthread.context.manifest import Manifest, Omission
    from everthread.context.read_view import SeenContext
    from everthread.compaction.fullness import ContextPreview

    # Compaction
    from everthread.compaction.compactor import CompactionDiff, CompactionOutcome, PlannedSummary
    from everthread.compaction.policy import CompactionPolicy
    from everthread.compaction.summarise import Summariser, SummaryFailure
    from everthread.core.compactions import Compaction
    from everthread.instance import CompactionConfig

    # Recall
    from everthread.core.embeddings import Embedder, IndexProgress, VectorHit, VectorPart, Vectors
    from everthread.recall.policy import RecallPolicy, RecallWeights
    from everthread.recall.search import RecallHit, RecallHits

    # Memories
    from everthread.core.memories import Habit, Memory, MemoryHit, MemoryKind, MemoryScope, MemoryState
    from everthread.core.notes import MemorySource
    from everthread.core.trust import Trust
    from everthread.recall.memories import Memories
    from everthread.recall.provenance import ReachedRequest, Spread

    # Knowledge
    from everthread.core.documents import Collection, Document, Passage, PassageHit, PassageHits, Route
    from everthread.recall.knowledge import Knowledge

    # Workspaces
    from everthread.core.workspaces import CleanReport, FileInfo, Upload, Workspace, WorkspaceInfo
    from everthread.workspaces.conversation_workspaces import ConversationWorkspaces

    # Turns and jobs
    from everthread.core.jobs import Job, JobReport, JobState, Pace, Priority
    from everthread.core.turn_events import TurnEvent
    from everthread.core.turns import Turn, TurnState

    # Proof, archives and erasing
    from everthread.core.blobs import BlobInfo
    from everthread.core.nouns import EraseReport, Head, Problem, VerifyReport
    from everthread.history.blob_check import BlobReport
    from everthread.history.holds import Hold, Holds
    from everthread.history.import_archive import ImportReport

    # Errors
    from everthread.core.errors import (
        Conflict,
        ContextOverflow,
        Erased,
        EverthreadError,
        GraphFailed,
        HeadMoved,
        Held,
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

    # Turns
    from everthread.turn import Agent, TurnOptions, run_turn

__all__ = [
    # Opening
    "open",
    "agent",
    "tool",
    "Everthread",
    "Metrics",
    # Conversations
    "Conversations",
    "Conversation",
    "ConversationInfo",
    "Message",
    "Branch",
    "Receipt",
    "Ref",
    "Page",
    "Hit",
    "Hits",
    "FullHistory",
    "Gap",
    "CheckpointReader",
    # What a model sees
    "Context",
    "Part",
    "Piece",
    "ContextPreview",
    "Budget",
    "Manifest",
    "Omission",
    "SeenContext",
    # Compaction
    "Compaction",
    "CompactionPolicy",
    "CompactionConfig",
    "CompactionOutcome",
    "PlannedSummary",
    "SummaryFailure",
    "CompactionDiff",
    "Summariser",
    # Recall
    "RecallHit",
    "RecallHits",
    "RecallPolicy",
    "RecallWeights",
    "Embedder",
    "Vectors",
    "VectorPart",
    "VectorHit",
    "IndexProgress",
    # Memories
    "Memories",
    "Memory",
    "MemorySource",
    "Trust",
    "Spread",
    "ReachedRequest",
    "MemoryHit",
    "MemoryKind",
    "MemoryScope",
    "MemoryState",
    "Habit",
    # Knowledge
    "Knowledge",
    "Collection",
    "Document",
    "Passage",
    "PassageHit",
    "PassageHits",
    "Route",
    # Workspaces
    "ConversationWorkspaces",
    "Workspace",
    "WorkspaceInfo",
    "FileInfo",
    "Upload",
    "CleanReport",
    # Turns and jobs
    "run_turn",
    "Agent",
    "TurnOptions",
    "Turn",
    "TurnState",
    "TurnEvent",
    "Job",
    "JobReport",
    "JobState",
    "Pace",
    # Proof, archives and erasing
    "Head",
    "VerifyReport",
    "Priority",
    "Problem",
    "EraseReport",
    "ImportReport",
    "BlobReport",
    "Hold",
    "Holds",
    "BlobInfo",
    # Errors
    "EverthreadError",
    "NotFound",
    "Conflict",
    "HeadMoved",
    "Held",
    "TurnRunning",
    "TurnLost",
    "Erased",
    "Invalid",
    "KeyReused",
    "ContextOverflow",
    "GraphFailed",
    "ModelError",
    "ModelKeyMissing",
    "ModelRefused",
    "ModelOverflow",
    "ModelBusy",
    "ModelTimeout",
    "ModelUnreachable",
    "MissingExtra",
    "StoreError",
    "StoreBusy",
    "StoreFull",
    "StoreGone",
    "StoreDamaged",
]


_MODULES: Final = {
    "bootstrap": "agent open",
    "core.tools": "tool",
    "instance": "Everthread Conversations CompactionConfig",
    "core.events": "Metrics",
    "conversation": "Conversation",
    "core.nouns": "Branch ConversationInfo Hit Hits Message Page Receipt Ref EraseReport Head Problem VerifyReport",
    "history.full_history": "CheckpointReader FullHistory Gap",
    "context.assemble": "Context Part Piece",
    "context.budget": "Budget",
    "context.manifest": "Manifest Omission",
    "context.read_view": "SeenContext",
    "compaction.compactor": "CompactionDiff CompactionOutcome PlannedSummary",
    "compaction.fullness": "ContextPreview",
    "compaction.policy": "CompactionPolicy",
    "compaction.summarise": "Summariser SummaryFailure",
    "core.compactions": "Compaction",
    "core.embeddings": "Embedder IndexProgress VectorHit VectorPart Vectors",
    "recall.policy": "RecallPolicy RecallWeights",
    "recall.search": "RecallHit RecallHits",
    "core.memories": "Habit Memory MemoryHit MemoryKind MemoryScope MemoryState",
    "core.notes": "MemorySource",
    "core.trust": "Trust",
    "recall.provenance": "ReachedRequest Spread",
    "recall.memories": "Memories",
    "core.documents": "Collection Document Passage PassageHit PassageHits Route",
    "recall.knowledge": "Knowledge",
    "core.workspaces": "CleanReport FileInfo Upload Workspace WorkspaceInfo",
    "workspaces.conversation_workspaces": "ConversationWorkspaces",
    "core.jobs": "Job JobReport JobState Pace Priority",
    "core.turn_events": "TurnEvent",
    "core.turns": "Turn TurnState",
    "core.blobs": "BlobInfo",
    "history.blob_check": "BlobReport",
    "history.holds": "Hold Holds",
    "history.import_archive": "ImportReport",
    "core.errors": (
        "Conflict ContextOverflow Erased EverthreadError GraphFailed HeadMoved Held Invalid KeyReused "
        "MissingExtra ModelBusy ModelError ModelKeyMissing ModelOverflow ModelRefused ModelTimeout "
        "ModelUnreachable NotFound StoreBusy StoreDamaged StoreError StoreFull StoreGone TurnLost "
        "TurnRunning"
    ),
    "turn": "Agent TurnOptions run_turn",
}
"""Where each name is defined. A module is imported when one of its names is first used, so that what needs few of them,
such as the help of the command line, starts at once."""
_HOMES: Final = {name: module for module, names in _MODULES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        value = getattr(import_module(f"everthread.{home}"), name)
    except ImportError as problem:
        if home != "turn":
            raise
        from everthread.core.errors import MissingExtra as _MissingExtra  # noqa: PLC0415 - as everything here

        raise _MissingExtra(f"{name} needs an extra: pip install 'everthread[agent]'") from problem
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
