"""How something is written to the log: an intent says what it needs to see, is shown it inside the store's
transaction, and decides, as a pure function, what is written. Stores know how to look and how to write; they
never decide. So all stores behave alike, and what they do can be tested without one.

What is made for every write is a named tuple, in a third of the time that a frozen dataclass takes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Generic, NamedTuple, Protocol, TypeVar

from everthread.core.checkpoints import CheckpointChanges, CheckpointNeeds, CheckpointsSeen
from everthread.core.compactions import Compaction
from everthread.core.entries import Entry
from everthread.core.jobs import NewJob
from everthread.core.turns import EventBatch, Turn, TurnNeeds

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

BranchName = str | int | None
"""A branch's id, or the seq of a message that a path ends at, or None for the active branch."""


class BranchRow(NamedTuple):
    """A branch as stored. Its path is its parent's up to `fork_seq`, then its own entries."""

    number: int
    parent: int | None
    fork_seq: int
    leaf_seq: int
    leaf_depth: int
    """How many messages the path has."""
    created_at: int

    @property
    def id(self) -> str:
        return "main" if self.number == 0 else f"b{self.number}"


class LogHead(NamedTuple):
    """The part of a conversation's row that the log keeps, as locked in the writing transaction."""

    owner: str
    id: str
    entry_count: int
    chain: bytes
    active: int
    """The number of the active branch."""
    is_erased: bool
    off_record: bool
    compaction_check_at: int = 0
    """How long the active branch must be for a compaction to be worth a look; 0 while nobody has looked."""


class IdempotencyRecord(NamedTuple):
    """What was answered to an idempotency key, and to which body."""

    key: str
    body: bytes
    """A hash of the messages; empty once one of them was erased, since that of a short text could be guessed."""
    receipts: bytes

    def tells_of(self, message: str) -> bool:
        """Whether this message was among those written under the key."""
        return any(receipt[0] == message for receipt in json.loads(self.receipts or b"[]"))

    def blanked(self) -> IdempotencyRecord:
        """The key alone, which goes on refusing: a retry must not bring back what was erased."""
        return self._replace(body=b"", receipts=b"")


class Segment(NamedTuple):
    """A stretch of one branch's own entries: those with `after` < seq <= `last`."""

    branch: int
    after: int
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionQuery:
    """Which compactions to read; all that any part of it names. A conversation has thousands, a view needs a few."""

    path: Sequence[Segment] = ()
    """The chain of summaries that covers this path from its beginning (`compaction.summary_chain` of all there are)."""
    over: tuple[int, int] | None = None
    """Those, live or undone, whose stretch meets or touches the one after the first of these seqs up to the second."""
    ids: Sequence[str] = ()


class Needs(NamedTuple):
    """What an intent must be shown before it can decide."""

    ids: Sequence[str] = ()
    """Message ids whose newest revision it wants to see."""
    every_revision: bool = False
    """Show of these ids every revision, on whichever branch."""
    seqs: Sequence[int] = ()
    every_branch: bool = False
    """Otherwise only the active one is shown."""
    idempotency_key: str | None = None
    compactions: CompactionQuery | None = None
    since: int | None = None
    """Show every entry with a greater seq: what has happened since the caller read."""
    checkpoints: CheckpointNeeds | None = None
    turns: TurnNeeds | None = None


class Seen(NamedTuple):
    """What the store shows: consistent, and locked until the decision is written."""

    head: LogHead
    branches: Mapping[int, BranchRow]
    by_id: Mapping[str, Entry]
    """Of each id the newest revision written, on whichever branch."""
    by_seq: Mapping[int, Entry]
    answer: IdempotencyRecord | None
    compactions: Sequence[Compaction] = ()
    since: Sequence[Entry] = ()
    checkpoints: CheckpointsSeen | None = None
    revisions: Mapping[str, Sequence[Entry]] = MappingProxyType({})
    """Oldest first."""
    turns: Sequence[Turn] = ()
    """Those that wait or run, in the order they came, and the one that was asked for."""


class Touch(NamedTuple):
    """New projections for an entry that stands in the log already."""

    seq: int
    updated_at: int
    newest_seq: int | None = None
    """None leaves it as it is."""
    set_flags: int = 0
    clear_flags: int = 0
    commitment: bytes | None = None
    """Of an entry that was erased elsewhere, before it came here; None leaves it as it is."""


class Decision(NamedTuple, Generic[R_co]):
    """What is to be written, all of it or nothing, and what the caller is told."""

    result: R_co
    entries: Sequence[Entry] = ()
    texts: Sequence[str | None] = ()
    """What is searched of each of them, where that is known: a store need not read it from the entry again."""
    touches: Sequence[Touch] = ()
    branches: Sequence[BranchRow] = ()
    """Branches to insert or, by number, to replace."""
    active: int | None = None
    chain: bytes | None = None
    """The chain after the new entries."""
    answer: IdempotencyRecord | None = None
    changed: Sequence[int] = ()
    """Places that no longer say what they said: compactions over them are valid no more."""
    compactions: Sequence[Compaction] = ()
    """Compactions to insert or, by id, to replace."""
    checkpoints: CheckpointChanges | None = None
    jobs: Sequence[NewJob] = ()
    """What is to be done later because of this."""
    compaction_check_at: int | None = None
    """A new mark; None leaves it as it is."""
    turns: Sequence[Turn] = ()
    """Turns to insert or, by id, to replace."""
    events: Sequence[EventBatch] = ()
    """What turns have told."""


class Intent(Protocol[R_co]):
    """Something that is to happen to one conversation's log."""

    def needs(self) -> Needs: ...

    def decide(self, seen: Seen, now: int) -> Decision[R_co]: ...
