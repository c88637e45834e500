"""What callers hold: messages, receipts, branches, pages, hits, reports."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any, Final, Literal, NamedTuple, TypeVar, overload

from everthread.core import payloads
from everthread.core.clock import from_micros
from everthread.core.entries import Entry, EntryOrigin, Flag, Kind
from everthread.core.errors import StoreDamaged

MAX_PAGE: Final = 1000
"""The most that one page of any list holds."""

T = TypeVar("T", covariant=True)
_DELETED, _PINNED, _SECRET = int(Flag.DELETED), int(Flag.PINNED), int(Flag.SECRET)
_QUARANTINED, _REMOVED = int(Flag.QUARANTINED), int(Flag.REMOVED)
"""As numbers: `&` with a flag makes a flag, at twenty times the cost, three times for each message that is shown."""


class Ref(NamedTuple):
    """The address of a conversation: its owner and its id.

    ```python
    for job in (await et.jobs()).jobs:
        print(job.ref.owner, job.ref.id, job.kind)
    ```
    """

    owner: str
    id: str


class Receipt(NamedTuple):
    """What became of one message of an `append`.

    ```python
    (receipt,) = await conv.append({"role": "user", "content": "Hello", "id": "m1"})
    print(receipt.seq, "stored" if receipt.new else "was there already")
    ```
    """

    id: str
    seq: int
    """The seq of the log entry that holds this content."""
    revision: int
    """1 for a new message, 2 and up for a revision."""
    new: bool
    """False when the same message was already there."""


class Message:
    """One message of the history: exactly what was appended, and what can be read from it.

    ```python
    async for message in conv.messages():
        print(message.seq, message.role, message.text)
    ```
    """

    def __init__(self, entry: Entry, place: Entry | None = None) -> None:
        self._entry = entry
        """The entry that holds this revision."""
        self._place = place or entry

    def __repr__(self) -> str:
        return f"<Message {self.seq} {self.role} {self.id} {self.text[:40]!r}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Message) and (self._entry, self._place) == (other._entry, other._place)

    def __hash__(self) -> int:
        return hash((self._entry.chain, self._place.chain))

    @property
    def seq(self) -> int:
        """Its position in the conversation. It rises along a branch; a revision keeps that of its message."""
        return self._place.seq

    @property
    def entry_seq(self) -> int:
        """The seq of the entry that holds this revision; equal to `seq` for a message never revised."""
        return self._entry.seq

    @property
    def id(self) -> str:
        """The id it was appended with, or the one it was given."""
        return self._entry.id

    @property
    def role(self) -> str:
        """`user`, `assistant`, `system`, `tool`, or the caller's own word."""
        return self._entry.role

    @property
    def raw(self) -> bytes:
        """The bytes as they were first received; empty once erased."""
        return self._entry.raw or b""

    @cached_property
    def payload(self) -> dict[str, Any]:
        """The message as a dict, with every field it was appended with."""
        if self._entry.raw is None and not self._entry.is_erased:
            raise StoreDamaged(f"the payload of entry {self._entry.seq} is missing: run verify, restore the blobs")
        try:
            decoded: dict[str, Any] = json.loads(self._entry.raw) if self._entry.raw else {}
        except ValueError as problem:
            raise StoreDamaged(f"entry {self._entry.seq} is damaged: run verify") from problem
        return decoded

    @cached_property
    def text(self) -> str:
        """The text of the content; `""` where there is none."""
        return payloads.text(self.payload)

    @property
    def name(self) -> str | None:
        """The name of the speaker or the tool, if the message has one."""
        return payloads.name(self.payload)

    @property
    def said_at(self) -> datetime | None:
        """When it was said, according to the message's own `created_at`; None if it has none."""
        return payloads.said_at(self.payload)

    @property
    def tokens(self) -> int:
        """How many tokens it counts to, in OpenAI's o200k vocabulary."""
        return self._entry.tokens

    @property
    def created_at(self) -> datetime:
        """When it was stored."""
        return from_micros(self._place.created_at)

    @property
    def updated_at(self) -> datetime:
        """When it was last revised, deleted, restored or pinned."""
        return from_micros(self._place.updated_at or self._entry.created_at)

    @property
    def parent_seq(self) -> int | None:
        """The `seq` of the message before it on its branch; None for the first."""
        return self._place.parent_seq

    @property
    def revision(self) -> int:
        """1 for the original, 2 and up for revisions of it."""
        return self._entry.revision

    @property
    def is_deleted(self) -> bool:
        """Whether it is hidden from history (`Conversation.delete_message`)."""
        return bool(self._place.flags & _DELETED)

    @property
    def is_pinned(self) -> bool:
        """Whether it always stays in the model's view (`Conversation.pin`)."""
        return bool(self._place.flags & _PINNED)

    @property
    def is_quarantined(self) -> bool:
        """Whether it was taken out of every view, because it is not to be trusted (`Conversation.quarantine`)."""
        return bool(self._place.flags & _QUARANTINED)

    @property
    def is_removed(self) -> bool:
        """Whether the framework or program it was captured from took it out of its own state, as LangGraph's
        `RemoveMessage` does. History goes on showing it."""
        return bool(self._place.flags & _REMOVED)

    @property
    def origin(self) -> str:
        """Which door it came through: `user`, `model`, `own_tool`, `outside_tool`, `import` or `subagent`; `unknown`
        for what was written before that was kept. The door sets it, never the message."""
        return EntryOrigin(self._entry.origin).name.lower()

    @property
    def is_erased(self) -> bool:
        """Whether its text was destroyed (`Everthread.erase`)."""
        return self._entry.is_erased

    @property
    def has_secret(self) -> bool:
        """Whether something that looks like a credential was seen in it when it was written. The message itself is
        never altered; what is shown of it elsewhere is masked by today's patterns, whatever this says."""
        return bool(self._entry.flags & _SECRET)

    @property
    def is_summary(self) -> bool:
        """Whether a framework wrote it into its state as a summary; such messages are not shown as history."""
        return self._entry.kind == Kind.SUMMARY


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationInfo:
    """A conversation's row in the database, as it was when it was last read.

    ```python
    info = (await conv.refresh()).info
    print(info.title, info.entry_count, info.deleted_at)
    ```
    """

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
    """How many entries the log has, marks and revisions included; also the seq of the newest one."""
    chain: bytes
    message_count: int = 0
    """How many messages its active branch has, deleted ones included."""
    last_said_at: datetime | None = None
    """When its newest message was said: imported ones were, long before they were stored. None before the first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """One path through a conversation, from its first message to its newest.

    ```python
    await conv.edit("m1", {"role": "user", "content": "A new start."})
    async for branch in conv.branches():
        print(branch.id, branch.leaf_seq, "active" if branch.is_active else "")
    ```
    """

    id: str
    """`main`, or a generated name that stays the same as the branch grows."""
    leaf_seq: int
    """The seq of its newest message; 0 while it has none."""
    fork_seq: int
    """The seq of the last message it shares with the branch it came from; 0 if it shares none."""
    is_active: bool
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Page(Sequence[T]):
    """One page of a longer list: a sequence of items, and the cursor of the next page.

    ```python
    page = await et.conversations.list(limit=50)
    while page.next_cursor is not None:
        page = await et.conversations.list(limit=50, cursor=page.next_cursor)
    ```
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


MatchStrength = Literal["strong", "weak"]
"""How much of what was asked for a hit has: most of it, or a part."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One message that a search found.

    ```python
    for hit in await et.search("allergy"):
        print(hit.conversation_id, hit.seq, hit.snippet)
    ```
    """

    conversation_id: str
    seq: int
    id: str
    snippet: str
    score: float
    match: MatchStrength = "strong"
    """`strong` if the message has all the words; by meaning, if it has much of the question. Else `weak`."""


@dataclass(frozen=True, slots=True)
class Hits(Sequence[Hit]):
    """The results of a search, best first, and how they were found.

    ```python
    hits = await conv.search("what can she not eat", meaning=True)
    print(len(hits), "by meaning too" if hits.by_meaning else hits.why_words_alone)
    ```
    """

    items: tuple[Hit, ...]
    truncated: bool = False
    """Whether there were more matches than could be ranked; only the newest were."""
    by_meaning: bool = False
    """Whether meaning was searched too, as requested; words always are."""
    why_words_alone: str | None = None
    """Why meaning was not searched although requested, and what to do about it."""
    is_behind: bool = False
    """Whether some messages are not indexed by meaning yet."""

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
    """The length of a conversation's log and the hash at its end. Kept elsewhere, it proves that nothing was cut off.

    ```python
    heads = await et.heads()  # store these outside of the database
    report = await et.verify(against=heads)
    ```
    """

    owner: str
    conversation_id: str
    count: int
    chain: str
    changes: int = 0
    """How often its title, metadata or state was set, and …"""
    changes_chain: str = ""
    """… the hash at the end of that chain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that `Everthread.verify` found wrong.

    ```python
    for problem in (await et.verify()).problems:
        print(problem.kind, problem.conversation_id, problem.seq, problem.detail)
    ```
    """

    kind: str
    """gap | payload | blob | chain | head | count | missing | cut | rewritten | projection | settings | checkpoint"""
    owner: str
    conversation_id: str
    seq: int | None
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyReport:
    """What `Everthread.verify` checked and what it found.

    ```python
    report = await et.verify()
    print(report.entries, "entries,", "ok" if report.ok else report.problems)
    ```
    """

    conversations: int
    entries: int
    messages: int
    erased: int
    problems: Sequence[Problem] = field(default=())

    @property
    def ok(self) -> bool:
        """Whether no problem was found."""
        return not self.problems


@dataclass(frozen=True, slots=True, kw_only=True)
class EraseReport:
    """What an erasure removed, by table, and what it cannot reach from here, such as backups.

    ```python
    report = await et.erase(conversation="trip", message="m1")
    print(report.entries, dict(report.reached), *report.cannot_reach)
    ```
    """

    owner: str
    conversation_id: str | None
    message_id: str | None
    conversations: int
    entries: int
    reached: Mapping[str, int]
    cannot_reach: Sequence[str]
    erased_at: datetime
    memory_id: str | None = None
    """The memory that was erased, if it was one."""
