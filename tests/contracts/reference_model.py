"""A plain model of the log, for the stateful test: lists of messages, each branch written out in full.

It shares no code with everthread and has no cleverness: a branch is a list, an edit copies a list, a log is a
list that names for each entry the message it is about.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass(eq=False)
class Said:
    """A message, with all it was ever replaced by."""

    id: str
    seq: int
    texts: list[str]
    before: list[Said]
    """Every message before it on its path."""
    entry_seq: int
    revision: int = 1
    is_deleted: bool = False
    is_pinned: bool = False
    is_erased: bool = False

    @property
    def path(self) -> list[Said]:
        return [*self.before, self]


@dataclass(frozen=True)
class Answered:
    """What a key was used for; no body once something of it was erased."""

    body: list[dict[str, str]] | None
    receipts: tuple[tuple[str, int, int, bool], ...]


@dataclass
class Talk:
    """A conversation."""

    id: str
    log: list[tuple[Said, bool]] = field(default_factory=list)
    """For each entry the message it is about, and whether it is a mark."""
    branches: dict[str, list[Said]] = field(default_factory=lambda: {"main": []})
    active: str = "main"
    keys: dict[str, Answered] = field(default_factory=dict)
    is_deleted: bool = False
    is_erased: bool = False

    @property
    def said(self) -> list[Said]:
        """Every message once, erased ones too."""
        return list(dict.fromkeys(message for message, _ in self.log))

    def next_branch(self) -> str:
        return f"b{len(self.branches)}"

    def add(self, branch: str, id: str, text: str) -> Said:
        path = self.branches[branch]
        message = Said(id, len(self.log) + 1, [text], list(path), len(self.log) + 1)
        self.log.append((message, False))
        path.append(message)
        return message

    def replace(self, message: Said, text: str) -> None:
        self.log.append((message, False))
        message.texts.append(text)
        message.revision += 1
        message.entry_seq = len(self.log)

    def edit(self, message: Said, id: str, text: str) -> Said:
        branch = self.next_branch()
        self.branches[branch] = list(message.before)
        sibling = self.add(branch, id, text)
        sibling.revision = message.revision + 1
        return sibling

    def mark(self, message: Said, flag: str, value: bool) -> None:
        if getattr(message, flag) is not value:
            setattr(message, flag, value)
            self.log.append((message, True))

    def erase(self, message: Said) -> None:
        message.is_erased = True
        for key, answered in self.keys.items():
            if any(receipt[0] == message.id for receipt in answered.receipts):
                self.keys[key] = Answered(None, answered.receipts)

    def erased_entries(self) -> int:
        if self.is_erased:
            return len(self.log)
        return sum(message.is_erased and not is_mark for message, is_mark in self.log)

    def message_count(self) -> int:
        return 0 if self.is_erased else sum(not message.is_erased for message in self.said)

    def shown(self, branch: str, *, include_deleted: bool) -> Iterator[Said]:
        for message in self.branches[branch]:
            if not message.is_erased and (include_deleted or not message.is_deleted):
                yield message

    def copied(self, id: str) -> Talk:
        """A talk of its own, without what was erased."""
        copy = Talk(id, active=self.active)
        fresh: dict[Said, Said] = {}
        for message, is_mark in self.log:
            if not message.is_erased:
                fresh.setdefault(message, _fresh(message, len(copy.log) + 1, fresh))
                copy.log.append((fresh[message], is_mark))
                if not is_mark:
                    fresh[message].entry_seq = len(copy.log)
        copy.branches = {name: [fresh[m] for m in path if m in fresh] for name, path in self.branches.items()}
        return copy


def _fresh(message: Said, seq: int, known: dict[Said, Said]) -> Said:
    before = [known[earlier] for earlier in message.before if earlier in known]
    return Said(
        message.id, seq, list(message.texts), before, seq, message.revision, message.is_deleted, message.is_pinned
    )
