"""A log without a store: shows an intent what it needs and writes what it decides, in a few lists.

So the intents are tested as the pure decisions they are. It knows nothing of keys, pages, threads or SQL.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar

from everthread.core.chain import genesis
from everthread.core.entries import Entry, Flag, Kind, Revision
from everthread.core.log import BranchRow, Decision, IdempotencyRecord, Intent, IntentInputs, LogHead
from everthread.history import ingest

R = TypeVar("R")


def prepared(text: str, id: str | None = None) -> ingest.Prepared:
    """A user's message, ready to be written."""
    payload = {"role": "user", "content": text} | ({} if id is None else {"id": id})
    return ingest.prepare(payload, field="message")


@dataclass
class FakeLog:
    """One conversation's log."""

    entries: list[Entry] = field(default_factory=list)
    branches: dict[int, BranchRow] = field(default_factory=dict)
    answers: dict[str, IdempotencyRecord] = field(default_factory=dict)
    active: int = 0
    chain: bytes = field(default_factory=lambda: genesis("local", "c"))
    is_erased: bool = False
    now: int = 0

    def __post_init__(self) -> None:
        main = BranchRow(number=0, parent=None, fork_seq=0, leaf_seq=0, leaf_depth=0, created_at=0)
        self.branches.setdefault(0, main)

    def seen(self, intent: Intent[R]) -> IntentInputs:
        needs = intent.needs()
        shown = self.branches if needs.every_branch else {self.active: self.branches[self.active]}
        return IntentInputs(
            head=LogHead("local", "c", len(self.entries), self.chain, self.active, self.is_erased, False),
            branches=dict(shown),
            by_id={entry.id: entry for entry in self.entries if entry.kind != Kind.MARK and entry.id in needs.ids},
            by_seq={entry.seq: entry for entry in self.entries if entry.seq in needs.seqs},
            answer=self.answers.get(needs.idempotency_key or ""),
        )

    def write(self, intent: Intent[R]) -> R:
        self.now += 1
        return self.apply(intent.decide(self.seen(intent), self.now))

    def apply(self, decision: Decision[R]) -> R:
        self.entries += decision.entries
        for touch in decision.touches:
            old = self.entries[touch.seq - 1]
            self.entries[touch.seq - 1] = old._replace(
                newest_seq=touch.newest_seq or old.newest_seq,
                flags=(old.flags | touch.set_flags) & ~touch.clear_flags,
                updated_at=touch.updated_at,
            )
        self.branches |= {row.number: row for row in decision.branches}
        self.active = self.active if decision.active is None else decision.active
        self.chain = decision.chain or self.chain
        if decision.answer is not None:
            self.answers[decision.answer.key] = decision.answer
        return decision.result

    def erase(self, id: str) -> None:
        for entry in self.entries:
            if entry.id == id and entry.kind != Kind.MARK:
                self.entries[entry.seq - 1] = entry._replace(raw=None, salt=None, flags=entry.flags | Flag.ERASED)

    def places(self) -> list[Entry]:
        return [
            entry for entry in self.entries if entry.kind == Kind.MESSAGE and entry.change_kind in (None, Revision.EDIT)
        ]

    def parents(self, seq: int) -> list[int]:
        """The path up to a message, by following its parents."""
        path: list[int] = []
        while seq:
            path.append(seq)
            seq = self.entries[seq - 1].parent_seq or 0
        return path[::-1]
