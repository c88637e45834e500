"""Notes: searchable texts stored next to the log. A memory is a note, and so is a passage of a document. Each belongs
to one owner and is in a namespace (the memories of one scope, or one collection's documents or passages), by which a
search is limited. The tables call the namespace `shelf`; a new name for the column would be a migration for nothing.

Notes are changed the way the log is written (core/log.py): a change says what it needs to read, the store reads that
inside its transaction, and the change decides, as a pure function, what to write.
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
    """A document as a whole; its text is in its passages."""
    PASSAGE = 2
    MARK = 3
    """A bookmark: how far a conversation was searched for memories."""


class NoteState(IntEnum):
    """The state of a note. Searches find live notes only."""

    LIVE = 0
    PAST = 1
    """Superseded by a newer note."""
    FORGOTTEN = 2


class NoteKey(NamedTuple):
    """The key of a note among its owner's notes."""

    kind: int
    id: str


class Note(NamedTuple):
    """The row of one note."""

    kind: int
    id: str
    namespace: str
    text: str
    record: bytes
    """The remaining fields of the memory or document, as JSON."""
    created_at: int
    updated_at: int
    topic: str | None = None
    """A memory's subject, or a passage's document; notes can be looked up by it."""
    state: int = NoteState.LIVE
    past_at: int | None = None
    """When it was superseded."""
    pinned_at: int | None = None
    source_conversation: str | None = None
    source_seq: int | None = None
    """The message it was made from; erasing that message erases the note."""
    model: str | None = None
    """The embedder that made the vector; vectors of different embedders are never compared."""
    vector: bytes | None = None
    number: int = 0
    """Assigned by the store; newer notes have greater numbers."""

    @property
    def key(self) -> NoteKey:
        return NoteKey(self.kind, self.id)

    @property
    def is_found(self) -> bool:
        """Whether a search may return it."""
        return self.state == NoteState.LIVE and bool(self.text)


class Topic(NamedTuple):
    """Selects the notes of one kind, in one namespace, with the same topic."""

    kind: int
    namespace: str
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
    """0 when the memory comes from the conversation as a whole."""


class NoteConversation(NamedTuple):
    """The columns of a conversation that a change of notes may need."""

    id: str
    parent_id: str | None
    off_record: bool
    entry_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteNeeds:
    """What a change of notes needs to read before it can decide."""

    keys: Sequence[NoteKey] = ()
    topics: Sequence[Topic] = ()
    """Read the live notes of each topic."""
    conversations: Sequence[str] = ()
    sources: Sequence[MemorySource] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NotesSeen:
    """What the store read for a change: a consistent state. The owner's notes stay locked until the decision is
    written."""

    by_key: Mapping[NoteKey, Note] = field(default_factory=dict)
    by_topic: Mapping[Topic, Sequence[Note]] = field(default_factory=dict)
    conversations: Mapping[str, NoteConversation] = field(default_factory=dict)
    """The requested conversations that exist and are not erased."""
    sources: frozenset[MemorySource] = frozenset()
    """The requested sources that are in the log and not erased. A note made from an erased message must not be
    written, even when its writer started before the erase."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteDecision(Generic[R_co]):
    """What a change decided: the notes to write, in one transaction, and the result for the caller."""

    result: R_co
    put: Sequence[Note] = ()
    """Notes to insert or, by kind and id, to replace; an existing note keeps its text and namespace."""
    remove: Sequence[NoteKey] = ()
    remove_topics: Sequence[Topic] = ()
    """Topics whose notes are deleted."""


class NoteChange(Protocol[R_co]):
    """A change to an owner's notes. `decide` must be pure: a store may call it again."""

    def needs(self) -> NoteNeeds: ...

    def decide(self, seen: NotesSeen, now: int) -> NoteDecision[R_co]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteQuery:
    """Which notes of an owner to read, newest first."""

    kind: int
    namespaces: Sequence[str] | None = None
    """None for all namespaces."""
    keys: Sequence[NoteKey] | None = None
    states: Sequence[int] = (NoteState.LIVE,)
    pinned_only: bool = False
    before: int | None = None
    """Return only notes with a smaller number."""
    limit: int = 1000


class NotesFound(NamedTuple):
    """The result of a search in notes: the newest matches, and how common each query term is."""

    found: Sequence[Note]
    truncated: bool
    frequencies: Mapping[str, int]
    """The number of notes that have each query term, counted up to a cap."""
    total: int
    """The number of notes in the searched namespaces."""


class Use(NamedTuple):
    """One use of a tool or a skill."""

    kind: str
    """tool | skill"""
    name: str


class UseCount(NamedTuple):
    """How often a tool or a skill was used, and in how many conversations."""

    kind: str
    name: str
    uses: int
    conversations: int
    last_at: int


def namespace_scope(owner: str, namespace: str) -> str:
    """The token that represents an owner's namespace in a search index: letters and digits only."""
    whose = blake2b(owner.encode(), digest_size=16).digest()
    return "n" + blake2b(namespace.encode(), key=whose, digest_size=10).hexdigest()
