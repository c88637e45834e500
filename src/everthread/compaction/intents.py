"""Keeping and undoing compactions, as intents: a compaction and its effect on every view commit together.

A compaction is kept only when it follows what is summarised already without hole or overlap, and when nothing inside
it was revised, deleted or restored while the summary was being written. The same span again is nothing new.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from everthread.compaction.policy import AUTOMATIC
from everthread.compaction.summary_chain import on_path, summary_chain
from everthread.core.clock import from_micros
from everthread.core.compactions import Compaction
from everthread.core.entries import Entry, Kind, Mark, Revision
from everthread.core.errors import Conflict, Erased, NotFound
from everthread.core.log import CompactionQuery, Decision, IntentInputs, Needs, Segment
from everthread.core.paths import is_on


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepCompaction:
    """A new compaction of a path that was read when its log had `read_at` entries."""

    compaction: Compaction
    path: Sequence[Segment]
    read_at: int
    entries: Sequence[int] = ()
    """The seqs of the revisions that were read: an erased one leaves no trace in the log to be seen by."""

    def needs(self) -> Needs:
        new = self.compaction
        wanted = CompactionQuery(path=self.path, over=(new.after_seq, new.last_seq))
        return Needs(compactions=wanted, since=self.read_at, seqs=self.entries)

    def decide(self, seen: IntentInputs, now: int) -> Decision[tuple[Compaction, bool]]:
        """The compaction that stands for this span now, and whether that is news."""
        if seen.head.is_erased:
            raise Erased(f"conversation {seen.head.id!r} was erased")
        new = self.compaction
        for known in seen.compactions:
            if known.is_live and _is_same(known, new):
                return Decision(result=(known, False))
        if any(self._is_touched_by(entry) for entry in seen.since) or any(
            one.is_erased for one in seen.by_seq.values()
        ):
            raise Conflict("a message changed while its summary was being written; nothing was kept: compact again")
        if not self._fits(seen.compactions):
            raise Conflict("another compaction came first; nothing was kept")
        if new.trigger in AUTOMATIC and any(
            one.undone_at is not None and _is_same(one, new) for one in seen.compactions
        ):
            raise Conflict("the same compaction was undone while it was being made; nothing was kept")
        kept = replace(new, created_at=from_micros(now))
        retired = [replace(other, invalid_at=from_micros(now)) for other in self._overlapping(seen.compactions)]
        return Decision(result=(kept, True), compactions=[*retired, kept])

    def _is_touched_by(self, entry: Entry) -> bool:
        """Whether the stretch may say something else since; a mark does not name its branch, so one may be too many."""
        new = self.compaction
        if entry.revises is None or not new.first_seq <= entry.revises <= new.last_seq:
            return False
        if entry.kind == Kind.MARK:
            return entry.change_kind in (Mark.DELETED, Mark.RESTORED)
        return entry.change_kind == Revision.REPLACE and is_on(self.path, entry.branch, entry.revises)

    def _fits(self, known: Sequence[Compaction]) -> bool:
        summaries = summary_chain(known, self.path)
        if self.compaction.children:
            ids = [compaction.id for compaction in summaries]
            return all(child in ids for child in self.compaction.children)
        return (summaries[-1].last_seq if summaries else 0) == self.compaction.after_seq

    def _overlapping(self, known: Sequence[Compaction]) -> list[Compaction]:
        """Summaries that were cut off from the chain when a message before them changed: the new one replaces them."""
        new = self.compaction
        if new.children:
            return []
        return [
            one for one in on_path(known, self.path) if one.after_seq < new.last_seq and one.last_seq > new.after_seq
        ]


def _is_same(one: Compaction, other: Compaction) -> bool:
    """Whether they stand for the very same revisions."""
    return (one.level, one.after_seq, one.span_hash) == (other.level, other.after_seq, other.span_hash)


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoCompaction:
    """The former view back: the newest summary of the chain goes, and what it stood for is shown again."""

    id: str
    stretch: tuple[int, int]
    """What it stands for, as read before: the seq before its first message and that of its last. It never changes."""

    def needs(self) -> Needs:
        return Needs(compactions=CompactionQuery(ids=[self.id], over=self.stretch))

    def decide(self, seen: IntentInputs, now: int) -> Decision[Compaction]:
        by_id = {compaction.id: compaction for compaction in seen.compactions}
        target = by_id.get(self.id)
        if target is None:
            raise NotFound(f"no compaction {self.id!r} in conversation {seen.head.id!r}")
        if not target.is_live:
            return Decision(result=target)
        in_use = [other for other in by_id.values() if other.is_live]
        for other in in_use:
            if self.id in other.children:
                raise Conflict(f"compaction {self.id!r} is part of {other.id!r}, which is in use; undo that one first")
        for other in in_use:
            if not target.children and other.after_seq == target.last_seq:  # undoing a parent leaves its children
                raise Conflict(f"compaction {other.id!r} follows {self.id!r} and is in use; undo that one first")
        undone = replace(target, undone_at=from_micros(now))
        return Decision(result=undone, compactions=[undone])
