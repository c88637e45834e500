"""The intents of the saver, decided inside the store's transaction: a checkpoint with the entries it makes, writes
that wait on a checkpoint, and the removal of checkpoints.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import NamedTuple

import ormsgpack
from langchain_core.messages import BaseMessage
from langgraph.checkpoint.serde.base import SerializerProtocol

from everthread.adapters.checkpoints.held_writes import HeldMessage, HeldMessages, WriteKey, with_references
from everthread.adapters.checkpoints.row_format import (
    DELTA_COUNTERS,
    Blobs,
    LogRef,
    MessageRef,
    UnloggedRef,
    blobs_in_body,
    pack_blob,
)
from everthread.adapters.checkpoints.stored_message import SerdeBytes, StoredMessage
from everthread.core import entries, log
from everthread.core.checkpoints import (
    CheckpointChanges,
    CheckpointNeeds,
    CheckpointsSeen,
    CheckpointState,
    StoredCheckpoint,
    StoredWrite,
)
from everthread.core.errors import Conflict
from everthread.core.log import BranchRow, Decision, IntentInputs, Needs
from everthread.core.paths import segments
from everthread.history.branch_writer import BranchWriter, new_branch
from everthread.history.ingest import Prepared, says_the_same

TURN_KEY = "turn_id"
"""In the metadata of a checkpoint that a turn of our own agent made: the turn, which is its run too."""


class StaleDraft(Conflict):
    """The store holds writes that this process did not know of; the caller prepares them and tries again."""

    def __init__(self, writes: Sequence[StoredWrite] = (), rows: Mapping[int, StoredCheckpoint] | None = None) -> None:
        super().__init__("the thread was changed by somebody else at the same time; nothing was stored: try again")
        self.writes = writes
        """Writes that hold messages."""
        self.rows = rows or {}
        """Their checkpoints, by number."""


class ListedMessage(NamedTuple):
    """One message of the list that feeds history."""

    message: BaseMessage
    ref: MessageRef | None
    """Where it stands in the log, if it is there unchanged."""
    prepared: Prepared | None
    """What to write if it is not."""
    stored: StoredMessage | None
    spare_id: str | None = None
    """For a message without an id: the id to use if the log has another message under the id made for it."""


class MatchedMessage(NamedTuple):
    """A message that a write holds."""

    part: HeldMessage
    prepared: Prepared | None
    """What to write if no list names it; None for a message that is never logged."""
    list_index: int | None
    """Where it stands in the list …"""
    listed: StoredMessage | None = None
    """… and what the list has there."""


class MatchedWrite(NamedTuple):
    """A write that holds messages, matched with the list that may name its messages."""

    held: HeldMessages
    messages: Sequence[MatchedMessage]


class PutResult(NamedTuple):
    """The result of a put."""

    row: StoredCheckpoint
    refs: Sequence[MessageRef]
    logged: Mapping[MessageRef, tuple[str, StoredMessage]]
    """By reference: the id in the log, and the stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PutCheckpoint:
    """A checkpoint, and the entries it makes."""

    serde: SerializerProtocol
    namespace: str
    id: str
    parent_id: str | None
    run_id: str | None
    metadata: bytes
    body: Callable[[Sequence[MessageRef], Blobs], bytes]
    """The row's bytes, once it is known where the messages of the list stand."""
    blobs: Mapping[bytes, bytes]
    needs_parent: bool = False
    """Whether values are carried over from the parent, which must then be there."""
    known_refs: Sequence[MessageRef] = ()
    """Where the first messages of the list stand, which are known and unchanged …"""
    items: Sequence[ListedMessage] = ()
    """… and the rest of them."""
    removed: Sequence[int] = ()
    """Entries that the parent's list has and this one has not."""
    matched: Mapping[WriteKey, MatchedWrite] = field(default_factory=dict)
    """The writes on the parent that hold messages."""
    log_count: int = 0
    """How many entries the log had when the parent was made."""
    is_silent: bool = False
    """Whether none of its lists feeds history: then it belongs to the end of the conversation, and moves no branch."""
    rewritten: Mapping[WriteKey, StoredWrite] | None = None
    """The same writes with references, where their messages were logged in another conversation."""
    with_writes: Sequence[StoredWrite] = ()
    """Writes on the parent that are stored with it."""
    replaces_turn: bool = False
    """Whether it replaces its parent, if that belongs to a turn of our own agent."""

    def needs(self) -> Needs:
        messages = [item.prepared for item in self.items if item.prepared is not None]
        messages += [
            one.prepared for wait in self.matched.values() for one in wait.messages if one.prepared is not None
        ]
        spare = [item.spare_id for item in self.items if item.spare_id is not None]
        return Needs(
            ids=list(dict.fromkeys([*(message.id for message in messages), *spare])),
            every_revision=True,
            seqs=self.removed,
            every_branch=True,
            checkpoints=CheckpointNeeds(namespace=self.namespace, id=self.id, parent_id=self.parent_id),
        )

    def decide(self, seen: IntentInputs, now: int) -> Decision[PutResult]:
        found = seen.checkpoints
        assert found is not None
        self._check(found)
        decision = _PutDecision(self, seen, found, now)
        refs = decision.follow()
        row = self._row(seen, found, decision.writer)
        blobs = {**self.blobs, **decision.blobs}
        row = row._replace(body=self.body(refs, blobs))
        thread = found.thread._replace(made=max(found.thread.made, row.number))
        if not row.namespace:
            thread = thread._replace(tip=row.number, is_closed=False)
        changed, joined = decision.rewrite_held(refs, blobs), decision.rewrite_joined(refs, blobs)
        changes = CheckpointChanges(thread=thread, put=[row], blobs=blobs, settled=changed, writes=joined)
        replaced = self._replaced(found)
        if replaced is not None:
            unshared = set(blobs_in_body(replaced.body)) - set(blobs_in_body(row.body))
            changes = CheckpointChanges(
                thread=thread, put=[row], blobs=blobs, drop=[replaced.number], drop_unshared_blobs=sorted(unshared)
            )
        return Decision(result=PutResult(row, refs, decision.logged), **decision.writer.written(), checkpoints=changes)

    def _replaced(self, found: CheckpointsSeen) -> StoredCheckpoint | None:
        """The parent, if this one replaces it. A checkpoint that a user's graph put on the same thread stays."""
        parent = found.parent
        if not self.replaces_turn or parent is None or parent.state != CheckpointState.VISIBLE:
            return None
        metadata = self.serde.loads_typed(tuple(ormsgpack.unpackb(parent.metadata)))
        is_of_turn = parent.run_id is not None and metadata.get(TURN_KEY) == parent.run_id
        return parent if is_of_turn and not metadata.get(DELTA_COUNTERS) else None

    def _check(self, found: CheckpointsSeen) -> None:
        if (self.needs_parent or self.with_writes) and _existing_parent(found) is None:
            raise StaleDraft
        known = self.matched if self.rewritten is None else self.rewritten
        if unknown := [write for write in self.held(found) if (write.task_id, write.idx) not in known]:
            raise StaleDraft(unknown)

    def held(self, found: CheckpointsSeen) -> list[StoredWrite]:
        """The writes on the parent that hold messages, including those that are stored with it."""
        held = [*found.held, *(write for write in self.with_writes if write.is_held)]
        return sorted(held, key=attrgetter("task_path", "task_id", "idx"))

    def _row(self, seen: IntentInputs, found: CheckpointsSeen, writer: BranchWriter) -> StoredCheckpoint:
        return StoredCheckpoint(
            number=found.thread.made + 1 if found.own is None else found.own.number,
            namespace=self.namespace,
            id=self.id,
            parent_id=self.parent_id,
            run_id=self.run_id,
            state=CheckpointState.VISIBLE,
            log_count=seen.head.entry_count + len(writer.entries),
            branch=writer.branch.number,
            leaf_seq=writer.branch.leaf_seq,
            leaf_depth=writer.branch.leaf_depth,
            body=b"",
            metadata=self.metadata,
        )


def _existing_parent(found: CheckpointsSeen) -> StoredCheckpoint | None:
    parent = found.parent
    return None if parent is None or parent.state == CheckpointState.AWAITED else parent


class _PutDecision:
    """One decision being made: what is new in the list is logged, then the messages in the writes become references."""

    def __init__(self, put: PutCheckpoint, seen: IntentInputs, found: CheckpointsSeen, now: int) -> None:
        self._put = put
        self._seen = seen
        self._found = found
        self._unlisted_refs: dict[int, MessageRef] = {}
        self.blobs: Blobs = {}
        self.logged: dict[MessageRef, tuple[str, StoredMessage]] = {}
        fork = self._fork()
        branch = self._parent_branch(now) if fork is None else _fork_branch(seen, *fork, now)
        self._edited = None if fork is None else self._first_edit(branch, now)
        if self._edited is not None and fork is not None:
            original = self._edited[1]
            branch = _fork_branch(seen, fork[0], original.parent_seq or 0, original.depth - 1, now)
        self._is_fork = fork is not None
        room = len(put.items) + len(put.removed) + sum(len(one.messages) for one in put.matched.values())
        self.writer = BranchWriter(seen, branch, now, room)

    def _fork(self) -> tuple[BranchRow, int, int] | None:
        """Leave the path where the parent stands, if that is not its end."""
        parent = _existing_parent(self._found)
        if parent is None or self._put.namespace or parent.branch not in self._seen.branches or self._put.is_silent:
            return None
        branch = self._seen.branches[parent.branch]
        is_at_end = parent.number == self._found.thread.tip or branch.leaf_seq == parent.leaf_seq
        return None if is_at_end else (branch, parent.leaf_seq, parent.leaf_depth)

    def _parent_branch(self, now: int) -> BranchRow:
        """The parent's branch; without a parent the active one, or a new one after a deletion."""
        parent, active = _existing_parent(self._found), self._seen.branches[self._seen.head.active]
        if self._put.is_silent and not self._found.thread.is_closed:
            return active
        if parent is not None and not self._put.namespace:
            return self._seen.branches.get(parent.branch, active)
        if self._found.thread.is_closed and active.leaf_seq and not self._put.namespace:
            return new_branch(self._seen, None, 0, 0, now)
        return active

    def _first_edit(self, branch: BranchRow, now: int) -> tuple[int, entries.Entry] | None:
        """The first changed message: on a fork that is an edit, and the path it leaves keeps the original."""
        path = BranchWriter(self._seen, branch, now, 0)
        for position, item in enumerate(self._put.items):
            known = path.known(item.prepared.id) if item.prepared is not None and item.ref is None else None
            if known is None or known.kind != entries.Kind.MESSAGE or item.prepared is None:
                continue
            if not says_the_same(item.prepared, known):
                if any(later.prepared is None for later in self._put.items[position:]):
                    raise StaleDraft
                return position, known
        return None

    def follow(self) -> list[MessageRef]:
        """Write what is new; give where each message of the list stands."""
        for one in self._held_messages():
            if one.prepared is not None and one.list_index is None:
                self._unlisted_refs[id(one.part)] = self._write(one.prepared, *one.part)
        refs = [*self._put.known_refs, *(self._follow_one(index, item) for index, item in enumerate(self._put.items))]
        if self._put.removed and not self._is_fork:
            self._mark_removed(refs)
        return refs

    def _held_messages(self) -> Iterator[MatchedMessage]:
        if self._put.rewritten is None:
            for write in self._put.held(self._found):
                yield from self._put.matched[write.task_id, write.idx].messages

    def _follow_one(self, position: int, item: ListedMessage) -> MessageRef:
        is_after_edit = self._edited is not None and position > self._edited[0]
        if item.ref is not None and not is_after_edit:
            return item.ref
        assert item.prepared is not None
        assert item.stored is not None
        if self._edited is not None and position == self._edited[0]:
            receipt = self.writer.edit(item.prepared, self._edited[1])
            return self._reference(receipt.seq, item.prepared.id, item.stored)
        return self._write(self._with_free_id(item, item.prepared), item.message, item.stored)

    def _with_free_id(self, item: ListedMessage, prepared: Prepared) -> Prepared:
        """The message under a free id: one without an id of its own that the log has, but not the list before, is a
        new message."""
        known = self.writer.known(prepared.id)
        is_another = item.spare_id is not None and known is not None and known.seq <= self._put.log_count
        return prepared._replace(id=item.spare_id or prepared.id) if is_another else prepared

    def _write(self, prepared: Prepared, message: BaseMessage, stored: StoredMessage) -> MessageRef:
        receipt = self.writer.write(prepared)
        known = self.writer.known(prepared.id)
        if known is not None and known.raw != prepared.raw and not isinstance(stored, SerdeBytes):
            stored = SerdeBytes(*self._put.serde.dumps_typed(message))
        return self._reference(receipt.seq, prepared.id, stored)

    def _reference(self, seq: int, id: str, stored: StoredMessage) -> MessageRef:
        """To an entry; with the serializer's bytes where the entry's own do not give the message back."""
        ref: MessageRef = LogRef(seq, None, pack_blob(*stored, self.blobs)) if isinstance(stored, SerdeBytes) else seq
        self.logged[ref] = (id, stored)
        return ref

    def _mark_removed(self, refs: Sequence[MessageRef]) -> None:
        known_refs = {ref if isinstance(ref, int) else ref.seq for ref in refs if not isinstance(ref, UnloggedRef)}
        revised = {entry.place_seq for entry in self.writer.entries}
        self.writer.remove(
            entry
            for entry in self._seen.by_seq.values()
            if entry.kind == entries.Kind.MESSAGE and entry.seq not in known_refs and entry.place_seq not in revised
        )

    def rewrite_held(self, refs: Sequence[MessageRef], blobs: Blobs) -> list[StoredWrite]:
        """The writes on the parent, with references in the place of their messages."""
        if self._put.rewritten is not None:
            return [self._put.rewritten[write.task_id, write.idx] for write in self._found.held]
        return [self._with_references(write, refs, blobs) for write in self._found.held]

    def rewrite_joined(self, refs: Sequence[MessageRef], blobs: Blobs) -> list[StoredWrite]:
        """The writes that are stored with it, with references from the beginning."""
        if not self._put.with_writes:
            return []
        assert self._found.parent is not None
        number = self._found.parent.number
        writes = [
            self._with_references(write, refs, blobs) if write.is_held else write for write in self._put.with_writes
        ]
        return [write._replace(checkpoint=number) for write in writes]

    def _with_references(self, write: StoredWrite, refs: Sequence[MessageRef], blobs: Blobs) -> StoredWrite:
        matched = self._put.matched[write.task_id, write.idx]
        references = [self._reference_to(one, refs, blobs) for one in matched.messages]
        return with_references(write, matched.held, references, blobs)

    def _reference_to(self, one: MatchedMessage, refs: Sequence[MessageRef], blobs: Blobs) -> MessageRef | None:
        if one.list_index is not None:
            return refs[one.list_index] if one.listed == one.part.stored else None
        if one.prepared is None:
            return UnloggedRef(pack_blob(*one.part.stored, blobs)) if isinstance(one.part.stored, SerdeBytes) else None
        return self._unlisted_refs[id(one.part)]


def _fork_branch(seen: IntentInputs, branch: BranchRow, seq: int, depth: int, now: int) -> log.BranchRow:
    """A new branch that shares a branch's path up to a message on it."""
    owner = next((one.branch for one in segments(seen.branches, branch.number) if one.after < seq <= one.last), None)
    return new_branch(seen, owner, seq if owner is not None else 0, depth if owner is not None else 0, now)


HeldKey = tuple[int, str, int]
"""A write by its checkpoint's number, its task and its index."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PutWrites:
    """Writes of one task on a checkpoint, which may come before the checkpoint itself."""

    namespace: str
    id: str
    writes: Sequence[StoredWrite]
    blobs: Mapping[bytes, bytes] = field(default_factory=dict)

    def needs(self) -> Needs:
        return Needs(checkpoints=CheckpointNeeds(namespace=self.namespace, id=self.id))

    def decide(self, seen: IntentInputs, now: int) -> Decision[None]:
        found = seen.checkpoints
        assert found is not None
        own = found.own
        put: list[StoredCheckpoint] = []
        thread = None
        if own is None:
            thread = found.thread._replace(made=found.thread.made + 1)
            state = int(CheckpointState.AWAITED)
            own = StoredCheckpoint(thread.made, self.namespace, self.id, None, None, state, 0, 0, 0, 0, b"", b"")
            put.append(own)
        writes = [write._replace(checkpoint=own.number) for write in self.writes]
        changes = CheckpointChanges(thread=thread, put=put, writes=writes, blobs=self.blobs)
        return Decision(result=None, checkpoints=changes)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearCheckpoints:
    """Log the messages that are still held in writes, then remove the checkpoints that `remove` names."""

    matched: Mapping[HeldKey, MatchedWrite]
    remove: Callable[[CheckpointsSeen], CheckpointChanges]
    besides: Collection[str | None] = ()
    """Checkpoints whose held writes are left alone."""

    def needs(self) -> Needs:
        ready = [one.prepared for wait in self.matched.values() for one in wait.messages if one.prepared is not None]
        return Needs(
            ids=list(dict.fromkeys(message.id for message in ready)),
            every_revision=True,
            every_branch=True,
            checkpoints=CheckpointNeeds(everything=True),
        )

    def decide(self, seen: IntentInputs, now: int) -> Decision[None]:
        found = seen.checkpoints
        assert found is not None
        spared = {row.number for row in found.all if row.id in self.besides}
        held = [write for write in found.held if write.checkpoint not in spared]
        unknown = [write for write in held if (write.checkpoint, write.task_id, write.idx) not in self.matched]
        if unknown:
            raise StaleDraft(unknown, {row.number: row for row in found.all})
        writer = self._writer(seen, found, now)
        blobs: Blobs = {}
        writes = [self._with_references(write, writer, seen, blobs) for write in held]
        changes = self.remove(found)
        return Decision(
            result=None,
            **writer.written(),
            checkpoints=_merge_changes(changes, found, writer, writes, blobs),
        )

    def _writer(self, seen: IntentInputs, found: CheckpointsSeen, now: int) -> BranchWriter:
        """At the end of the branch that the newest root checkpoint stands on."""
        tip = next((row for row in found.all if row.number == found.thread.tip), None)
        number = seen.head.active if tip is None or tip.branch not in seen.branches else tip.branch
        room = sum(len(one.messages) for one in self.matched.values())
        return BranchWriter(seen, seen.branches[number], now, room)

    def _with_references(
        self, write: StoredWrite, writer: BranchWriter, seen: IntentInputs, blobs: Blobs
    ) -> StoredWrite:
        matched = self.matched[write.checkpoint, write.task_id, write.idx]
        refs = [_reference_or_log(one, writer, seen, blobs) for one in matched.messages]
        return with_references(write, matched.held, refs, blobs)


def _reference_or_log(one: MatchedMessage, writer: BranchWriter, seen: IntentInputs, blobs: Blobs) -> MessageRef | None:
    """The reference to a message that the log has anywhere; else log it at the end."""
    if one.prepared is None:
        return None
    elsewhere = next((e for e in seen.revisions.get(one.prepared.id, ()) if e.raw == one.prepared.raw), None)
    seq = writer.write(one.prepared).seq if elsewhere is None else elsewhere.seq
    known = writer.known(one.prepared.id) if elsewhere is None else elsewhere
    if isinstance(one.part.stored, SerdeBytes):
        return LogRef(seq, None, pack_blob(*one.part.stored, blobs))
    return seq if known is not None and known.raw == one.prepared.raw else None


def _merge_changes(
    changes: CheckpointChanges,
    found: CheckpointsSeen,
    writer: BranchWriter,
    writes: Sequence[StoredWrite],
    blobs: Blobs,
) -> CheckpointChanges:
    """Add what was logged to the removal; the tip is behind it now."""
    dropped = set(changes.drop)
    put = {row.number: row for row in changes.put}
    tip = put.get(found.thread.tip) or next((row for row in found.all if row.number == found.thread.tip), None)
    if writer.entries and tip is not None and tip.number not in dropped and tip.branch == writer.branch.number:
        branch = writer.branch
        put[tip.number] = tip._replace(leaf_seq=branch.leaf_seq, leaf_depth=branch.leaf_depth)
    return CheckpointChanges(
        thread=changes.thread,
        put=list(put.values()),
        settled=[write for write in writes if write.checkpoint not in dropped],
        blobs=blobs,
        drop=changes.drop,
        drop_blobs=[digest for digest in changes.drop_blobs if digest not in blobs],
    )
