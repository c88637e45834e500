"""The intents of imports: where in the log a message of another program goes, and what its file has no more.

A message that the log has already, in any of its revisions, is not written again: a file can hold several versions of
it, and is read again as a whole. Other content is a revision, also an older one, where the file has nothing newer any
more. A new message goes after the one that it follows, which
is the end of a branch or starts a new one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from everthread.core.entries import Entry, Flag, Kind, Mark
from everthread.core.imports import ImportLine
from everthread.core.jobs import NewJob
from everthread.core.log import BranchRow, Decision, IntentInputs, Needs, Touch
from everthread.core.nouns import Receipt
from everthread.core.paths import segments
from everthread.history.entry_writer import EntryWriter, add, revise
from everthread.history.ingest import Prepared, says_the_same
from everthread.history.intents import refuse_erased
from everthread.imports.session import START


class Incoming(NamedTuple):
    """A message on its way into the log."""

    message: Prepared
    after: str | None
    first_byte: int | None
    """Where in its file its line begins; None where no line is kept."""
    line: bytes
    is_newest: bool = False
    """Whether its file is known to have no later version of it, so that the log shall show this one."""
    replaces_nothing: bool = False
    """Whether any version that the log has is as good."""


class PlacedCounts(NamedTuple):
    """How many messages of a batch were new, and how many replaced an older version."""

    new: int
    revised: int
    skipped: Sequence[str]
    """The ids of messages that were erased here, and stay erased."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceMessages:
    """Write the messages of an import, with the lines they came from."""

    messages: Sequence[Incoming]
    source: int
    jobs: Sequence[NewJob] = ()

    def needs(self) -> Needs:
        ids = {one.message.id: None for one in self.messages}
        ids.update({one.after: None for one in self.messages if one.after})
        return Needs(ids=list(ids), every_branch=True, every_revision=True)

    def decide(self, seen: IntentInputs, now: int) -> Decision[PlacedCounts]:
        refuse_erased(seen)
        writer = EntryWriter(seen, now, 2 * len(self.messages))
        branches, known = dict(seen.branches), dict(seen.by_id)
        revisions = {id: list(entries) for id, entries in seen.revisions.items()}
        touches: list[Touch] = []
        lines: dict[int, ImportLine] = {}
        skipped: list[str] = []
        active, new, revised = seen.head.active, 0, 0
        removed = _removed(seen)
        for one in self.messages:
            message, after, first_byte, line = one[:4]
            before = known.get(message.id)
            if before is not None and before.raw is not None and before.place_seq in removed:
                removed.remove(before.place_seq)
                _mark(before, Mark.RETURNED, writer)
                touches.append(Touch(before.place_seq, now, clear_flags=Flag.REMOVED))
            if before is None:
                if after == START:
                    branch = _branch_from_start(branches, now)
                else:
                    branch = _branch_after(branches, known.get(after) if after is not None else None, active, now)
                branch, receipt = add(message, writer, branch)
                if message.kind is Kind.MESSAGE:
                    branches[branch.number], active = branch, branch.number
                new += 1
            elif before.raw is None:
                skipped.append(message.id)
                continue
            elif (same := _known_version(one, before, revisions[message.id])) is not None:
                receipt = Receipt(message.id, same.seq, same.revision, False)
            else:
                receipt = revise(message, before, writer, touches, now)
                revised += receipt.new
            if receipt.new:
                known[message.id] = writer.written[-1]
                revisions.setdefault(message.id, []).append(writer.written[-1])
            if first_byte is not None:
                lines[receipt.seq] = ImportLine(receipt.seq, self.source, first_byte, line)
        return Decision(
            result=PlacedCounts(new, revised, skipped),
            entries=writer.written,
            texts=writer.texts,
            touches=touches,
            branches=[row for row in branches.values() if seen.branches.get(row.number) != row],
            active=active if active != seen.head.active else None,
            compaction_check_at=0 if active != seen.head.active else None,
            chain=writer.chain if writer.written else None,
            changed=[touch.seq for touch in touches],
            jobs=self.jobs if writer.written else (),
            lines=list(lines.values()),
        )


def _known_version(one: Incoming, before: Entry, revisions: Sequence[Entry]) -> Entry | None:
    """The version of a message that the log has and need not have again."""
    if one.replaces_nothing:
        return before
    return None if one.is_newest else next((known for known in revisions if says_the_same(one.message, known)), None)


def _removed(seen: IntentInputs) -> set[int]:
    """The places of the messages that are marked as removed."""
    return {one.seq for entries in seen.revisions.values() for one in entries if one.flags & Flag.REMOVED}


def _mark(entry: Entry, mark: Mark, writer: EntryWriter) -> None:
    raw = json.dumps({"mark": mark.name.lower()}).encode()
    writer.write(id=entry.id, kind=Kind.MARK, role="", raw=raw, revises=entry.place_seq, change_kind=mark)


def _branch_from_start(branches: dict[int, BranchRow], now: int) -> BranchRow:
    """The branch on which nothing was said yet; else a new one."""
    empty = next((row for row in branches.values() if row.leaf_seq == 0), None)
    return empty or BranchRow(max(branches) + 1, None, 0, 0, 0, now)


def _branch_after(branches: dict[int, BranchRow], before: Entry | None, active: int, now: int) -> BranchRow:
    """The branch that ends at this message; where another message follows it already, a new one."""
    if before is None or before.kind != Kind.MESSAGE:
        return branches[active]
    place = before.place_seq
    ends = [row for row in branches.values() if row.leaf_seq == place]
    if ends:
        return next((row for row in ends if row.leaf_seq > row.fork_seq), ends[0])
    return BranchRow(max(branches) + 1, before.branch, place, place, before.depth, now)


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkRemoved:
    """Record that a program removed messages from its own file. History goes on showing them."""

    seqs: Sequence[int]

    def needs(self) -> Needs:
        return Needs(seqs=self.seqs)

    def decide(self, seen: IntentInputs, now: int) -> Decision[int]:
        refuse_erased(seen)
        writer = EntryWriter(seen, now, len(self.seqs))
        touches: list[Touch] = []
        for seq in self.seqs:
            entry = seen.by_seq.get(seq)
            if entry is not None and entry.raw is not None:
                _mark(entry, Mark.REMOVED, writer)
                touches.append(Touch(entry.place_seq, now, set_flags=Flag.REMOVED))
        return Decision(
            result=len(writer.written),
            entries=writer.written,
            touches=touches,
            chain=writer.chain if writer.written else None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowLast:
    """Make the branch active that a program shows now: the one with the message that is its last, wherever on it. One
    that has this message already, and others behind it, stays active."""

    id: str

    def needs(self) -> Needs:
        return Needs(ids=[self.id], every_branch=True)

    def decide(self, seen: IntentInputs, now: int) -> Decision[None]:
        refuse_erased(seen)
        entry = seen.by_id.get(self.id)
        if entry is None or entry.kind != Kind.MESSAGE or _has(seen.branches, seen.head.active, entry):
            return Decision(result=None)
        rows = sorted(seen.branches.values(), key=lambda row: (row.leaf_seq != entry.place_seq, row.number))
        branch = next((row.number for row in rows if _has(seen.branches, row.number, entry)), None)
        return Decision(result=None, active=branch, compaction_check_at=None if branch is None else 0)


def _has(branches: Mapping[int, BranchRow], number: int, entry: Entry) -> bool:
    """Whether a message is on the path of a branch."""
    return any(
        stretch.branch == entry.branch and stretch.after < entry.place_seq <= stretch.last
        for stretch in segments(branches, number)
    )
