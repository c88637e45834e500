"""Checkpoints of agent graphs, as a store keeps them: rows beside a conversation's log, and bytes they share.

What a checkpoint *means* is adapters/checkpoints' business. Here it is a row with a body, the writes that wait on it,
and blobs by digest. A checkpoint and the entries it makes are one `Decision` (core/log.py), so they commit together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from hashlib import blake2b
from typing import NamedTuple


def digest_of(body: bytes) -> bytes:
    """The name that bytes are kept by."""
    return blake2b(body, digest_size=16).digest()


class CheckpointState(IntEnum):
    """Whether a checkpoint is shown."""

    VISIBLE = 0
    HIDDEN = 1
    """Removed for its users, and kept because a visible one is rebuilt from its writes."""
    AWAITED = 2
    """Only writes to it have come so far: a framework may save them before the checkpoint itself."""


class Thread(NamedTuple):
    """What a conversation with checkpoints keeps about them as a whole."""

    made: int = 0
    """How many numbers were given to checkpoints; never reused."""
    tip: int = 0
    """The number of the root checkpoint put last."""
    epoch: int = 0
    """How often its checkpoints were deleted."""
    is_closed: bool = False
    """Deleted, and nothing put since: the next put begins anew."""
    erasures: int = 0
    """How often a message of it was erased: what was remembered of it before is not to be trusted."""


class StoredCheckpoint(NamedTuple):
    """One checkpoint."""

    number: int
    namespace: str
    id: str
    parent_id: str | None
    run_id: str | None
    state: int
    log_count: int
    """How many entries the log had when it was made."""
    branch: int
    leaf_seq: int
    leaf_depth: int
    """The branch of the log it stands on, the last message there, and how many messages there are up to it."""
    body: bytes
    metadata: bytes


REFERS = "refs"
"""The kind of a write's value that refers to entries."""


class StoredWrite(NamedTuple):
    """One write that a task made on top of a checkpoint."""

    checkpoint: int
    task_id: str
    idx: int
    """Below 0 for what a task has once (an error, an interrupt): the last one counts. Else the first one counts."""
    task_path: str
    channel: str
    kind: str
    value: bytes
    is_held: bool
    """Whether it holds messages that are not in the log yet."""


class SavedCheckpoint(NamedTuple):
    """A checkpoint as it is read: with its writes, in the order in which they were applied."""

    row: StoredCheckpoint
    writes: Sequence[StoredWrite]
    thread: Thread


class ListedCheckpoint(NamedTuple):
    """A checkpoint of one of an owner's conversations."""

    conversation_id: str
    saved: SavedCheckpoint


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointQuery:
    """Which checkpoints of an owner to list: newest id first within a namespace."""

    owner: str
    conversation: str | None = None
    namespace: str | None = None
    id: str | None = None
    before: str | None = None
    """Only those with a smaller id."""
    after: tuple[str, str, str] | None = None
    """Go on after this one: conversation, namespace, id."""
    limit: int = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointNeeds:
    """What an intent about checkpoints must be shown."""

    namespace: str = ""
    id: str | None = None
    parent_id: str | None = None
    everything: bool = False
    """Every checkpoint of the conversation, all writes, and what there is of blobs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointsSeen:
    """What it is shown."""

    thread: Thread
    own: StoredCheckpoint | None = None
    """The checkpoint by the id named, when there is one already."""
    parent: StoredCheckpoint | None = None
    held: Sequence[StoredWrite] = ()
    """The writes on the parent that hold messages; with `everything`, those of all checkpoints."""
    all: Sequence[StoredCheckpoint] = ()
    writes: Sequence[StoredWrite] = ()
    digests: Sequence[bytes] = ()
    chunks: Mapping[bytes, bytes] = field(default_factory=dict)
    """Blobs that are lists of others: those whose first byte is no letter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointChanges:
    """What is written about checkpoints, together with the rest of a decision."""

    thread: Thread | None = None
    put: Sequence[StoredCheckpoint] = ()
    """Checkpoints to insert or, by number, to replace."""
    writes: Sequence[StoredWrite] = ()
    """Writes to insert; where one stands already, only an `idx` below 0 replaces it."""
    settled: Sequence[StoredWrite] = ()
    """Writes to replace."""
    blobs: Mapping[bytes, bytes] = field(default_factory=dict)
    """Bytes to keep by digest, unless they are there."""
    drop: Sequence[int] = ()
    """Numbers of checkpoints to remove, with their writes."""
    drop_blobs: Sequence[bytes] = ()
