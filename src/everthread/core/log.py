"""How the log is written. An intent says what it needs to read; the store reads that inside its transaction; the intent
decides, as a pure function, what to write; the store writes it. Stores never decide anything, so all of them behave
alike, and the decisions can be tested without a store.

The values created for every write are named tuples: they take a third of the time of a frozen dataclass.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Generic, NamedTuple, Protocol, TypeVar

from everthread.core.checkpoints import CheckpointChanges, CheckpointNeeds, CheckpointsSeen
from everthread.core.compactions import Compaction
from everthread.core.entries import Entry
from everthread.core.imports import ImportLine
from everthread.core.jobs import NewJob
from everthread.core.turns import EventBatch, Turn, TurnNeeds

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

BranchName = str | int | None
"""A branch's id, the seq of the message that ends the path, or None for the active branch."""


class BranchRow(NamedTuple):
    """A branch as stored. Its path is its parent's up to `fork_seq`, then its own entries."""

    number: int
    parent: int | None
    fork_seq: int
    leaf_seq: int
    leaf_depth: int
    """The number of messages on the branch's path."""
    created_at: int

    @property
    def id(self) -> str:
        return "main" if self.number == 0 else f"b{self.number}"


_MOST_NAMED = 10


def named_branches(rows: Iterable[BranchRow]) -> str:
    """Which branches there are, for whoever asked for another."""
    names = [row.id for row in rows]
    more = f" and {len(names) - _MOST_NAMED:,} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more


class LogHead(NamedTuple):
    """The columns of a conversation's row that belong to its log, read under the writer's lock."""

    owner: str
    id: str
    entry_count: int
    chain: bytes
    active: int
    """The number of the active branch."""
    is_erased: bool
    off_record: bool
    compaction_check_at: int = 0
    """The length of the active branch from which an append checks whether a compaction is due; 0 before the first
    check."""


class IdempotencyRecord(NamedTuple):
    """The receipts returned for an idempotency key, and a hash of the messages they were for."""

    key: str
    body: bytes
    """A hash of the messages; emptied when one of them is erased, because a short text can be guessed from its hash."""
    receipts: bytes

    def tells_of(self, message: str) -> bool:
        """Whether this message was among those written under the key."""
        return any(receipt[0] == message for receipt in json.loads(self.receipts or b"[]"))

    def blanked(self) -> IdempotencyRecord:
        """The record with only its key, which still blocks a retry from writing the erased message again."""
        return self._replace(body=b"", receipts=b"")


class Segment(NamedTuple):
    """A stretch of one branch's own entries: those with `after` < seq <= `last`."""

    branch: int
    after: int
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionQuery:
    """Which compactions to read: those that any field selects. A conversation has thousands, a view needs few."""

    path: Sequence[Segment] = ()
    """Select the summaries that cover this path from its beginning (`compaction.summary_chain` of all compactions)."""
    over: tuple[int, int] | None = None
    """Select compactions, live or undone, whose span overlaps or adjoins the seqs after the first number up to the
    second."""
    ids: Sequence[str] = ()
    """Select compactions by id."""


class Needs(NamedTuple):
    """What an intent needs to read before it can decide."""

    ids: Sequence[str] = ()
    """Read the newest revision of the messages with these ids."""
    every_revision: bool = False
    """Read every revision of `ids`, on all branches."""
    seqs: Sequence[int] = ()
    """Read the entries with these seqs."""
    every_branch: bool = False
    """Read all branches, not only the active one."""
    idempotency_key: str | None = None
    compactions: CompactionQuery | None = None
    since: int | None = None
    """Read every entry with a greater seq: whatever was written since the caller last read."""
    checkpoints: CheckpointNeeds | None = None
    turns: TurnNeeds | None = None


class IntentInputs(NamedTuple):
    """What the store read for an intent: a consistent state, locked until the decision is written."""

    head: LogHead
    branches: Mapping[int, BranchRow]
    by_id: Mapping[str, Entry]
    """The newest revision of each requested message id, on any branch."""
    by_seq: Mapping[int, Entry]
    answer: IdempotencyRecord | None
    compactions: Sequence[Compaction] = ()
    since: Sequence[Entry] = ()
    checkpoints: CheckpointsSeen | None = None
    revisions: Mapping[str, Sequence[Entry]] = MappingProxyType({})
    """Every revision of each requested id, oldest first; only with `Needs.every_revision`."""
    turns: Sequence[Turn] = ()
    """The waiting and running turns in order of arrival, and the turn requested by id."""


class Touch(NamedTuple):
    """An update of the projected columns (newest revision, flags) of an entry that is already in the log."""

    seq: int
    updated_at: int
    newest_seq: int | None = None
    """None keeps the current value."""
    set_flags: int = 0
    clear_flags: int = 0
    commitment: bytes | None = None
    """The commitment of an imported entry that was erased before it was exported; None keeps the current value."""


class Decision(NamedTuple, Generic[R_co]):
    """What an intent decided: the rows to write, in one transaction, and the result for the caller."""

    result: R_co
    entries: Sequence[Entry] = ()
    texts: Sequence[str | None] = ()
    """The searchable text of each new entry, where the intent already has it: saves the store decoding the entry."""
    touches: Sequence[Touch] = ()
    branches: Sequence[BranchRow] = ()
    """Branches to insert or, by number, to replace."""
    active: int | None = None
    chain: bytes | None = None
    """The chain hash after the new entries."""
    answer: IdempotencyRecord | None = None
    changed: Sequence[int] = ()
    """Seqs of messages whose content changed: compactions that cover them become invalid."""
    compactions: Sequence[Compaction] = ()
    """Compactions to insert or, by id, to replace."""
    checkpoints: CheckpointChanges | None = None
    jobs: Sequence[NewJob] = ()
    """Background jobs to add."""
    compaction_check_at: int | None = None
    """The new `LogHead.compaction_check_at`; None keeps the current value."""
    turns: Sequence[Turn] = ()
    """Turns to insert or, by id, to replace."""
    events: Sequence[EventBatch] = ()
    """Turn events to append."""
    lines: Sequence[ImportLine] = ()
    """The lines that entries were imported from, to insert or, by seq, to replace."""


class Intent(Protocol[R_co]):
    """A change to one conversation's log. `decide` must be pure: a store may call it again after a collision."""

    def needs(self) -> Needs:
        """Return what `decide` needs to see."""

    def decide(self, seen: IntentInputs, now: int) -> Decision[R_co]:
        """Return what to write, given what was read and the time in microseconds; raise to write nothing."""
