"""One conversation in memory: its log and all that belongs to it, what an intent is shown of it, and what a decision
does to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from everthread.adapters.stores.layout import is_indexed, revisions_of, uses_in, words_of
from everthread.adapters.stores.memory.checkpoints import Shelf
from everthread.compaction.view import shown
from everthread.core.clock import from_micros
from everthread.core.compactions import Compaction
from everthread.core.entries import Entry, Kind, Revision
from everthread.core.log import Answer, BranchRow, CompactionQuery, Decision, LogHead, Needs, Seen
from everthread.core.notes import Use
from everthread.core.nouns import ConversationInfo
from everthread.core.paths import holds
from everthread.core.ports import CompactionPosition


@dataclass(slots=True)
class Kept:
    """A conversation, as it is kept."""

    number: int
    info: ConversationInfo
    is_erased: bool = False
    active: int = 0
    look_at: int = 0
    branches: dict[int, BranchRow] = field(default_factory=dict)
    entries: list[Entry] = field(default_factory=list)
    words: dict[int, frozenset[str]] = field(default_factory=dict)
    answers: dict[str, Answer] = field(default_factory=dict)
    compactions: dict[str, Compaction] = field(default_factory=dict)
    policy: bytes | None = None
    manifests: dict[str, bytes] = field(default_factory=dict)
    prompts: dict[str, bytes] = field(default_factory=dict)
    shelf: Shelf = field(default_factory=Shelf)
    uses: dict[Use, tuple[int, int]] = field(default_factory=dict)
    """How often, and when last."""

    @property
    def head(self) -> LogHead:
        info = self.info
        state = (self.active, self.is_erased, info.off_record, self.look_at)
        return LogHead(info.owner, info.id, len(self.entries), info.chain, *state)

    def by_id(self, id: str) -> list[Entry]:
        return [entry for entry in self.entries if entry.id == id and entry.kind != Kind.MARK]

    def by_seq(self, seqs: Sequence[int]) -> list[Entry]:
        return [self.entries[seq - 1] for seq in seqs if 1 <= seq <= len(self.entries)]

    def seen(self, needs: Needs) -> Seen:
        """What an intent is shown; turns are kept elsewhere."""
        named = [entry for id in needs.ids for entry in self.by_id(id)]
        return Seen(
            head=self.head,
            branches=dict(self.branches),
            by_id={entry.id: entry for entry in named if entry.how != Revision.STUB},
            by_seq={entry.seq: entry for entry in self.by_seq(needs.seqs)},
            answer=self.answers.get(needs.idempotency_key) if needs.idempotency_key is not None else None,
            compactions=self.compactions_for(needs.compactions) if needs.compactions else (),
            since=self.entries[needs.since :] if needs.since is not None else (),
            checkpoints=None if needs.checkpoints is None else self.shelf.look(needs.checkpoints),
            revisions=revisions_of(named) if needs.every_revision else {},
        )

    def compactions_for(self, query: CompactionQuery) -> Sequence[Compaction]:
        """Those that a question is about, oldest first."""
        told = {one.id for one in shown(self.compactions.values(), query.path)}
        return [
            one
            for one in sorted(self.compactions.values(), key=age)
            if one.id in told or one.id in query.ids or (query.over is not None and _touches(one, *query.over))
        ]

    def apply(self, decision: Decision[Any], now: int) -> None:
        """Do what was decided; turns and jobs are kept elsewhere."""
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
            self.shelf.apply(decision.checkpoints)
        if decision.answer is not None:
            self.answers[decision.answer.key] = decision.answer
        self.active = self.active if decision.active is None else decision.active
        self.look_at = self.look_at if decision.look_at is None else decision.look_at
        if decision.entries or decision.active is not None:
            self.info = replace(
                self.info,
                entry_count=len(self.entries),
                chain=decision.chain or self.info.chain,
                updated_at=from_micros(now),
            )

    def _invalidate(self, seq: int, at: datetime) -> None:
        for id, compaction in self.compactions.items():
            if compaction.invalid_at is None and holds(self.branches, compaction, self.entries[seq - 1]):
                self.compactions[id] = replace(compaction, invalid_at=at)


def _touches(compaction: Compaction, after: int, last: int) -> bool:
    return compaction.invalid_at is None and compaction.last_seq >= after and compaction.after_seq <= last


def age(compaction: Compaction) -> CompactionPosition:
    """By which compactions are in order."""
    return CompactionPosition(compaction.created_at, compaction.id)
