"""What callers hold: messages, receipts, branches, pages, hits, reports."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any, NamedTuple, TypeVar, overload

from everthread.core import payloads
from everthread.core.clock import from_micros
from everthread.core.entries import Entry, Flag, Kind
from everthread.core.errors import StoreDamaged

T = TypeVar("T", covariant=True)
_DELETED, _PINNED, _SECRET = int(Flag.DELETED), int(Flag.PINNED), int(Flag.SECRET)
"""As numbers: `&` with a flag makes a flag, at twenty times the cost, three times for each message that is shown."""


class Ref(NamedTuple):
    """A conversation's address. The owner is in it, so it is in every query."""

    owner: str
    id: str


class Receipt(NamedTuple):
    """What became of one message of an append."""

    id: str
    seq: int
    """The seq of the entry that holds this content."""
    revision: int
    """1 for a message first seen, 2 and up for a revision of it."""
    new: bool
    """False when the very same message was there already."""


class Message:
    """One message of the history: exactly what came in, and what can be read off it."""

    def __init__(self, entry: Entry, place: Entry | None = None) -> None:
        self.entry = entry
        """The entry that holds this revision."""
        self._place = place or entry

    def __repr__(self) -> str:
        return f"<Message {self.seq} {self.role} {self.id} {self.text[:40]!r}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Message) and (self.entry, self._place) == (other.entry, other._place)

    def __hash__(self) -> int:
        return hash((self.entry.chain, self._place.chain))

    @property
    def seq(self) -> int:
        """Its place in the order. It rises through a branch; a revision keeps the place of its message."""
        return self._place.seq

    @property
    def entry_seq(self) -> int:
        """The seq of the entry that holds this revision; equal to `seq` for a message never revised."""
        return self.entry.seq

    @property
    def id(self) -> str:
        return self.entry.id

    @property
    def role(self) -> str:
        """`user`, `assistant`, `system`, `tool`, or the caller's own word."""
        return self.entry.role

    @property
    def raw(self) -> bytes:
        """The first bytes received; empty once erased."""
        return self.entry.raw or b""

    @cached_property
    def payload(self) -> dict[str, Any]:
        """What came in."""
        if self.entry.raw is None and not self.entry.is_erased:
            raise StoreDamaged(f"the payload of entry {self.entry.seq} is missing: run verify, restore the blobs")
        try:
            decoded: dict[str, Any] = json.loads(self.entry.raw) if self.entry.raw else {}
        except ValueError as problem:
            raise StoreDamaged(f"entry {self.entry.seq} does not hold what was written: run verify") from problem
        return decoded

    @cached_property
    def text(self) -> str:
        """The text of the content; `""` where there is none."""
        return payloads.text(self.payload)

    @property
    def name(self) -> str | None:
        """The speaker or the tool, by the message itself."""
        return payloads.name(self.payload)

    @property
    def said_at(self) -> datetime | None:
        """When it was said, by the message's own `created_at`."""
        return payloads.said_at(self.payload)

    @property
    def tokens(self) -> int:
        """Counted once, with the o200k vocabulary."""
        return self.entry.tokens

    @property
    def created_at(self) -> datetime:
        """When the store took it."""
        return from_micros(self._place.created_at)

    @property
    def updated_at(self) -> datetime:
        """When it was last revised, deleted, restored or pinned."""
        return from_micros(self._place.updated_at or self.entry.created_at)

    @property
    def parent_seq(self) -> int | None:
        """The message before it on its branch."""
        return self._place.parent_seq

    @property
    def revision(self) -> int:
        return self.entry.revision

    @property
    def is_deleted(self) -> bool:
        return bool(self._place.flags & _DELETED)

    @property
    def is_pinned(self) -> bool:
        return bool(self._place.flags & _PINNED)

    @property
    def is_erased(self) -> bool:
        return self.entry.is_erased

    @property
    def has_secret(self) -> bool:
        """Whether something in it looked like a credential when it came in. The message is never altered."""
        return bool(self.entry.flags & _SECRET)

    @property
    def is_summary(self) -> bool:
        """Whether a framework put it into its state as a summary; such entries are not shown as history."""
        return self.entry.kind == Kind.SUMMARY


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationInfo:
    """A conversation's row, as it was when read."""

    owner: str
    id: str
    parent_id: str | None
    title: str | None
    metadata: Mapping[str, Any]
    is_active: bool
    off_record: bool
    created_at: datetime
    updated_at: datetime
    deleted_at: datetime | None
    entry_count: int
    """Entries in the log, marks and revisions included; also the seq of the newest one."""
    chain: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """One path through a conversation, from its first message to a leaf."""

    id: str
    """`main`, or a name that stays the same while the branch grows."""
    leaf_seq: int
    """Its newest message; 0 while it has none."""
    fork_seq: int
    """The last message it shares with the branch it left; 0 when it shares none."""
    is_active: bool
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Page(Sequence[T]):
    """One page of a longer list: a sequence of its items, and the cursor that the next page begins with.

    page = await et.conversations.list(limit=50)
    while page.next_cursor is not None:
        page = await et.conversations.list(limit=50, cursor=page.next_cursor)
    """

    items: Sequence[T]
    next_cursor: str | None
    """None on the last page."""

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...
    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        return self.items[index]

    def __len__(self) -> int:
        return len(self.items)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One message that a search found."""

    conversation_id: str
    seq: int
    id: str
    snippet: str
    score: float


@dataclass(frozen=True, slots=True)
class Hits(Sequence[Hit]):
    """Search results, best first."""

    items: tuple[Hit, ...]
    truncated: bool = False
    """True when there were more candidates than were ranked: the newest ones were taken."""
    by_meaning: bool = False
    """Whether likeness in meaning took part, as was asked for; words always do."""
    why_words_alone: str | None = None
    """Why meaning took no part though it was asked for, and what to do about it."""
    is_behind: bool = False
    """Whether some messages of the conversation could not be found by meaning yet."""

    @overload
    def __getitem__(self, index: int) -> Hit: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Hit, ...]: ...
    def __getitem__(self, index: int | slice) -> Hit | tuple[Hit, ...]:
        return self.items[index]

    def __len__(self) -> int:
        return len(self.items)


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """How long a conversation's log is, and the chain at its end: keep it elsewhere to prove nothing was cut."""

    owner: str
    conversation_id: str
    count: int
    chain: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that `verify` found wrong."""

    kind: str
    """gap | payload | blob | chain | head | count | missing | cut | rewritten | projection | checkpoint"""
    owner: str
    conversation_id: str
    seq: int | None
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyReport:
    """What `verify` looked at and what it found."""

    conversations: int
    entries: int
    messages: int
    erased: int
    problems: Sequence[Problem] = field(default=())

    @property
    def ok(self) -> bool:
        return not self.problems


@dataclass(frozen=True, slots=True, kw_only=True)
class EraseReport:
    """What an erase reached, by table, and what no program can reach from here."""

    owner: str
    conversation_id: str | None
    message_id: str | None
    conversations: int
    entries: int
    reached: Mapping[str, int]
    cannot_reach: Sequence[str]
    erased_at: datetime
    memory_id: str | None = None
    """The one memory that was erased."""
