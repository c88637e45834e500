"""Checkpoints of agent graphs as a store sees them: rows next to a conversation's log, and blobs that they share.

What a checkpoint *means* is known to adapters/checkpoints alone. Here it is a row with a body, its pending writes, and
blobs by digest. A checkpoint and its new log entries are one `Decision` (core/log.py), so they commit together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from hashlib import blake2b
from typing import NamedTuple


def digest_of(body: bytes) -> bytes:
    """The digest under which a blob is stored."""
    return blake2b(body, digest_size=16).digest()


class CheckpointState(IntEnum):
    """Whether readers can see a checkpoint."""

    VISIBLE = 0
    HIDDEN = 1
    """Removed for users, but kept because a visible checkpoint is rebuilt from its writes."""
    AWAITED = 2
    """Not saved yet, but has writes: a framework may save those before the checkpoint itself."""


class Thread(NamedTuple):
    """The state of a conversation's checkpoints as a whole (a LangGraph thread)."""

    made: int = 0
    """The last number given to a checkpoint; numbers are never reused."""
    tip: int = 0
    """The number of the most recently saved root checkpoint."""
    epoch: int = 0
    """The number of times its checkpoints were deleted."""
    is_closed: bool = False
    """Whether its checkpoints were deleted and none was saved since; the next one starts the thread afresh."""
    erasures: int = 0
    """The number of times a message was erased; caches from before the last one are stale."""


class StoredCheckpoint(NamedTuple):
    """The row of one checkpoint."""

    number: int
    namespace: str
    id: str
    parent_id: str | None
    run_id: str | None
    state: int
    log_count: int
    """The number of log entries when the checkpoint was saved."""
    branch: int
    """The branch of the log that the checkpoint belongs to."""
    leaf_seq: int
    """The seq of the checkpoint's last message on that branch."""
    leaf_depth: int
    """The number of messages on the path up to `leaf_seq`."""
    body: bytes
    metadata: bytes


REFERS = "refs"
"""The `kind` of a write whose value refers to log entries."""


class StoredWrite(NamedTuple):
    """One pending write of a task on a checkpoint."""

    checkpoint: int
    task_id: str
    idx: int
    """The write's index within its task. A negative index is for a special write that a task has once (an error, an
    interrupt): saving it again replaces it. A write with another index is kept as first saved."""
    task_path: str
    channel: str
    kind: str
    value: bytes
    is_held: bool
    """Whether the value holds messages that are not in the log yet."""


class SavedCheckpoint(NamedTuple):
    """A checkpoint with its writes, in the order in which they were applied."""

    row: StoredCheckpoint
    writes: Sequence[StoredWrite]
    thread: Thread


class ListedCheckpoint(NamedTuple):
    """A checkpoint together with the id of its conversation."""

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
    """List only checkpoints with a smaller id."""
    after: tuple[str, str, str] | None = None
    """Continue after the checkpoint with this conversation, namespace and id."""
    limit: int = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointNeeds:
    """What an intent about checkpoints needs to read."""

    namespace: str = ""
    id: str | None = None
    parent_id: str | None = None
    everything: bool = False
    """Read every checkpoint of the conversation, all writes, and the digests of all blobs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointsSeen:
    """What the store read for an intent about checkpoints."""

    thread: Thread
    own: StoredCheckpoint | None = None
    """The checkpoint with the requested id, if it exists already."""
    parent: StoredCheckpoint | None = None
    held: Sequence[StoredWrite] = ()
    """The writes on the parent that hold messages; with `everything`, those of all checkpoints."""
    all: Sequence[StoredCheckpoint] = ()
    writes: Sequence[StoredWrite] = ()
    digests: Sequence[bytes] = ()
    chunks: Mapping[bytes, bytes] = field(default_factory=dict)
    """The blobs that are lists of other blobs, recognised by a first byte that is not a letter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointChanges:
    """The checkpoint rows that a decision writes, together with its log entries."""

    thread: Thread | None = None
    put: Sequence[StoredCheckpoint] = ()
    """Checkpoints to insert or, by number, to replace."""
    writes: Sequence[StoredWrite] = ()
    """Writes to insert; an existing write is replaced only when its `idx` is negative."""
    settled: Sequence[StoredWrite] = ()
    """Writes to replace."""
    blobs: Mapping[bytes, bytes] = field(default_factory=dict)
    """Blobs to insert by digest, unless they exist already."""
    drop: Sequence[int] = ()
    """Numbers of checkpoints to remove, with their writes."""
    drop_blobs: Sequence[bytes] = ()
    drop_unshared_blobs: Sequence[bytes] = ()
    """Blobs to remove if, after all of the above, the conversation has a single checkpoint: no other can name them."""
