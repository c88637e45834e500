"""The ports that adapters implement. Each is a handful of verbs; `Store` has all of them over one database,
as attributes: `store.log.write(…)`, `store.turns.get(…)`.

These docstrings are the specification of a store; tests/contracts runs it on every store. An `Intent` (core/log.py)
tells a store what to write: the store locks the conversation's row before it shows the intent what it asked for, and
holds the lock until the commit, so concurrent writers of one conversation take turns.

The verbs of `conversations`, `log` and `views` that take a `Ref` raise NotFound when the owner has no such
conversation, or when it was erased. Only `log.write` and `log.scan` also reach the tombstones of an erased one.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

from everthread.core.access import ApiKeys
from everthread.core.chain import SettingsChange
from everthread.core.checkpoints import CheckpointQuery, CheckpointsSeen, ListedCheckpoint, SavedCheckpoint
from everthread.core.compactions import Compaction
from everthread.core.embeddings import Vectors
from everthread.core.entries import Entry, seq_of
from everthread.core.imports import Imports
from everthread.core.items import ItemChanges, ItemKey, StoredItem
from everthread.core.jobs import Jobs, NewJob
from everthread.core.log import BranchName, BranchRow, CompactionQuery, Intent, Segment
from everthread.core.notes import Note, NoteChange, NoteQuery, NotesFound, UseCount
from everthread.core.nouns import ConversationInfo, EraseReport, Ref
from everthread.core.queries import Query, Term
from everthread.core.replies import Replies
from everthread.core.timings import Timings
from everthread.core.turns import Turns

R = TypeVar("R")


@dataclass(frozen=True, slots=True, kw_only=True)
class NewConversation:
    """The values of a new conversation's row."""

    owner: str
    id: str
    parent_id: str | None
    title: str | None
    metadata: bytes
    off_record: bool
    created_at: datetime | None = None
    """The original creation time of an imported conversation; None for now."""


class ListPosition(NamedTuple):
    """Where a page of conversations begins: after the conversation with this number, newest first."""

    number: int
    said_at: int = 0
    """In the order `said`: when something was said in that conversation last."""


ListOrder = Literal["created", "said"]
"""In what order conversations are listed: by their creation, or by when something was said in them last. One in which
nothing was said yet has the place of its creation."""


class ConversationRows(Protocol):
    """The conversations' own rows: owner, title, metadata, and whether they are deleted."""

    async def create(self, new: NewConversation) -> ConversationInfo:
        """Create a conversation and return its row. Raises Conflict when the owner already has a conversation with this
        id, Erased when one with this id was erased, and NotFound when the parent does not exist."""

    async def get(self, ref: Ref) -> ConversationInfo:
        """Return a conversation's row, also of a deleted conversation. Raises NotFound when this owner has no
        conversation with this id, or when it was erased."""

    async def list(
        self,
        owner: str,
        *,
        limit: int,
        position: ListPosition | None,
        include_deleted: bool,
        parent_id: str | None,
        order: ListOrder = "created",
    ) -> tuple[Sequence[ConversationInfo], ListPosition | None]:
        """Return a page of the owner's conversations, newest first, and the position of the next page (None after the
        last). With `parent_id`, only that conversation's children. Only pages in the order of creation show each
        conversation whatever is said between them."""

    async def update(self, ref: Ref, changes: Mapping[str, Any]) -> ConversationInfo:
        """Set some of title, metadata (bytes), is_active and deleted_at (datetime or None), and return the new row.
        Raises Invalid for any other field."""

    async def changes(self, ref: Ref, *, after: int, limit: int) -> Sequence[SettingsChange]:
        """Return up to `limit` links of the chain over the conversation's settings with a greater number, in order,
        also of an erased conversation. `create` and `update` add one each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PathQuery:
    """Which messages of one path (a branch from its root to its last message) to read."""

    branch: BranchName = None
    after: int = 0
    """Return only messages whose place has a greater seq."""
    before: int | None = None
    """Return only messages whose place has a smaller seq."""
    limit: int = 500
    newest_first: bool = False
    include_deleted: bool = False


class Log(Protocol):
    """The append-only log of each conversation."""

    defers_token_count: bool
    """Whether writers may leave the tokens of messages `UNCOUNTED`; the store counts them when they are first read."""

    async def write(self, ref: Ref, intent: Intent[R]) -> R:
        """Read what the intent needs, commit what it decides, and return the decision's result, all in one transaction.
        Durable when this returns. Whatever the intent raises is passed on, and nothing is written."""

    async def path(self, ref: Ref, query: PathQuery) -> Sequence[tuple[Entry, Entry]]:
        """Return the messages along a path as pairs (the entry at its place, its newest revision), without erased
        messages."""

    async def find(self, ref: Ref, *, ids: Sequence[str] = (), seqs: Sequence[int] = ()) -> Sequence[Entry]:
        """Return the entries with these message ids (every revision) or these seqs, in order of seq. Marks, unknown ids
        and unknown seqs are left out."""

    async def scan(self, ref: Ref, *, after: int, limit: int, with_tokens: bool = True) -> Sequence[Entry]:
        """Return up to `limit` entries of the log with a greater seq, in order, whatever their kind. With `with_tokens`
        off, tokens may still be `UNCOUNTED`, which saves callers that do not need them the counting."""

    async def framework_entries(self, ref: Ref) -> Sequence[Entry]:
        """Return the entries that record what frameworks did to their own message lists, in order of seq: summaries
        they wrote, and marks for messages they removed."""

    async def origins(self, ref: Ref) -> Sequence[tuple[int, str]]:
        """Return every pair of origin and role that the messages and framework summaries of the log have, on all
        branches, hidden ones too."""

    async def branches(self, ref: Ref) -> tuple[Sequence[BranchRow], int]:
        """Return all branches, oldest first, and the number of the active branch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewInputs:
    """Everything a model view of one path is built from, except the messages; read in one transaction."""

    entry_count: int
    """The number of entries in the log, which is also its last seq."""
    segments: Sequence[Segment]
    """The stretches of the log that make up the path, from its root on."""
    leaf_depth: int
    """The number of messages on the path."""
    summaries: Sequence[Compaction]
    """The summaries that cover the path from its beginning without a gap, oldest first."""
    covered_depth: int
    """The number of messages that these summaries cover."""
    was_undone: bool
    """Whether somebody has undone a compaction of messages after the covered ones."""
    pinned: Sequence[tuple[Entry, Entry]]
    """The newest `MOST_PINNED` pinned messages of the conversation as pairs (the entry at its place, its newest
    revision), in order of seq."""
    policies: tuple[bytes | None, bytes | None]
    """The compaction settings of all conversations and of this conversation, as JSON; None where nothing is set."""
    quarantined: Sequence[tuple[int, int]] = ()
    """The newest `MOST_PINNED` messages of the conversation that were quarantined, as pairs (branch, seq), in order."""


MOST_PINNED = 200
"""The number of pinned messages that a view may show (the newest), and of quarantined ones that it names, so that its
cost is bounded."""


class CompactionPosition(NamedTuple):
    """Where a page of compactions begins: after the compaction with this creation time and id."""

    created_at: datetime
    id: str


PolicyChange = Callable[[bytes | None, bytes | None], bytes | None]
"""Takes the settings of all conversations and the current settings here, and returns the new settings here (JSON); None
removes them."""


class Views(Protocol):
    """What model views are built from besides the log: compactions, compaction settings, and the manifests that record
    what a model was shown."""

    async def inputs(self, ref: Ref, branch: BranchName) -> ViewInputs:
        """Return what a view of this branch is built from, except the messages. Raises NotFound for an unknown
        branch."""

    async def compactions(self, ref: Ref, query: CompactionQuery) -> Sequence[Compaction]:
        """Return the compactions that match the query, oldest first."""

    async def all_compactions(self, ref: Ref, *, after: CompactionPosition | None, limit: int) -> Sequence[Compaction]:
        """Return a page of all the conversation's compactions, including undone and invalid ones, oldest first."""

    async def change_policy(self, ref: Ref | None, change: PolicyChange) -> None:
        """Change the compaction settings of one conversation, or with None those of all. `change` is called inside the
        transaction, so two concurrent changes are both kept. It may be called twice; when it raises, nothing changes.

        After changing one conversation's settings, its next append checks again whether a compaction is due.
        """

    async def policy(self, ref: Ref | None) -> bytes | None:
        """Return the compaction settings of one conversation, or with None those of all, as JSON; None when nothing
        was set."""

    async def keep_manifest(
        self, ref: Ref, id: str, manifest: bytes, shared: Mapping[str, bytes], jobs: Sequence[NewJob] = ()
    ) -> None:
        """Store a manifest (the record of what a model was shown) together with the jobs found due while building it.
        `shared` holds the texts that the manifest refers to by hash; equal texts are stored once."""

    async def prompts(self, ref: Ref, digests: Sequence[str]) -> Mapping[str, bytes]:
        """Return the texts that this conversation's manifests refer to, by hash. Unknown and erased texts are left
        out."""

    async def manifest_ids(self, ref: Ref, *, after: str, limit: int) -> Sequence[str]:
        """Return a page of the ids of the conversation's manifests that are greater than `after`, in order."""

    async def manifest(self, ref: Ref, id: str) -> bytes:
        """Return a stored manifest. Raises NotFound when there is no manifest with this id."""


class Calibrations(Protocol):
    """How far our token counts are from those that each model reports."""

    async def get(self, model: str) -> tuple[float, int] | None:
        """Return the model's factor (its tokens per token of our count) and the number of reports it was learned from,
        or None when there were no reports yet."""

    async def keep(self, model: str, factor: float, samples: int) -> None:
        """Store a model's factor and number of reports. Of two concurrent calls the later one wins."""


class Checkpoints(Protocol):
    """Reads the checkpoints of agent graphs. They are written by intents, through `Log.write`."""

    async def get(self, ref: Ref, namespace: str, id: str | None) -> SavedCheckpoint | None:
        """Return the checkpoint with this id or, with None, the visible checkpoint with the greatest id; None when
        there is no such checkpoint."""

    async def list(self, query: CheckpointQuery) -> Sequence[ListedCheckpoint]:
        """Return the visible checkpoints that match the query, ordered by conversation, namespace and descending
        id."""

    async def all(self, ref: Ref) -> CheckpointsSeen:
        """Return all checkpoints of a conversation, including hidden ones, with their writes and the digests of their
        blobs."""

    async def ancestors(self, ref: Ref, namespace: str, id: str, *, limit: int) -> Sequence[SavedCheckpoint]:
        """Return a checkpoint, its parent, that one's parent and so on, including hidden checkpoints, up to the
        limit."""

    async def blobs(self, ref: Ref, digests: Sequence[bytes]) -> Mapping[bytes, bytes]:
        """Return the blobs with these digests. Unknown digests are left out."""

    async def conversations(self, owner: str | None, *, run_ids: Sequence[str] | None) -> Sequence[Ref]:
        """Return the conversations that have checkpoints of these runs or, with `run_ids=None`, pending writes that
        hold messages. With `owner=None`, those of every owner."""


class Items(Protocol):
    """LangGraph's long-term store: JSON items by namespace and key. Expired items are never returned."""

    async def change(self, owner: str, changes: ItemChanges) -> None:
        """Write a batch of insertions and deletions, and delete expired items."""

    async def get(self, owner: str, keys: Sequence[ItemKey]) -> Sequence[StoredItem]:
        """Return the items with these keys. Unknown keys are left out."""

    async def under(self, owner: str, prefix: str) -> Sequence[StoredItem]:
        """Return all items of a namespace and of the namespaces below it, the most recently written first."""

    async def namespaces(self, owner: str) -> Sequence[str]:
        """Return every namespace that has items, sorted."""


class Notes(Protocol):
    """Notes: an owner's memories and the passages of knowledge documents."""

    async def change(self, owner: str, change: NoteChange[R]) -> R:
        """Read what the change needs, commit what it decides, and return the decision's result, all in one transaction.
        `decide` may be called twice."""

    async def list(self, owner: str, query: NoteQuery) -> Sequence[Note]:
        """Return the notes that match the query, newest first."""

    async def namespaces(self, owner: str, kind: int) -> Mapping[str, int]:
        """Return the number of live notes of a kind in each namespace."""

    async def owners(self) -> Sequence[str]:
        """Return every owner that has notes."""

    async def find(
        self, owner: str, namespaces: Sequence[str], query: Query, *, cap: int, any_word: bool
    ) -> NotesFound:
        """Return the newest `cap` live notes in these namespaces that match the query, newest first. A note matches
        when it has all terms or, with `any_word`, at least one."""

    async def nearest(
        self, owner: str, namespaces: Sequence[str], model: str, vector: bytes, *, limit: int
    ) -> Sequence[tuple[Note, float]]:
        """Return the live notes in these namespaces whose vectors by this model are nearest to `vector`, each with its
        cosine similarity, best first."""

    async def uses(self, owner: str, *, limit: int) -> Sequence[UseCount]:
        """Return the tools and skills that were used most in all conversations of an owner."""


class WordMatch(NamedTuple):
    """A message that matches a search, before ranking."""

    conversation_id: str
    entry: Entry
    entry_key: int
    """The key of the entry (core/entries.py), which serves as its recency: the newer the greater."""


class WordMatches(NamedTuple):
    """The result of a store's search: the newest matches, and how common each query term is."""

    found: Sequence[WordMatch]
    truncated: bool
    """Whether there are more matches than were returned."""
    frequencies: Mapping[str, int]
    """The number of messages that have each query term, counted up to a cap."""
    total: int
    """The approximate number of messages in the searched scope."""
    basis: object = None
    """What the store learned about these words, opaque to the caller; it may pass this on to a follow-up search."""


class Postings(NamedTuple):
    """The messages that have each term of a question."""

    of: Mapping[Term, Sequence[int]]
    """For each term, the key of every entry that has it, ascending."""
    total: int
    """Of one conversation the number of its entries, which is its last seq; else about how many messages there are."""
    truncated: bool
    """Whether some term has more entries than were asked for. The newest are returned."""


class PlacedMessage(NamedTuple):
    """A message in its newest revision, with its position."""

    conversation_id: str
    entry_key: int
    """The key of the entry at its place: within a conversation it rises with seq."""
    branch: int
    depth: int
    """The number of messages on its path up to and including it, so neighbours differ by one."""
    entry: Entry

    @property
    def seq(self) -> int:
        """The seq of its place, under which history shows it."""
        return seq_of(self.entry_key)


class Search(Protocol):
    """Finds messages by words. They are ranked elsewhere: for search in history/search.py, for recall in
    recall/ranking.py."""

    async def matches(
        self, owner: str, conversation: str | None, query: Query, *, cap: int, any_word: bool, basis: object = None
    ) -> WordMatches:
        """Return the newest `cap` messages of this owner (or of one conversation) that match the query, newest first.

        `basis` may be the `WordMatches.basis` of a search made just before with at least all of these words.
        """

    async def postings(self, owner: str, conversation: str | None, terms: Sequence[Term], *, cap: int) -> Postings:
        """Return, for each term, the newest `cap` messages of this owner (or of one conversation) that have it."""

    async def messages(
        self, owner: str, entry_keys: Sequence[int], named: Sequence[tuple[str, int]]
    ) -> Sequence[PlacedMessage]:
        """Return the messages with these keys and at these (conversation id, seq) pairs, in their newest revision,
        each once.

        Left out are entries that are not messages, belong to another owner, were deleted or erased, or do not exist.
        """


class Maintenance(Protocol):
    """Operations on the whole database: erasing, statistics, blob clean-up, backup."""

    async def heads(self) -> Sequence[ConversationInfo]:
        """Return the rows of all conversations of all owners, including erased ones, oldest first."""

    async def newest_changes(self) -> Mapping[Ref, SettingsChange]:
        """Return the newest link of each conversation's chain over its settings. Older conversations have none."""

    async def erase(self, owner: str, conversation: str | None, message: str | None) -> EraseReport:
        """Erase everything of an owner, one conversation, or one message: destroy text and salt, leave tombstones, and
        record the erasure. A message id without a conversation names a memory. Raises NotFound when the conversation,
        message or memory does not exist."""

    async def erasures(self) -> Sequence[tuple[str, str | None, str | None, datetime]]:
        """Return every recorded erasure as (owner, conversation, message, time), oldest first."""

    async def stats(self) -> Mapping[str, int]:
        """Return counts and sizes in bytes, by name."""

    async def payload_blobs(self) -> Mapping[str, int]:
        """Return the names of the blobs that hold payloads, with their sizes in bytes."""

    async def blob_at(self, ref: Ref, seq: int) -> str | None:
        """Return the name of the blob that holds an entry's payload, or None when the payload is in the database."""

    async def delete_unused_blobs(self, names: Sequence[str]) -> int:
        """Delete the blobs among these that no payload refers to, and return how many. Waits for transactions that are
        about to refer to one."""

    async def backup(self, target: Path) -> None:
        """Write a consistent copy of the database to `target` while it is in use. Raises StoreError where the store has
        no backups (memory)."""


class Store(Protocol):
    """One database, with each port as an attribute."""

    can_block: bool
    """Whether a caller outside an event loop may run the store's coroutines in its own thread
    (adapters/stores/blocking.py)."""

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
    def imports(self) -> Imports: ...

    @property
    def notes(self) -> Notes: ...

    @property
    def turns(self) -> Turns: ...

    @property
    def search(self) -> Search: ...

    @property
    def vectors(self) -> Vectors:
        """Vectors in the same database, which an erase deletes in its own transaction."""

    @property
    def jobs(self) -> Jobs:
        """Background jobs. `log.write` and `views.keep_manifest` add them in their own transaction."""

    @property
    def api_keys(self) -> ApiKeys: ...

    @property
    def replies(self) -> Replies: ...

    @property
    def maintenance(self) -> Maintenance: ...

    @property
    def waits(self) -> Timings:
        """How long calls of this process waited before the database served them: SQLite's writes for its one writer,
        PostgreSQL's calls for a connection."""

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def run_reads(self, work: Callable[[], Coroutine[Any, Any, R]]) -> R:
        """Run `work`, which reads this store several times and awaits nothing else, and return its result. Where reads
        run in a thread, all of them share one hop there and back: a hop costs as much as a short read."""
