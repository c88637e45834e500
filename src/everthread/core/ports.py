"""The ports that adapters implement. Each is a handful of verbs; `Store` has all of them over one database,
as attributes: `store.log.write(…)`, `store.turns.get(…)`.

A store is told what to write by an `Intent` (core/log.py); it holds the conversation's row locked from the
look until the commit, so concurrent writers of one conversation take turns there.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

from everthread.core.access import ApiKeys
from everthread.core.checkpoints import CheckpointQuery, CheckpointsSeen, ListedCheckpoint, SavedCheckpoint
from everthread.core.compactions import Compaction
from everthread.core.embeddings import Vectors
from everthread.core.entries import Entry, seq_of
from everthread.core.items import ItemChanges, ItemKey, StoredItem
from everthread.core.jobs import Jobs, NewJob
from everthread.core.log import BranchName, BranchRow, CompactionQuery, Intent, Segment
from everthread.core.notes import Note, NoteChange, NoteQuery, NotesFound, UseCount
from everthread.core.nouns import ConversationInfo, EraseReport, Ref
from everthread.core.queries import Query, Term
from everthread.core.replies import Replies
from everthread.core.turns import Turns

R = TypeVar("R")


@dataclass(frozen=True, slots=True, kw_only=True)
class NewConversation:
    """What a conversation starts with."""

    owner: str
    id: str
    parent_id: str | None
    title: str | None
    metadata: bytes
    off_record: bool
    created_at: datetime | None = None
    """When it was made elsewhere; None: now."""


class ListPosition(NamedTuple):
    """Where a page of conversations begins: after the conversation with this number, newest first."""

    number: int


class ConversationRows(Protocol):
    """The rows that conversations have."""

    async def create(self, new: NewConversation) -> ConversationInfo:
        """Conflict when the owner has one by this id, Erased when it was erased, NotFound for the parent."""

    async def get(self, ref: Ref) -> ConversationInfo:
        """NotFound when this owner has none by this id (or it was erased)."""

    async def list(
        self,
        owner: str,
        *,
        limit: int,
        position: ListPosition | None,
        include_deleted: bool,
        parent_id: str | None,
    ) -> tuple[Sequence[ConversationInfo], ListPosition | None]:
        """Newest first, and where the next page begins. With `parent_id`: its children only."""

    async def update(self, ref: Ref, changes: Mapping[str, Any]) -> ConversationInfo:
        """Set some of: title, metadata (bytes), is_active, deleted_at (datetime or None)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PathQuery:
    """Which messages of one path to read."""

    branch: BranchName = None
    after: int = 0
    """Only places with a greater seq."""
    before: int | None = None
    """Only places with a smaller seq."""
    limit: int = 500
    newest_first: bool = False
    include_deleted: bool = False


class Log(Protocol):
    """Writing and reading one conversation's log."""

    counts_later: bool
    """Whether the tokens of short messages may come in as `UNCOUNTED`, to be counted here, many at once."""

    async def write(self, ref: Ref, intent: Intent[R]) -> R:
        """Show the intent what it needs, and commit what it decides. Durable when this returns."""

    async def path(self, ref: Ref, query: PathQuery) -> Sequence[tuple[Entry, Entry]]:
        """(place, newest revision) of the messages along a path. Erased ones are left out."""

    async def find(self, ref: Ref, *, ids: Sequence[str] = (), seqs: Sequence[int] = ()) -> Sequence[Entry]:
        """Entries by message id (every revision, no marks) or by seq, in order of seq."""

    async def scan(self, ref: Ref, *, after: int, limit: int, is_counted: bool = True) -> Sequence[Entry]:
        """Every entry with a greater seq, in order: the log itself. Who needs no tokens need not have them counted."""

    async def framework_entries(self, ref: Ref) -> Sequence[Entry]:
        """What frameworks did to their own lists, in order: their summaries, and the marks of what they removed."""

    async def branches(self, ref: Ref) -> tuple[Sequence[BranchRow], int]:
        """All branches, oldest first, and the number of the active one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewInputs:
    """What a view of one path is made from, read at one moment."""

    entry_count: int
    """The end of the log at that moment."""
    segments: Sequence[Segment]
    leaf_depth: int
    """How many messages the path has."""
    row: Sequence[Compaction]
    """The summaries that tell the path from its beginning, oldest first."""
    covered_depth: int
    """How many messages of the path they stand for."""
    was_undone: bool
    """Whether a person has undone a compaction of what comes after them."""
    pinned: Sequence[tuple[Entry, Entry]]
    """(place, newest revision) of the newest pinned messages of the conversation, in order."""
    policies: tuple[bytes | None, bytes | None]
    """How compaction is set for the server and for this conversation, as JSON."""


MOST_PINNED = 200
"""Pinned messages that a view takes up, the newest: however many were pinned, a view costs the same."""


class CompactionPosition(NamedTuple):
    """Where a page of compactions begins: after the one made then, by this id."""

    created_at: datetime
    id: str


PolicyChange = Callable[[bytes | None, bytes | None], bytes | None]
"""From what is set for every conversation, and here, to what shall be set here; None takes the setting back."""


class Views(Protocol):
    """What views are made from, beside the log itself."""

    async def inputs(self, ref: Ref, branch: BranchName) -> ViewInputs:
        """Everything but the messages."""

    async def compactions(self, ref: Ref, query: CompactionQuery) -> Sequence[Compaction]:
        """Those that a query names, oldest first."""

    async def all_compactions(self, ref: Ref, *, after: CompactionPosition | None, limit: int) -> Sequence[Compaction]:
        """A page of all there are, undone and invalid ones too, oldest first."""

    async def change_policy(self, ref: Ref | None, change: PolicyChange) -> None:
        """Change how one conversation, or with None every one, is compacted: `change` is asked inside the
        transaction, so that of two at once neither is lost. It may be asked twice; what it raises changes nothing.

        One conversation's next append then looks whether a compaction is due.
        """

    async def policy(self, ref: Ref | None) -> bytes | None:
        """What was set."""

    async def keep_manifest(
        self, ref: Ref, id: str, manifest: bytes, shared: Mapping[str, bytes], jobs: Sequence[NewJob] = ()
    ) -> None:
        """Remember what a model was shown, and what was found to be done when it was; `shared` are the texts it names
        by their hash, kept once."""

    async def prompts(self, ref: Ref, digests: Sequence[str]) -> Mapping[str, bytes]:
        """Texts that manifests of this conversation name, by their hash; what was erased is left out."""

    async def manifest(self, ref: Ref, id: str) -> bytes:
        """What a model was shown; NotFound when nothing was kept by this id."""


class Calibrations(Protocol):
    """How far our counts of tokens are from those of each model."""

    async def get(self, model: str) -> tuple[float, int] | None:
        """The model's tokens per token of our count, and from how many reports; None: nothing is known."""

    async def keep(self, model: str, factor: float, samples: int) -> None:
        """Remember it; of two at once the later stays."""


class Checkpoints(Protocol):
    """Reading the checkpoints of agent graphs; they are written by intents, like the log."""

    async def get(self, ref: Ref, namespace: str, id: str | None) -> SavedCheckpoint | None:
        """One checkpoint, or with None the visible one with the greatest id."""

    async def list(self, query: CheckpointQuery) -> Sequence[ListedCheckpoint]:
        """Visible ones, by conversation, namespace, and id from the greatest on."""

    async def all(self, ref: Ref) -> CheckpointsSeen:
        """Everything about a conversation's checkpoints, shown or not."""

    async def ancestors(self, ref: Ref, namespace: str, id: str, *, limit: int) -> Sequence[SavedCheckpoint]:
        """A checkpoint, its parent, and so on, hidden ones included; as many as there are, up to the limit."""

    async def blobs(self, ref: Ref, digests: Sequence[bytes]) -> Mapping[bytes, bytes]:
        """Bytes by digest; what is not there is left out."""

    async def conversations(self, owner: str | None, *, run_ids: Sequence[str] | None) -> Sequence[Ref]:
        """Conversations that have checkpoints of these runs or, with None, writes that hold messages."""


class Items(Protocol):
    """Documents beside the conversations. What has expired is not there."""

    async def change(self, owner: str, changes: ItemChanges) -> None:
        """Write a batch; and remove what has expired."""

    async def get(self, owner: str, keys: Sequence[ItemKey]) -> Sequence[StoredItem]:
        """Those of these that there are."""

    async def under(self, owner: str, prefix: str) -> Sequence[StoredItem]:
        """All items of a namespace and those below it, the one written last first."""

    async def namespaces(self, owner: str) -> Sequence[str]:
        """Every namespace that has items, in order."""


class Notes(Protocol):
    """Memories and passages of documents."""

    async def change(self, owner: str, change: NoteChange[R]) -> R:
        """Show the change what it needs, and commit what it decides. It may be asked twice."""

    async def list(self, owner: str, query: NoteQuery) -> Sequence[Note]:
        """Those that a query names, newest first."""

    async def shelves(self, owner: str, kind: int) -> Mapping[str, int]:
        """How many live notes of a kind lie on each shelf."""

    async def owners(self) -> Sequence[str]:
        """Every owner that has some."""

    async def find(self, owner: str, shelves: Sequence[str], query: Query, *, cap: int, any_word: bool) -> NotesFound:
        """At most `cap` live notes on these shelves that match, newest first; the cap comes after the filter."""

    async def nearest(
        self, owner: str, shelves: Sequence[str], model: str, vector: bytes, *, limit: int
    ) -> Sequence[tuple[Note, float]]:
        """The live notes on these shelves that are nearest, with their cosine, best first; by this model only."""

    async def uses(self, owner: str, *, limit: int) -> Sequence[UseCount]:
        """The tools and skills that were used most, in all conversations of an owner."""


class Candidate(NamedTuple):
    """A message that matches a search, before ranking."""

    conversation_id: str
    entry: Entry
    order: int
    """Rises with newness, within a conversation by seq."""


class Candidates(NamedTuple):
    """What a store found for a query: the newest matches, and how common each word is."""

    found: Sequence[Candidate]
    truncated: bool
    frequencies: Mapping[str, int]
    """Of each query term, in how many messages (counted up to a cap)."""
    total: int
    """How many messages the scope holds, about."""
    basis: object = None
    """What the store learned of these words, for its own use when some of them are asked for next."""


class Postings(NamedTuple):
    """Where the terms of a question stand."""

    of: Mapping[Term, Sequence[int]]
    """Of each term the entries that have it, by `order`, rising."""
    total: int
    """How many messages the scope holds, about."""
    truncated: bool
    """Whether of some term only the newest entries are told."""


class PlacedMessage(NamedTuple):
    """A message in its newest revision, and its place in the order."""

    conversation_id: str
    order: int
    """Of its place: rises with newness, within a conversation by seq; those of two conversations are far apart."""
    branch: int
    depth: int
    """How many messages its path has up to here: neighbours differ by one."""
    entry: Entry

    @property
    def seq(self) -> int:
        """The seq that history shows it under."""
        return seq_of(self.order)


class Search(Protocol):
    """Finding candidates by words. Ranking is history/search.py's, and for recall recall/ranking.py's."""

    async def candidates(
        self, owner: str, conversation: str | None, query: Query, *, cap: int, any_word: bool, basis: object = None
    ) -> Candidates:
        """At most `cap` matches of this owner (of one conversation), newest first; the cap comes after the filter.

        `basis` is that of the candidates which a question with all of these words has found just before.
        """

    async def postings(self, owner: str, conversation: str | None, terms: Sequence[Term], *, cap: int) -> Postings:
        """Where each of these terms stands in what this owner has (in one conversation), at most `cap` of each."""

    async def messages(
        self, owner: str, orders: Sequence[int], named: Sequence[tuple[str, int]]
    ) -> Sequence[PlacedMessage]:
        """The messages at these orders, and at these seqs of conversations, in their newest revision.

        What is no message, is another owner's, was deleted or erased, or never was, is left out; each comes once.
        """


class Maintenance(Protocol):
    """Looking after the whole."""

    async def heads(self) -> Sequence[ConversationInfo]:
        """Every conversation of every owner, erased ones included, oldest first."""

    async def erase(self, owner: str, conversation: str | None, message: str | None) -> EraseReport:
        """Destroy text and salt, leave tombstones, remember the erasure. A message of no conversation is a memory, by
        its id."""

    async def erasures(self) -> Sequence[tuple[str, str | None, str | None, datetime]]:
        """What was ever erased, oldest first."""

    async def stats(self) -> Mapping[str, int]:
        """Counts and bytes, by name."""

    async def payload_blobs(self) -> Mapping[str, int]:
        """The blobs that payloads are in, and their sizes."""

    async def blob_at(self, ref: Ref, seq: int) -> str | None:
        """The blob that holds the payload of an entry, if one does."""

    async def delete_unused_blobs(self, names: Sequence[str]) -> int:
        """Delete those that no payload is in; how many. Whoever writes one at the same time is waited for."""

    async def backup(self, target: Path) -> None:
        """Write a consistent copy while others go on working."""


class Store(Protocol):
    """One database, as the ports that its users work with."""

    can_block: bool
    """Whether a caller outside of any loop may run its verbs by itself (adapters/stores/blocking.py)."""

    @property
    def conversations(self) -> ConversationRows: ...

    @property
    def log(self) -> Log: ...

    @property
    def views(self) -> Views: ...

    @property
    def calibrations(self) -> Calibrations: ...

    @property
    def checkpoints(self) -> Checkpoints: ...

    @property
    def items(self) -> Items: ...

    @property
    def notes(self) -> Notes: ...

    @property
    def turns(self) -> Turns: ...

    @property
    def search(self) -> Search: ...

    @property
    def vectors(self) -> Vectors:
        """Vectors in the same database, which an erase reaches in its own transaction."""

    @property
    def jobs(self) -> Jobs:
        """What is to be done later; written by `log.write` and `views.keep_manifest`, in their transaction."""

    @property
    def api_keys(self) -> ApiKeys: ...

    @property
    def replies(self) -> Replies: ...

    @property
    def maintenance(self) -> Maintenance: ...

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def run_reads(self, work: Callable[[], Coroutine[Any, Any, R]]) -> R:
        """Run work that reads this store several times and awaits nothing else. Where reads go to a thread, all of them
        make the trip at once: each way there and back costs as much as a short answer."""
