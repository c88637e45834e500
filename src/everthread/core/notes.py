"""Notes: texts that are kept beside the log and found by their words. A memory is one, and so is a passage of a
document. Each is of one owner and lies on a shelf, which is what a search is asked to look through.

They are changed as the log is (core/log.py): a change says what it needs to see, is shown it inside the store's
transaction, and decides, as a pure function, what is written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from hashlib import blake2b
from typing import Generic, NamedTuple, Protocol, TypeVar

R_co = TypeVar("R_co", covariant=True)


class NoteKind(IntEnum):
    """What a note is, by its number in the table."""

    MEMORY = 0
    DOCUMENT = 1
    """What is known of a document as a whole; it has no text of its own."""
    PASSAGE = 2
    MARK = 3
    """How far a conversation was read for memories."""


class NoteState(IntEnum):
    """Where a note stands. Only live ones are found."""

    LIVE = 0
    PAST = 1
    """A newer one took its place."""
    FORGOTTEN = 2


class NoteKey(NamedTuple):
    """What a note is called within its owner's."""

    kind: int
    id: str


class Note(NamedTuple):
    """A note as it is stored."""

    kind: int
    id: str
    shelf: str
    text: str
    record: bytes
    """All else that is known of it, as JSON."""
    created_at: int
    updated_at: int
    topic: str | None = None
    """What it is about, or what it is a part of; notes are looked up by it."""
    state: int = NoteState.LIVE
    past_at: int | None = None
    """Since when a newer one stands in its place."""
    pinned_at: int | None = None
    source_conversation: str | None = None
    source_seq: int | None = None
    """The message it was made from: erasing that one reaches it."""
    model: str | None = None
    """Which embedder made its vector: those of two are never compared."""
    vector: bytes | None = None
    number: int = 0
    """Given by the store; rises with newness."""

    @property
    def key(self) -> NoteKey:
        return NoteKey(self.kind, self.id)

    @property
    def is_found(self) -> bool:
        """Whether a search may find it."""
        return self.state == NoteState.LIVE and bool(self.text)


class Topic(NamedTuple):
    """Notes of one kind on a shelf that are about the same."""

    kind: int
    shelf: str
    topic: str


class MemorySource(NamedTuple):
    """The message that a memory comes from.

    ```python
    memory = await conv.remember("The user lives in Kunming.", seq=1)
    print(memory.source.conversation, memory.source.seq)
    ```
    """

    conversation: str
    seq: int
    """0 for no single message of it."""


class NoteConversation(NamedTuple):
    """A conversation as a change of notes needs to know it."""

    id: str
    parent_id: str | None
    off_record: bool
    entry_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteNeeds:
    """What a change must be shown before it can decide."""

    keys: Sequence[NoteKey] = ()
    topics: Sequence[Topic] = ()
    """Of each the live notes."""
    conversations: Sequence[str] = ()
    sources: Sequence[MemorySource] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NotesSeen:
    """What the store shows: consistent, and nobody else changes this owner's notes until the decision is written."""

    by_key: Mapping[NoteKey, Note] = field(default_factory=dict)
    by_topic: Mapping[Topic, Sequence[Note]] = field(default_factory=dict)
    conversations: Mapping[str, NoteConversation] = field(default_factory=dict)
    """Those that there are; erased ones are not."""
    sources: frozenset[MemorySource] = frozenset()
    """Those that stand in the log and are not erased: no note may outlive its message by being late."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteDecision(Generic[R_co]):
    """What is to be written, all of it or nothing, and what the caller is told."""

    result: R_co
    put: Sequence[Note] = ()
    """Notes to insert or, by kind and id, to replace; text and shelf of one that stands do not change."""
    remove: Sequence[NoteKey] = ()
    remove_topics: Sequence[Topic] = ()
    """Notes to take out for good."""


class NoteChange(Protocol[R_co]):
    """Something that is to happen to an owner's notes."""

    def needs(self) -> NoteNeeds: ...

    def decide(self, seen: NotesSeen, now: int) -> NoteDecision[R_co]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteQuery:
    """Which notes of an owner to read, newest first."""

    kind: int
    shelves: Sequence[str] | None = None
    """None: on any shelf."""
    keys: Sequence[NoteKey] | None = None
    states: Sequence[int] = (NoteState.LIVE,)
    pinned_only: bool = False
    before: int | None = None
    """Only those with a smaller number."""
    limit: int = 1000


class NotesFound(NamedTuple):
    """What a store found for a search: the newest matches, and how common each word is."""

    found: Sequence[Note]
    truncated: bool
    frequencies: Mapping[str, int]
    """Of each term of the query, in how many notes (counted up to a cap)."""
    total: int
    """How many notes lie on the shelves."""


class Use(NamedTuple):
    """That a tool, or a skill, was used."""

    kind: str
    """tool | skill"""
    name: str


class UseCount(NamedTuple):
    """How often one was."""

    kind: str
    name: str
    uses: int
    conversations: int
    last_at: int


def shelf_scope(owner: str, shelf: str) -> str:
    """The word that stands for a shelf of an owner inside a search index: letters and digits only."""
    whose = blake2b(owner.encode(), digest_size=16).digest()
    return "n" + blake2b(shelf.encode(), key=whose, digest_size=10).hexdigest()
