"""Follows a framework's message list into the log: a new message gets a place, a changed one a revision, a removed one
a mark. Captures bring the whole list every time; only the difference is written.

A message is known to a branch when its place is on the branch's path. The same id elsewhere (on another branch, or
before the thread was deleted and started again) is a different message.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypedDict

from everthread.core.entries import Entry, Flag, Kind, Mark, Revision
from everthread.core.errors import Erased
from everthread.core.log import BranchName, BranchRow, Decision, IntentInputs, Needs, Touch
from everthread.core.nouns import Receipt
from everthread.core.paths import segments
from everthread.history.entry_writer import EntryWriter, add, revise
from everthread.history.ingest import Prepared, counted
from everthread.history.intents import branch_to_extend, refuse_erased, stubs_of


class Written(TypedDict):
    """Fields of a `Decision`."""

    entries: Sequence[Entry]
    texts: Sequence[str | None]
    touches: Sequence[Touch]
    branches: Sequence[BranchRow]
    active: int | None
    chain: bytes | None
    changed: Sequence[int]


class BranchWriter:
    """Collects the entries that bring one branch up to date with a list, as part of a decision."""

    def __init__(self, seen: IntentInputs, branch: BranchRow, now: int, room: int) -> None:
        refuse_erased(seen)
        self._seen = seen
        self._now = now
        self._writer = EntryWriter(seen, now, room)
        self._new: dict[str, Entry] = {}
        self._path = segments({**seen.branches, branch.number: branch}, branch.number)
        self.branch = branch
        self.touches: list[Touch] = []
        self._marks: list[Touch] = []

    @property
    def entries(self) -> Sequence[Entry]:
        return self._writer.written

    def written(self, *, activate: bool = True) -> Written:
        """Return everything written, as the log fields of a `Decision`."""
        is_other = self._seen.head.active != self.branch.number
        return {
            "entries": self._writer.written,
            "texts": self._writer.texts,
            "touches": [*self.touches, *self._marks],
            "branches": [self.branch] if self._seen.branches.get(self.branch.number) != self.branch else [],
            "active": self.branch.number if activate and is_other else None,
            "chain": self._writer.chain if self._writer.written else None,
            "changed": [touch.seq for touch in self.touches],
        }

    def known(self, id: str) -> Entry | None:
        """The newest revision of a message on this path."""
        if id in self._new:
            return self._new[id]
        older = [entry for entry in self._seen.revisions.get(id, ()) if entry.change_kind != Revision.STUB]
        return next((entry for entry in reversed(older) if self._is_on_path(entry)), None)

    def _is_on_path(self, entry: Entry) -> bool:
        if entry.kind != Kind.MESSAGE:
            return True
        return any(one.branch == entry.branch and one.after < entry.place_seq <= one.last for one in self._path)

    def write(self, message: Prepared) -> Receipt:
        """Write a new message, or a revision of a known one; nothing when its content is unchanged."""
        known = self.known(message.id)
        if self._seen.head.off_record:  # which is never indexed, and tokens left to the store are counted there
            message = counted(message)
        if known is None:
            self._refuse_erased(message.id)
            self.branch, receipt = add(message, self._writer, self.branch)
        else:
            stubs = stubs_of(self._seen, message.id)
            receipt = revise(message, known, self._writer, self.touches, self._now, stubs)
        if receipt.new:
            self._new[message.id] = self._writer.written[-1]
        return receipt

    def _refuse_erased(self, id: str) -> None:
        if any(entry.raw is None for entry in self._seen.revisions.get(id, ())):
            raise Erased(f"message {id!r} was erased; a message with its id cannot be written again")

    def edit(self, message: Prepared, original: Entry) -> Receipt:
        """Write a sibling of a message as the first of a new branch; the other branches keep showing the original."""
        seq = self._writer.write(
            id=message.id,
            kind=Kind.MESSAGE,
            role=message.role,
            raw=message.raw,
            tokens=message.tokens,
            revises=original.place_seq,
            change_kind=Revision.EDIT,
            revision=original.revision + 1,
            parent_seq=self.branch.leaf_seq or None,
            branch=self.branch.number,
            depth=self.branch.leaf_depth + 1,
            flags=message.flags,
            origin=message.origin,
        )
        self.branch = self.branch._replace(leaf_seq=seq, leaf_depth=self.branch.leaf_depth + 1)
        self._new[message.id] = self._writer.written[-1]
        return Receipt(message.id, seq, original.revision + 1, True)

    def remove(self, entries: Iterable[Entry]) -> None:
        """Mark messages as removed from the framework's state; history keeps showing them."""
        raw = json.dumps({"mark": Mark.REMOVED.name.lower()}).encode()
        for entry in entries:
            self._writer.write(
                id=entry.id, kind=Kind.MARK, role="", raw=raw, revises=entry.place_seq, change_kind=Mark.REMOVED
            )
            self._marks.append(Touch(entry.place_seq, self._now, set_flags=Flag.REMOVED))


def new_branch(seen: IntentInputs, parent: int | None, fork_seq: int, depth: int, now: int) -> BranchRow:
    """Return a branch that shares its parent's path up to a message or, without a parent, an empty one."""
    return BranchRow(max(seen.branches) + 1, parent, fork_seq, fork_seq, depth, now)


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowList:
    """One state of a framework's list: its messages in order, and the ids of those that were removed."""

    messages: Sequence[Prepared]
    removed: Sequence[str] = ()
    branch: BranchName = None

    def needs(self) -> Needs:
        return Needs(
            ids=[*(message.id for message in self.messages), *self.removed],
            every_revision=True,
            seqs=[self.branch] if isinstance(self.branch, int) else [],
            every_branch=True,
        )

    def decide(self, seen: IntentInputs, now: int) -> Decision[list[Receipt]]:
        branch = branch_to_extend(seen, self.branch, now)
        writer = BranchWriter(seen, branch, now, len(self.messages) + len(self.removed))
        receipts = [writer.write(message) for message in self.messages]
        writer.remove(entry for entry in map(writer.known, self.removed) if entry is not None)
        return Decision(result=receipts, **writer.written(activate=False))
