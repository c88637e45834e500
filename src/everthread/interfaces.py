"""The methods of `Everthread` and `Conversation` as protocols, for code that should also take another implementation of
them, such as a client over HTTP. The classes themselves document each method; a test compares the signatures.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from types import EllipsisType
from typing import Any, Protocol

from everthread.compaction.compactor import CompactionDiff, CompactionOutcome
from everthread.compaction.fullness import ContextPreview
from everthread.compaction.policy import Trigger
from everthread.context.assemble import Context
from everthread.context.budget import Budget
from everthread.context.message_format import Provider
from everthread.context.read_view import SeenContext
from everthread.core.compactions import Compaction
from everthread.core.ids import LOCAL
from everthread.core.jobs import JobReport, JobState
from everthread.core.log import BranchName
from everthread.core.memories import Memory, MemoryKind, MemoryScope, Origin
from everthread.core.nouns import (
    Branch,
    EraseReport,
    Head,
    Hits,
    Message,
    Page,
    Receipt,
    VerifyReport,
)
from everthread.core.ports import ListOrder
from everthread.core.turn_events import TurnEvent
from everthread.core.turns import Turn, TurnState
from everthread.history import export as exporting
from everthread.history.full_history import CheckpointReader, FullHistory
from everthread.history.import_archive import Archive, ImportReport
from everthread.recall.policy import Scope
from everthread.recall.provenance import Spread
from everthread.recall.search import RecallHits


class ConversationProtocol(Protocol):
    """One conversation of one owner."""

    @property
    def id(self) -> str: ...

    @property
    def owner(self) -> str: ...

    @property
    def title(self) -> str | None: ...

    @property
    def metadata(self) -> Mapping[str, Any]: ...

    @property
    def parent_id(self) -> str | None: ...

    @property
    def is_active(self) -> bool: ...

    @property
    def is_deleted(self) -> bool: ...

    @property
    def off_record(self) -> bool: ...

    @property
    def created_at(self) -> datetime: ...

    @property
    def updated_at(self) -> datetime: ...

    async def refresh(self) -> ConversationProtocol: ...

    async def update(
        self,
        *,
        title: str | EllipsisType | None = ...,
        metadata: Mapping[str, Any] | EllipsisType = ...,
        is_active: bool | EllipsisType = ...,
    ) -> ConversationProtocol: ...

    async def delete(self) -> ConversationProtocol: ...

    async def restore(self) -> ConversationProtocol: ...

    async def append(
        self,
        messages: object,
        *,
        idempotency_key: str | None = None,
        expected_head: int | None = None,
        branch: Branch | BranchName = None,
    ) -> list[Receipt]: ...

    async def edit(self, id: str, payload: object, *, activate: bool = True) -> Receipt: ...

    async def delete_message(self, id: str) -> None: ...

    async def restore_message(self, id: str) -> None: ...

    async def pin(self, id: str) -> None: ...

    async def unpin(self, id: str) -> None: ...

    async def quarantine(self, id: str) -> Spread: ...

    async def release(self, id: str) -> None: ...

    async def spread(self, id: str) -> Spread: ...

    async def remember(
        self,
        text: str,
        *,
        kind: MemoryKind | str = MemoryKind.FACT,
        scope: MemoryScope | str = MemoryScope.USER,
        seq: int | None = None,
        subject: str | None = None,
        pinned: bool | None = None,
        origin: Origin = "person",
        has_read_documents: bool = False,
    ) -> Memory: ...

    async def remembered(self, query: str | None = None, *, limit: int = 100) -> Sequence[Memory]: ...

    async def forget(self, id: str) -> Memory: ...

    async def fork(self, at_seq: int, *, activate: bool = False) -> Branch: ...

    async def set_active(self, branch: Branch | BranchName) -> Branch: ...

    def branches(self) -> AsyncIterator[Branch]: ...

    def children(self) -> AsyncIterator[ConversationProtocol]: ...

    async def copy(self, *, id: str | None = None, title: str | None = None) -> ConversationProtocol: ...

    def messages(
        self,
        *,
        after: int = 0,
        limit: int | None = None,
        branch: Branch | BranchName = None,
        revisions: bool = False,
        include_deleted: bool = False,
    ) -> AsyncIterator[Message]: ...

    async def tail(
        self,
        count: int,
        *,
        before: int | None = None,
        branch: Branch | BranchName = None,
        include_deleted: bool = False,
    ) -> list[Message]: ...

    async def message(self, id: str) -> Message: ...

    async def message_at(self, seq: int) -> Message: ...

    def export(
        self,
        format: exporting.Format = "md",
        *,
        branch: Branch | BranchName = None,
        thinking: bool = True,
        tools: bool = True,
    ) -> AsyncIterator[bytes]: ...

    async def search(
        self, text: str, *, limit: int = 20, meaning: bool = False, show_secrets: bool = False
    ) -> Hits: ...

    async def context(
        self,
        *,
        system: str | None = None,
        query: str | None = None,
        tools: Sequence[Mapping[str, Any]] = (),
        budget: Budget | None = None,
        branch: Branch | BranchName = None,
        provider: Provider | None = None,
        compaction: Mapping[str, Any] | None = None,
        to_keep: bool = False,
    ) -> Context: ...

    async def preview_context(
        self,
        *,
        system: str | None = None,
        question: str | None = None,
        tools: Sequence[Mapping[str, Any]] = (),
        budget: Budget | None = None,
        branch: Branch | BranchName = None,
        provider: Provider | None = None,
        compaction: Mapping[str, Any] | None = None,
    ) -> ContextPreview: ...

    async def compact(
        self,
        *,
        trigger: Trigger = "manual",
        dry_run: bool = False,
        branch: Branch | BranchName = None,
        compaction: Mapping[str, Any] | None = None,
        on_each: Callable[[CompactionOutcome], None] | None = None,
        budget: Budget | None = None,
    ) -> CompactionOutcome: ...

    async def compact_if_due(
        self,
        *,
        budget: Budget | None = None,
        branch: Branch | BranchName = None,
        compaction: Mapping[str, Any] | None = None,
    ) -> CompactionOutcome: ...

    async def keep_context(self, context: Context) -> str: ...

    async def seen_context(self, id: str) -> SeenContext: ...

    def compactions(self) -> AsyncIterator[Compaction]: ...

    async def summary(self, *, branch: Branch | BranchName = None, level: int | None = None) -> str | None: ...

    async def summaries(
        self, *, branch: Branch | BranchName = None, level: int | None = None
    ) -> Sequence[Compaction]: ...

    async def undo_compaction(self, id: str) -> Compaction: ...

    async def compaction_diff(self, id: str) -> CompactionDiff: ...

    async def compaction(self, id: str) -> Compaction: ...

    async def turn(self, id: str) -> Turn: ...

    async def turns(
        self, *, limit: int = 50, cursor: str | None = None, states: Sequence[TurnState] = ()
    ) -> Page[Turn]: ...

    def turn_events(self, id: str, *, after: int = 0) -> AsyncIterator[TurnEvent]: ...

    async def stop_turn(self, id: str) -> Turn: ...

    async def recall(
        self,
        query: str,
        *,
        limit: int = 10,
        max_tokens: int = 2000,
        scope: Scope | None = None,
        asked_at: datetime | None = None,
        show_secrets: bool = False,
    ) -> RecallHits: ...


class ConversationsProtocol(Protocol):
    """The conversations of a database, by owner and id."""

    async def create(
        self,
        *,
        owner: str = LOCAL,
        title: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        id: str | int | None = None,
        parent_id: str | None = None,
        off_record: bool = False,
    ) -> ConversationProtocol: ...

    async def get(self, id: str | int, owner: str = LOCAL) -> ConversationProtocol: ...

    async def ensure(
        self,
        id: str | int,
        owner: str = LOCAL,
        *,
        title: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        parent_id: str | None = None,
        off_record: bool = False,
    ) -> ConversationProtocol: ...

    async def list(
        self,
        owner: str = LOCAL,
        *,
        limit: int = 50,
        cursor: str | None = None,
        include_deleted: bool = False,
        parent_id: str | None = None,
        order: ListOrder = "created",
    ) -> Page[ConversationProtocol]: ...


class EverthreadProtocol(Protocol):
    """A database of conversations."""

    @property
    def conversations(self) -> ConversationsProtocol: ...

    async def __aenter__(self) -> EverthreadProtocol: ...

    async def close(self) -> None: ...

    async def jobs(self, *, limit: int = 100, state: JobState | None = None) -> JobReport: ...

    async def retry_job(self, id: int) -> None: ...

    async def retry_dead_jobs(self) -> int: ...

    async def discard_job(self, id: int) -> None: ...

    async def search(
        self,
        text: str,
        *,
        owner: str = LOCAL,
        conversation: str | None = None,
        limit: int = 20,
        meaning: bool = False,
        show_secrets: bool = False,
    ) -> Hits: ...

    async def full_history(
        self,
        thread_id: str,
        owner: str = LOCAL,
        *,
        merge_checkpoint: bool = True,
        saver: CheckpointReader | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> FullHistory: ...

    def export_archive(
        self, *, owner: str = LOCAL, conversations: Sequence[str] | None = None
    ) -> AsyncIterator[bytes]: ...

    async def import_archive(self, pieces: Archive, *, owner: str = LOCAL) -> ImportReport: ...

    async def heads(self) -> list[Head]: ...

    async def verify(
        self, against: Iterable[Head] | None = None, *, owner: str | None = None, conversation: str | None = None
    ) -> VerifyReport: ...

    async def erase(
        self, *, owner: str | None = None, conversation: str | None = None, message: str | None = None
    ) -> EraseReport: ...

    async def stats(self) -> Mapping[str, int]: ...
