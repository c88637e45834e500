"""What the memory store keeps: conversations, each with its log and all that belongs to it, what an intent is shown of
one, and what a decision does to it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from everthread.adapters.stores.layout import is_indexed, last_said_at, next_position, revisions_of, uses_in, words_of
from everthread.compaction.summary_chain import summary_chain
from everthread.core.chain import SettingsChange, next_change
from everthread.core.checkpoints import (
    CheckpointChanges,
    CheckpointNeeds,
    CheckpointQuery,
    CheckpointsSeen,
    CheckpointState,
    SavedCheckpoint,
    StoredCheckpoint,
    StoredWrite,
    Thread,
)
from everthread.core.clock import Clock, from_micros, to_micros
from everthread.core.compactions import Compaction
from everthread.core.entries import Entry, Kind, Revision
from everthread.core.errors import DATABASE_CLOSED, NotFound, StoreError
from everthread.core.imports import ImportLine
from everthread.core.log import BranchRow, CompactionQuery, Decision, IdempotencyRecord, IntentInputs, LogHead, Needs
from everthread.core.notes import Use
from everthread.core.nouns import ConversationInfo, Ref
from everthread.core.paths import holds
from everthread.core.ports import CompactionPosition, ListPosition


@dataclass(slots=True)
class CheckpointRows:
    """The checkpoints of one conversation."""

    thread: Thread = field(default_factory=Thread)
    rows: dict[int, StoredCheckpoint] = field(default_factory=dict)
    numbers: dict[tuple[str, str], int] = field(default_factory=dict)
    writes: dict[int, dict[tuple[str, int], StoredWrite]] = field(default_factory=dict)
    blobs: dict[bytes, bytes] = field(default_factory=dict)

    def look(self, needs: CheckpointNeeds) -> CheckpointsSeen:
        """Read what an intent about checkpoints needs."""
        if needs.everything:
            writes = [write for number in sorted(self.writes) for write in self._ordered(number)]
            return CheckpointsSeen(
                thread=self.thread,
                held=[write for write in writes if write.is_held],
                all=[self.rows[number] for number in sorted(self.rows)],
                writes=writes,
                digests=list(self.blobs),
                chunks={digest: body for digest, body in self.blobs.items() if body[0] >= 128},
            )
        parent = self._one(needs.namespace, needs.parent_id)
        return CheckpointsSeen(
            thread=self.thread,
            own=self._one(needs.namespace, needs.id),
            parent=parent,
            held=[] if parent is None else self._held_writes(parent.number),
        )

    def _one(self, namespace: str, id: str | None) -> StoredCheckpoint | None:
        number = None if id is None else self.numbers.get((namespace, id))
        return None if number is None else self.rows[number]

    def _ordered(self, number: int) -> list[StoredWrite]:
        kept = self.writes.get(number, {}).values()
        return sorted(kept, key=lambda write: (write.task_path, write.task_id, write.idx))

    def _held_writes(self, number: int) -> list[StoredWrite]:
        return [write for write in self._ordered(number) if write.is_held]

    def apply(self, changes: CheckpointChanges) -> None:
        """Write what was decided."""
        for number in changes.drop:
            self._drop(number)
        for digest in changes.drop_blobs:
            self.blobs.pop(digest, None)
        self.blobs.update(changes.blobs)
        for row in changes.put:
            self.rows[row.number] = row
            self.numbers[row.namespace, row.id] = row.number
        for write in changes.writes:
            kept = self.writes.setdefault(write.checkpoint, {})
            if write.idx < 0 or (write.task_id, write.idx) not in kept:
                kept[write.task_id, write.idx] = write
        for write in changes.settled:
            self.writes[write.checkpoint][write.task_id, write.idx] = write
        for digest in changes.drop_unshared_blobs if len(self.rows) == 1 else ():
            self.blobs.pop(digest, None)
        self.thread = changes.thread or self.thread

    def _drop(self, number: int) -> None:
        row = self.rows.pop(number)
        del self.numbers[row.namespace, row.id]
        self.writes.pop(number, None)

    def read(self, namespace: str, id: str | None) -> SavedCheckpoint | None:
        """One checkpoint, or the newest."""
        if id is None:
            shown = [row for row in self.rows.values() if row.namespace == namespace and not row.state]
            row = max(shown, key=lambda row: row.id, default=None)
        else:
            row = self._one(namespace, id)
        return None if row is None else self._saved(row)

    def _saved(self, row: StoredCheckpoint) -> SavedCheckpoint:
        return SavedCheckpoint(row, self._ordered(row.number), self.thread)

    def listed(self, query: CheckpointQuery, conversation: str) -> Iterator[SavedCheckpoint]:
        """Return the checkpoints that match a query, in its order."""
        shown = [row for row in self.rows.values() if row.state == CheckpointState.VISIBLE]
        shown.sort(key=lambda row: row.id, reverse=True)
        shown.sort(key=lambda row: row.namespace)
        for row in shown:
            is_meant = query.namespace in (None, row.namespace) and query.id in (None, row.id)
            if is_meant and (query.before is None or row.id < query.before) and _follows(row, query, conversation):
                yield self._saved(row)

    def ancestors(self, namespace: str, id: str, limit: int) -> list[SavedCheckpoint]:
        """Return a checkpoint and its ancestors."""
        found: list[SavedCheckpoint] = []
        row = self._one(namespace, id)
        while row is not None and len(found) < limit:
            found.append(self._saved(row))
            row = self._one(namespace, row.parent_id)
        return found

    def is_of(self, run_ids: Sequence[str] | None) -> bool:
        """Whether it has checkpoints of these runs or, with None, held messages."""
        if run_ids is None:
            return any(write.is_held for kept in self.writes.values() for write in kept.values())
        return any(row.run_id in run_ids for row in self.rows.values())

    def forget(self, traces: Sequence[bytes] | None) -> Counter[str]:
        """Destroy everything, or what holds some bytes."""
        before = self._counts()
        self.thread = self.thread._replace(erasures=self.thread.erasures + 1)
        for number, row in list(self.rows.items()):
            if traces is None or any(trace in row.body or trace in row.metadata for trace in traces):
                self._drop(number)
        for kept in self.writes.values():
            for key, write in list(kept.items()):
                if traces is None or any(trace in write.value for trace in traces):
                    del kept[key]
        for digest, body in list(self.blobs.items()):
            if traces is None or any(trace in body for trace in traces):
                del self.blobs[digest]
        before.subtract(self._counts())
        return before

    def _counts(self) -> Counter[str]:
        writes = sum(len(kept) for kept in self.writes.values())
        return Counter(checkpoints=len(self.rows), writes=writes, blobs=len(self.blobs))


def _follows(row: StoredCheckpoint, query: CheckpointQuery, conversation: str) -> bool:
    """Whether a checkpoint comes after the position where the page begins."""
    if query.after is None or conversation > query.after[0]:
        return True
    _, namespace, id = query.after
    is_further = row.namespace > namespace or (row.namespace == namespace and row.id < id)
    return conversation == query.after[0] and is_further


@dataclass(slots=True)
class ConversationRow:
    """A conversation with its log and everything that belongs to it."""

    number: int
    info: ConversationInfo
    is_erased: bool = False
    active: int = 0
    compaction_check_at: int = 0
    changes: list[SettingsChange] = field(default_factory=list)
    branches: dict[int, BranchRow] = field(default_factory=dict)
    entries: list[Entry] = field(default_factory=list)
    words: dict[int, frozenset[str]] = field(default_factory=dict)
    answers: dict[str, IdempotencyRecord] = field(default_factory=dict)
    compactions: dict[str, Compaction] = field(default_factory=dict)
    policy: bytes | None = None
    manifests: dict[str, bytes] = field(default_factory=dict)
    prompts: dict[str, bytes] = field(default_factory=dict)
    checkpoints: CheckpointRows = field(default_factory=CheckpointRows)
    lines: dict[int, ImportLine] = field(default_factory=dict)
    uses: dict[Use, tuple[int, int]] = field(default_factory=dict)
    """How often, and when last."""

    @property
    def position(self) -> ListPosition:
        """Its place in lists."""
        return next_position(self.number, self.info)

    @property
    def head(self) -> LogHead:
        info = self.info
        state = (self.active, self.is_erased, info.off_record, self.compaction_check_at)
        return LogHead(info.owner, info.id, len(self.entries), info.chain, *state)

    def by_id(self, id: str) -> list[Entry]:
        return [entry for entry in self.entries if entry.id == id and entry.kind != Kind.MARK]

    def by_seq(self, seqs: Sequence[int]) -> list[Entry]:
        return [self.entries[seq - 1] for seq in seqs if 1 <= seq <= len(self.entries)]

    def intent_inputs(self, needs: Needs) -> IntentInputs:
        """Read what an intent needs, except turns, which are stored elsewhere."""
        named = [entry for id in needs.ids for entry in self.by_id(id)]
        return IntentInputs(
            head=self.head,
            branches=dict(self.branches),
            by_id={entry.id: entry for entry in named if entry.change_kind != Revision.STUB},
            by_seq={entry.seq: entry for entry in self.by_seq(needs.seqs)},
            answer=self.answers.get(needs.idempotency_key) if needs.idempotency_key is not None else None,
            compactions=self.compactions_for(needs.compactions) if needs.compactions else (),
            since=self.entries[needs.since :] if needs.since is not None else (),
            checkpoints=None if needs.checkpoints is None else self.checkpoints.look(needs.checkpoints),
            revisions=revisions_of(named) if needs.every_revision else {},
        )

    def compactions_for(self, query: CompactionQuery) -> Sequence[Compaction]:
        """Return the compactions that match a query, oldest first."""
        in_use = {one.id for one in summary_chain(self.compactions.values(), query.path)}
        return [
            one
            for one in sorted(self.compactions.values(), key=age)
            if one.id in in_use or one.id in query.ids or (query.over is not None and _touches(one, *query.over))
        ]

    def _is_newer(self, line: ImportLine) -> bool:
        """Of two watchers, the one that has read more of the file wins."""
        known = self.lines.get(line.seq)
        return known is None or known[:3] != line[:3] or len(known.line) < len(line.line)

    def apply(self, decision: Decision[Any], now: int) -> None:
        """Apply a decision, except its turns and jobs, which are stored elsewhere."""
        for entry in decision.entries:
            self.entries.append(entry)
            if is_indexed(entry, off_record=self.info.off_record):
                self.words[entry.seq] = frozenset(words_of(entry, self.info.owner).split(" "))
        for use, count in (uses_in(decision.entries) if not self.info.off_record else {}).items():
            self.uses[use] = (self.uses.get(use, (0, 0))[0] + count, decision.entries[-1].created_at)
        for touch in decision.touches:
            old = self.entries[touch.seq - 1]
            self.entries[touch.seq - 1] = old._replace(
                newest_seq=old.newest_seq if touch.newest_seq is None else touch.newest_seq,
                flags=int((old.flags | touch.set_flags) & ~touch.clear_flags),
                updated_at=touch.updated_at,
                commitment=touch.commitment or old.commitment,
            )
        self.branches.update({branch.number: branch for branch in decision.branches})
        for seq in decision.changed:
            self._invalidate(seq, from_micros(now))
        for compaction in decision.compactions:
            self.compactions[compaction.id] = compaction
        if decision.checkpoints is not None:
            self.checkpoints.apply(decision.checkpoints)
        if decision.answer is not None:
            self.answers[decision.answer.key] = decision.answer
        self.lines.update({line.seq: line for line in decision.lines if self._is_newer(line)})
        self.active = self.active if decision.active is None else decision.active
        self.compaction_check_at = (
            self.compaction_check_at if decision.compaction_check_at is None else decision.compaction_check_at
        )
        if decision.entries or decision.active is not None:
            said_at = last_said_at(decision.entries)
            new = None if said_at is None else from_micros(said_at)
            self.info = replace(
                self.info,
                entry_count=len(self.entries),
                chain=decision.chain or self.info.chain,
                updated_at=from_micros(now),
                message_count=self.branches[self.active].leaf_depth,
                last_said_at=max((at for at in (self.info.last_said_at, new) if at is not None), default=None),
            )

    def note_change(self, now: int) -> None:
        """Commit to what the row says now."""
        before = self.changes[-1] if self.changes else None
        self.blank_changes()
        self.changes.append(next_change(before, self.info, now))

    def blank_changes(self) -> None:
        """Destroy the salts of what it said before."""
        self.changes = [change._replace(salt=None) for change in self.changes]

    def _invalidate(self, seq: int, at: datetime) -> None:
        for id, compaction in self.compactions.items():
            if compaction.invalid_at is None and holds(self.branches, compaction, self.entries[seq - 1]):
                self.compactions[id] = replace(compaction, invalid_at=at)


def _touches(compaction: Compaction, after: int, last: int) -> bool:
    return compaction.invalid_at is None and compaction.last_seq >= after and compaction.after_seq <= last


def age(compaction: Compaction) -> CompactionPosition:
    """By which compactions are in order."""
    return CompactionPosition(compaction.created_at, compaction.id)


class InMemoryDatabase:
    """The conversations of all owners, and the clock: what the store's ports work with."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.is_open = False
        self._rows: dict[Ref, ConversationRow] = {}

    @property
    def rows(self) -> dict[Ref, ConversationRow]:
        """StoreError when the store is closed."""
        if not self.is_open:
            raise StoreError(DATABASE_CLOSED)
        return self._rows

    def now(self) -> int:
        return to_micros(self.clock())

    def row(self, ref: Ref) -> ConversationRow:
        """Return a conversation. Raises NotFound when it does not exist or was erased."""
        row = self.row_or_tombstone(ref)
        if row.is_erased:
            raise NotFound(f"no conversation {ref.id!r}")
        return row

    def row_or_tombstone(self, ref: Ref) -> ConversationRow:
        """Return a conversation, also an erased one. Raises NotFound when it never existed."""
        row = self.rows.get(ref)
        if row is None:
            raise NotFound(f"no conversation {ref.id!r}")
        return row

    def living(self, owner: str, conversation: str | None, *, with_children: bool = False) -> Sequence[ConversationRow]:
        """An owner's conversations, or one of them, also with those of its subagents, oldest first."""
        family = {conversation}
        for ref, row in self.rows.items() if with_children else ():  # a parent is older than its children
            if ref.owner == owner and row.info.parent_id is not None and row.info.parent_id in family:
                family.add(ref.id)
        return [
            row
            for ref, row in self.rows.items()
            if ref.owner == owner and not row.is_erased and (conversation is None or ref.id in family)
        ]

    def erased_seqs(self, ref: Ref) -> frozenset[int]:
        return frozenset(entry.seq for entry in self.row(ref).entries if entry.is_erased)
