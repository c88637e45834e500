"""The intents: everything that may be written to a log, each a pure decision over what the store read (core/log.py).

Append       messages at the end of a branch; a known id with other content becomes a revision
Edit         a sibling of a message, at the start of a new branch
MarkMessage  deleted, restored, pinned, unpinned, quarantined, released
Fork         a new branch that ends at some message
SetActive    which branch is shown and appended to
CopyLog      another conversation's entries, as this one's own (for a copy)
PutJobs      nothing but work for later
CheckCompaction     any of these, and then a look whether the branch is now long enough for a compaction
SetCompactionCheck  how long the branch must grow before that is looked at again
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Generic, TypeVar

from everthread.core.entries import HIDDEN_FLAGS, Entry, Flag, Kind, Mark, Revision
from everthread.core.errors import Conflict, Erased, HeadMoved, Invalid, KeyReused, NotFound
from everthread.core.jobs import COMPACT, IF_AHEAD, NewJob, Priority
from everthread.core.log import (
    BranchName,
    BranchRow,
    Decision,
    IdempotencyRecord,
    Intent,
    IntentInputs,
    Needs,
    Touch,
    named_branches,
)
from everthread.core.nouns import Receipt
from everthread.history.entry_writer import EntryWriter, add, revise
from everthread.history.ingest import Prepared
from everthread.history.stubs import may_be_stub

R = TypeVar("R")

_MARKS = {
    Mark.DELETED: (Flag.DELETED, Flag.NONE),
    Mark.RESTORED: (Flag.NONE, Flag.DELETED),
    Mark.PINNED: (Flag.PINNED, Flag.NONE),
    Mark.UNPINNED: (Flag.NONE, Flag.PINNED),
    Mark.QUARANTINED: (Flag.QUARANTINED, Flag.NONE),
    Mark.RELEASED: (Flag.NONE, Flag.QUARANTINED),
}
"""Which flag a mark sets and which it clears."""
_NOT_AHEAD = 0
"""The `compaction_check_at` of a conversation that is not compacted ahead, or was never checked."""
_AT_NEXT_APPEND = 1


def _check_of_other_branch(seen: IntentInputs) -> int:
    """Where another branch becomes the active one: the mark was of the one before."""
    return _AT_NEXT_APPEND if seen.head.compaction_check_at else _NOT_AHEAD


@dataclass(frozen=True, slots=True, kw_only=True)
class Append:
    """Messages at the end of a branch."""

    messages: Sequence[Prepared]
    branch: BranchName = None
    expected_head: int | None = None
    idempotency_key: str | None = None
    jobs: Sequence[NewJob] = ()
    """Jobs to add when something new is written; none for an off-record conversation."""

    def needs(self) -> Needs:
        return Needs(
            ids=[message.id for message in self.messages if message.has_own_id],
            every_revision=any(message.role == "tool" and may_be_stub(message.payload) for message in self.messages),
            seqs=[self.branch] if isinstance(self.branch, int) else [],
            every_branch=self.branch is not None,
            idempotency_key=self.idempotency_key,
        )

    def decide(self, seen: IntentInputs, now: int) -> Decision[list[Receipt]]:
        if seen.answer is not None:
            return self._same_answer(seen.answer)
        refuse_erased(seen)
        branch = branch_to_extend(seen, self.branch, now)
        writer = EntryWriter(seen, now, len(self.messages))
        touches: list[Touch] = []
        grown = branch
        receipts: list[Receipt] = []
        for message in self.messages:
            known = seen.by_id.get(message.id)
            if known is None:
                grown, receipt = add(message, writer, grown)
            else:
                receipt = revise(message, known, writer, touches, now, stubs_of(seen, message.id))
            receipts.append(receipt)
        if writer.written:
            self._check_head(branch.leaf_seq)
        return Decision(
            result=receipts,
            entries=writer.written,
            texts=writer.texts,
            touches=touches,
            branches=[grown] if grown.leaf_seq != branch.leaf_seq else [],
            chain=writer.chain if writer.written else None,
            answer=self._answer(receipts),
            changed=[touch.seq for touch in touches],
            jobs=self.jobs if writer.written and not seen.head.off_record else (),
        )

    def _check_head(self, leaf: int) -> None:
        if self.expected_head is not None and self.expected_head != leaf:
            raise HeadMoved(
                f"expected the branch to end at seq {self.expected_head}, it ends at {leaf}; nothing was stored: "
                f"read what is new, then append with expected_head={leaf}"
            )

    def _body(self) -> bytes:
        digest = sha256()
        for message in self.messages:
            digest.update(len(message.raw).to_bytes(8, "big"))
            digest.update(message.raw)
        return digest.digest()

    def _answer(self, receipts: list[Receipt]) -> IdempotencyRecord | None:
        if self.idempotency_key is None:
            return None
        return IdempotencyRecord(self.idempotency_key, self._body(), json.dumps(receipts).encode())

    def _same_answer(self, answer: IdempotencyRecord) -> Decision[list[Receipt]]:
        if not answer.body:
            raise Erased(
                f"what was written under the key {self.idempotency_key!r} was erased in part; nothing was stored: "
                "send what is new under a new key"
            )
        if answer.body != self._body():
            raise KeyReused(
                f"{self.idempotency_key!r} was used before for other messages; nothing was stored: use a new key",
                field="idempotency_key",
            )
        return Decision(result=[Receipt(*receipt) for receipt in json.loads(answer.receipts)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """A sibling of a message: same parent, new branch, the original untouched."""

    target: str
    message: Prepared
    activate: bool = True

    def needs(self) -> Needs:
        ids = [self.target, self.message.id] if self.message.has_own_id else [self.target]
        return Needs(ids=ids, every_branch=True)

    def decide(self, seen: IntentInputs, now: int) -> Decision[Receipt]:
        refuse_erased(seen)
        original = _known_message(seen, self.target)
        if self.message.id in seen.by_id:
            raise Conflict(
                f"the id {self.message.id!r} is in this conversation already; an edit is a message of its own: "
                "leave its id out, or give it a new one"
            )
        number = max(seen.branches) + 1
        writer = EntryWriter(seen, now, 1)
        seq = writer.write(
            id=self.message.id,
            kind=Kind.MESSAGE,
            role=self.message.role,
            raw=self.message.raw,
            tokens=self.message.tokens,
            revises=original.place_seq,
            change_kind=Revision.EDIT,
            revision=original.revision + 1,
            parent_seq=original.parent_seq,
            branch=number,
            depth=original.depth,
            flags=self.message.flags,
            origin=self.message.origin,
        )
        fork = original.parent_seq or 0
        branch = BranchRow(number, _branch_holding(seen, original, fork), fork, seq, original.depth, now)
        return Decision(
            result=Receipt(self.message.id, seq, original.revision + 1, True),
            entries=writer.written,
            branches=[branch],
            active=number if self.activate else None,
            chain=writer.chain,
            compaction_check_at=_check_of_other_branch(seen) if self.activate else None,
        )


def _branch_holding(seen: IntentInputs, sibling: Entry, fork: int) -> int | None:
    """The number of the branch that holds the fork point of a sibling: its own one, or an ancestor of that."""
    row: BranchRow | None = seen.branches[sibling.branch]
    while row is not None and fork <= row.fork_seq and row.parent is not None:
        row = seen.branches[row.parent]
    return row.number if row is not None and fork else None


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkMessage:
    """Mark a message as deleted, restored, pinned, unpinned, quarantined or released. Writes nothing when that is so
    already."""

    target: str
    mark: Mark

    def needs(self) -> Needs:
        return Needs(ids=[self.target])

    def decide(self, seen: IntentInputs, now: int) -> Decision[None]:
        refuse_erased(seen)
        newest = _known_message(seen, self.target)
        place = newest.place_seq
        on, off = _MARKS[self.mark]
        if (newest.flags | on) & ~off == newest.flags:
            return Decision(result=None)
        writer = EntryWriter(seen, now, 1)
        raw = json.dumps({"mark": self.mark.name.lower()}).encode()
        writer.write(id=self.target, kind=Kind.MARK, role="", raw=raw, revises=place, change_kind=self.mark)
        touches = [Touch(seq, now, set_flags=on, clear_flags=off) for seq in sorted({place, newest.seq})]
        hides = bool((on | off) & HIDDEN_FLAGS)
        return Decision(
            result=None,
            entries=writer.written,
            touches=touches,
            chain=writer.chain,
            changed=[place] if hides else (),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Fork:
    """Start a new branch at a message; appending to it does not affect the others."""

    at_seq: int
    activate: bool = False

    def needs(self) -> Needs:
        return Needs(seqs=[self.at_seq] if self.at_seq else [], every_branch=True)

    def decide(self, seen: IntentInputs, now: int) -> Decision[tuple[BranchRow, int]]:
        refuse_erased(seen)
        branch = _new_branch(seen, self.at_seq, now)
        active = branch.number if self.activate else None
        return Decision(
            result=(branch, branch.number if self.activate else seen.head.active),
            branches=[branch],
            active=active,
            compaction_check_at=_check_of_other_branch(seen) if self.activate else None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SetActive:
    """Set the active branch, which is shown and appended to by default."""

    branch: BranchName

    def needs(self) -> Needs:
        return Needs(seqs=[self.branch] if isinstance(self.branch, int) else [], every_branch=True)

    def decide(self, seen: IntentInputs, now: int) -> Decision[BranchRow]:
        refuse_erased(seen)
        branch = branch_to_extend(seen, self.branch, now)
        known = branch.number in seen.branches
        return Decision(
            result=branch,
            branches=[] if known else [branch],
            active=branch.number,
            compaction_check_at=_check_of_other_branch(seen),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyLog:
    """Copy another conversation's log into this empty one: same order and branches, new salts and chain."""

    entries: Sequence[Entry]
    branches: Sequence[BranchRow]
    active: int

    def needs(self) -> Needs:
        return Needs()

    def decide(self, seen: IntentInputs, now: int) -> Decision[int]:
        if seen.head.entry_count:
            raise Conflict(f"conversation {seen.head.id!r} has messages already; copy into a new one")
        kept = renumbered(self.entries)
        writer = EntryWriter(seen, now, len(kept))
        moved, depths = {0: 0}, {0: 0}
        for entry in kept:
            parent = _moved_parent(self.entries, moved, entry.parent_seq)
            depth = depths[parent or 0] + 1 if entry.kind == Kind.MESSAGE else 0
            moved[entry.seq] = writer.write(
                id=entry.id,
                kind=Kind(entry.kind),
                role=entry.role,
                raw=entry.raw or b"",
                tokens=entry.tokens,
                revises=moved.get(entry.revises or -1),
                change_kind=entry.change_kind,
                revision=entry.revision,
                parent_seq=parent,
                branch=entry.branch,
                depth=depth,
                flags=entry.flags,
                created_at=entry.created_at,
                origin=entry.origin,
            )
            depths[moved[entry.seq]] = depth
        touches = [
            Touch(moved[entry.seq], entry.updated_at, newest_seq=moved.get(entry.newest_seq or -1))
            for entry in kept
            if entry.updated_at is not None
        ]
        rows = []
        for row in self.branches:
            leaf = _moved_parent(self.entries, moved, row.leaf_seq) or 0
            fork = _moved_parent(self.entries, moved, row.fork_seq) or 0
            rows.append(row._replace(fork_seq=fork, leaf_seq=leaf, leaf_depth=depths[leaf]))
        return Decision(
            result=len(kept),
            entries=writer.written,
            touches=touches,
            branches=rows,
            active=self.active,
            chain=writer.chain,
        )


def renumbered(entries: Sequence[Entry]) -> list[Entry]:
    """Return the entries that a copy gets, in order: all but erased ones and the marks on them."""
    erased = {entry.seq for entry in entries if entry.raw is None}
    return [entry for entry in entries if entry.seq not in erased and (entry.revises not in erased or entry.is_place)]


@dataclass(frozen=True, slots=True, kw_only=True)
class PutJobs:
    """Add jobs that were found due while reading; writes nothing to the log."""

    jobs: Sequence[NewJob]

    def needs(self) -> Needs:
        return Needs()

    def decide(self, seen: IntentInputs, now: int) -> Decision[None]:
        refuse_erased(seen)
        return Decision(result=None, jobs=self.jobs)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckCompaction(Generic[R]):
    """Wraps an intent that may lengthen the active branch: where conversations are compacted ahead, and this one is
    long enough, it adds a job that checks whether a compaction is due."""

    intent: Intent[R]
    every: int
    """By how many messages a conversation grows from one check to the next."""
    ahead: bool
    """Whether conversations are compacted ahead that do not say so themselves."""

    def needs(self) -> Needs:
        return self.intent.needs()

    def decide(self, seen: IntentInputs, now: int) -> Decision[R]:
        decision = self.intent.decide(seen, now)
        head = seen.head
        grown = next((row for row in decision.branches if row.number == head.active), None)
        check_at = head.compaction_check_at or (self.every if self.ahead else _NOT_AHEAD)
        if grown is None or check_at == _NOT_AHEAD or decision.compaction_check_at is not None:
            return decision
        has_grown = grown.leaf_depth != seen.branches[head.active].leaf_depth
        if not has_grown or grown.leaf_depth < check_at:
            return decision
        # The mark moves on at once, so that one job is written and not one for each append until it is done; the job
        # then sets it to where it belongs.
        covered = max(0, head.compaction_check_at - self.every)  # about: what the last job left behind
        job = NewJob(
            kind=COMPACT,
            priority=Priority.WAITED_FOR if _has_open_turn(seen, decision) else Priority.AUTOMATIC,
            size=max(1, grown.leaf_depth - covered),
            details={} if self.ahead else {IF_AHEAD: True},
        )
        return decision._replace(jobs=(job, *decision.jobs), compaction_check_at=grown.leaf_depth + self.every)


def _has_open_turn(seen: IntentInputs, decision: Decision[R]) -> bool:
    """Whether somebody waits for an answer in this conversation once the decision is written."""
    turns = {turn.id: turn for turn in (*seen.turns, *decision.turns)}
    return any(not turn.state.is_final for turn in turns.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class SetCompactionCheck:
    """Record that a compaction is not due before the active branch has this many messages; None where the conversation
    is not compacted ahead, so that it is not checked at all."""

    at_depth: int | None

    def needs(self) -> Needs:
        return Needs()

    def decide(self, seen: IntentInputs, now: int) -> Decision[None]:
        refuse_erased(seen)
        return Decision(result=None, compaction_check_at=_NOT_AHEAD if self.at_depth is None else self.at_depth)


def _moved_parent(entries: Sequence[Entry], moved: Mapping[int, int], seq: int | None) -> int | None:
    """Return the copy's seq for a seq of the original; for an erased entry, that of its nearest copied ancestor."""
    while seq and seq not in moved:
        seq = entries[seq - 1].parent_seq
    return moved[seq] if seq else None


def stubs_of(seen: IntentInputs, id: str) -> list[Entry]:
    """What the log has of stubs for a message, where every revision was asked for."""
    return [entry for entry in seen.revisions.get(id, ()) if entry.change_kind == Revision.STUB]


def refuse_erased(seen: IntentInputs) -> None:
    if seen.head.is_erased:
        raise Erased(f"conversation {seen.head.id!r} was erased; nothing can be written to it again: use a new id")


def _known_message(seen: IntentInputs, id: str) -> Entry:
    known = seen.by_id.get(id)
    if known is None or known.kind != Kind.MESSAGE:
        raise NotFound(f"no message {id!r} in conversation {seen.head.id!r}")
    if known.raw is None:
        raise Erased(f"message {id!r} was erased")
    return known


def branch_to_extend(seen: IntentInputs, name: BranchName, now: int) -> BranchRow:
    """Return the branch that a caller named; a seq in the middle of a path starts a new branch there."""
    if name is None:
        return seen.branches[seen.head.active]
    if isinstance(name, str):
        for row in seen.branches.values():
            if row.id == name:
                return row
        raise NotFound(
            f"no branch {name!r} in conversation {seen.head.id!r}; there are {named_branches(seen.branches.values())}"
        )
    ends_here = [row for row in seen.branches.values() if row.leaf_seq == name]
    if ends_here:
        return next((row for row in ends_here if row.leaf_seq > row.fork_seq), ends_here[0])
    return _new_branch(seen, name, now)


def _new_branch(seen: IntentInputs, at_seq: int, now: int) -> BranchRow:
    number = max(seen.branches) + 1
    if at_seq == 0:
        return BranchRow(number, None, 0, 0, 0, now)
    found = seen.by_seq.get(at_seq)
    if found is None or found.kind != Kind.MESSAGE:
        raise NotFound(f"no message with seq {at_seq} in conversation {seen.head.id!r}")
    if not found.is_place:
        raise Invalid(
            f"entry {at_seq} is a revision of message {found.revises}; fork at {found.revises} instead",
            field="at_seq",
        )
    return BranchRow(number, found.branch, at_seq, at_seq, found.depth, now)


def as_sibling(message: Prepared, target: str, fresh: str) -> Prepared:
    """Give an edit that still carries the id of the original a new id; its bytes stay as received."""
    return message._replace(id=fresh, has_own_id=False) if message.id == target else message
