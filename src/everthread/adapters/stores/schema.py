"""The tables, as SQLAlchemy describes them. Only migrations read this; the hot path is SQL by name.

Every table here has an erase rule (`ERASE_RULES`); a test fails when one has none.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    Double,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    Table,
    Text,
    text,
)
from sqlalchemy.types import TypeEngine

metadata = MetaData()

_Number: TypeEngine[int] = BigInteger().with_variant(Integer, "sqlite")
"""SQLite gives numbers by itself only to a column declared INTEGER."""

conversations = Table(
    "conversations",
    metadata,
    Column("number", _Number, primary_key=True, autoincrement=True),
    Column("owner", Text, nullable=False),
    Column("id", Text, nullable=False),
    Column("parent_number", BigInteger),
    Column("title", Text),
    Column("metadata", LargeBinary, nullable=False),
    Column("is_active", SmallInteger, nullable=False),
    Column("off_record", SmallInteger, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    Column("deleted_at", BigInteger),
    Column("erased_at", BigInteger),
    Column("entry_count", Integer, nullable=False),
    Column("chain", LargeBinary, nullable=False),
    Column("active_branch", Integer, nullable=False),
    Column("leaf_seq", BigInteger, nullable=False, server_default="0"),
    Column("leaf_depth", Integer, nullable=False, server_default="0"),
    Column("look_at", Integer, nullable=False, server_default="0"),
    Index("conversations_by_id", "owner", "id", unique=True),
    Index("conversations_by_number", "owner", "number"),
    Index("conversations_by_parent", "parent_number", sqlite_where=text("parent_number IS NOT NULL")),
    sqlite_autoincrement=True,
)

"""`leaf_seq` and `leaf_depth` are those of the active branch; of the others they stand in `branches`."""

branches = Table(
    "branches",
    metadata,
    Column("conversation", BigInteger, primary_key=True, autoincrement=False),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("parent", Integer),
    Column("fork_seq", BigInteger, nullable=False),
    Column("leaf_seq", BigInteger, nullable=False),
    Column("leaf_depth", Integer, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)

entries = Table(
    "entries",
    metadata,
    Column("key", _Number, primary_key=True, autoincrement=False),
    Column("id", Text, nullable=False),
    Column("kind", SmallInteger, nullable=False),
    Column("role", Text, nullable=False),
    Column("revises", BigInteger),
    Column("how", SmallInteger),
    Column("revision", Integer, nullable=False),
    Column("parent_seq", BigInteger),
    Column("branch", Integer, nullable=False),
    Column("depth", Integer, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("tokens", Integer, nullable=False),
    Column("salt", LargeBinary),
    Column("chain", LargeBinary, nullable=False),
    Column("raw", LargeBinary),
    Column("commitment", LargeBinary),
    Column("newest_seq", BigInteger),
    Column("flags", SmallInteger, nullable=False),
    Column("updated_at", BigInteger),
)
Index("entries_by_id", text("(key >> 32)"), entries.c.id)
"""On PostgreSQL; SQLite has `entry_ids` instead."""
Index("entries_pinned", entries.c.key, sqlite_where=text("flags & 2 <> 0"), postgresql_where=text("flags & 2 <> 0"))

_KEPT_OUTSIDE = text("blob IS NOT NULL")
payloads = Table(
    "payloads",
    metadata,
    Column("key", _Number, primary_key=True, autoincrement=False),
    Column("body", LargeBinary, nullable=False),
    Column("blob", Text),
    Column("blob_bytes", BigInteger),
    Column("commitment", LargeBinary),
)
"""Large payloads, or the names of the blobs that hold them; then also what an erase keeps of one it cannot read."""
Index("payloads_by_blob", payloads.c.blob, sqlite_where=_KEPT_OUTSIDE, postgresql_where=_KEPT_OUTSIDE)

doomed_blobs = Table(
    "doomed_blobs",
    metadata,
    Column("name", Text, primary_key=True),
    Column("doomed_at", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)
"""Blobs of what was erased, until they are deleted."""

answers = Table(
    "answers",
    metadata,
    Column("conversation", BigInteger, primary_key=True, autoincrement=False),
    Column("idempotency_key", Text, primary_key=True),
    Column("body", LargeBinary, nullable=False),
    Column("receipts", LargeBinary, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)

erasures = Table(
    "erasures",
    metadata,
    Column("number", _Number, primary_key=True, autoincrement=True),
    Column("owner", Text, nullable=False),
    Column("conversation", Text),
    Column("message", Text),
    Column("erased_at", BigInteger, nullable=False),
    Column("finished_at", BigInteger),
)

compactions = Table(
    "compactions",
    metadata,
    Column("conversation", BigInteger, primary_key=True, autoincrement=False),
    Column("id", Text, primary_key=True),
    Column("first_seq", BigInteger, nullable=False),
    Column("last_seq", BigInteger, nullable=False),
    Column("record", LargeBinary, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("undone_at", BigInteger),
    Column("invalid_at", BigInteger),
    Column("branch", Integer, nullable=False),
    Column("after_seq", BigInteger, nullable=False),
    Column("level", Integer, nullable=False),
    sqlite_with_rowid=False,
)
_LIVE = text("undone_at IS NULL AND invalid_at IS NULL")
_VALID = text("invalid_at IS NULL")
Index(
    "compactions_by_start",
    compactions.c.conversation,
    compactions.c.after_seq,
    compactions.c.level,
    compactions.c.last_seq,
    sqlite_where=_LIVE,
    postgresql_where=_LIVE,
)
Index(
    "compactions_by_end",
    compactions.c.conversation,
    compactions.c.last_seq,
    compactions.c.after_seq,
    sqlite_where=_VALID,
    postgresql_where=_VALID,
)
Index("compactions_by_age", compactions.c.conversation, compactions.c.created_at, compactions.c.id)

policies = Table(
    "policies",
    metadata,
    Column("conversation", BigInteger, primary_key=True, autoincrement=False),
    Column("policy", LargeBinary, nullable=False),
)
"""How a conversation is compacted; the row of number 0 is the server's."""

calibrations = Table(
    "calibrations",
    metadata,
    Column("model", Text, primary_key=True),
    Column("factor", Double, nullable=False),
    Column("samples", BigInteger, nullable=False),
)
"""The tokens of a model per token of our count, and how many reports that is learnt from."""

manifests = Table(
    "manifests",
    metadata,
    Column("conversation", BigInteger, primary_key=True, autoincrement=False),
    Column("id", Text, primary_key=True),
    Column("manifest", LargeBinary, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)
"""What a model was shown, by reference."""

prompts = Table(
    "prompts",
    metadata,
    Column("conversation", BigInteger, primary_key=True, autoincrement=False),
    Column("digest", Text, primary_key=True),
    Column("body", LargeBinary, nullable=False),
    sqlite_with_rowid=False,
)
"""What models were told beside the messages (system prompts, tool schemas), once for all manifests that name it."""


threads = Table(
    "threads",
    metadata,
    Column("conversation", BigInteger, primary_key=True, autoincrement=False),
    Column("made", Integer, nullable=False),
    Column("tip", Integer, nullable=False),
    Column("epoch", Integer, nullable=False),
    Column("is_closed", SmallInteger, nullable=False),
    Column("erasures", Integer, nullable=False),
)
"""What a conversation with checkpoints keeps about them as a whole."""

checkpoints = Table(
    "agent_checkpoints",
    metadata,
    Column("key", _Number, primary_key=True, autoincrement=False),
    Column("namespace", Text, nullable=False),
    Column("id", Text, nullable=False),
    Column("parent_id", Text),
    Column("run_id", Text),
    Column("state", SmallInteger, nullable=False),
    Column("log_count", Integer, nullable=False),
    Column("branch", Integer, nullable=False),
    Column("leaf_seq", BigInteger, nullable=False),
    Column("leaf_depth", Integer, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("metadata", LargeBinary, nullable=False),
)
Index("checkpoints_by_id", text("(key >> 32)"), checkpoints.c.namespace, checkpoints.c.id, unique=True)
Index("checkpoints_by_run", checkpoints.c.run_id, sqlite_where=text("run_id IS NOT NULL"))

writes = Table(
    "agent_writes",
    metadata,
    Column("key", BigInteger, primary_key=True, autoincrement=False),
    Column("task_id", Text, primary_key=True),
    Column("idx", Integer, primary_key=True, autoincrement=False),
    Column("task_path", Text, nullable=False),
    Column("channel", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("value", LargeBinary, nullable=False),
    Column("is_held", SmallInteger, nullable=False),
    sqlite_with_rowid=False,
)
"""What tasks wrote on top of a checkpoint, by the checkpoint's key."""
Index("writes_held", writes.c.key, sqlite_where=text("is_held = 1"))

blobs = Table(
    "blobs",
    metadata,
    Column("conversation", BigInteger, primary_key=True, autoincrement=False),
    Column("digest", LargeBinary, primary_key=True),
    Column("body", LargeBinary, nullable=False),
    sqlite_with_rowid=False,
)
"""Values of checkpoints, by content, shared only within a conversation."""

items = Table(
    "items",
    metadata,
    Column("owner", Text, primary_key=True),
    Column("namespace", Text, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("value", LargeBinary, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger),
    Column("ttl_micros", BigInteger),
    Column("model", Text),
    Column("vectors", LargeBinary),
    sqlite_with_rowid=False,
)
"""Documents that agents keep, by owner, namespace and key."""

notes = Table(
    "notes",
    metadata,
    Column("number", _Number, primary_key=True, autoincrement=True),
    Column("owner", Text, nullable=False),
    Column("kind", SmallInteger, nullable=False),
    Column("id", Text, nullable=False),
    Column("shelf", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("record", LargeBinary, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    Column("topic", Text),
    Column("state", SmallInteger, nullable=False),
    Column("past_at", BigInteger),
    Column("pinned_at", BigInteger),
    Column("source_conversation", Text),
    Column("source_seq", BigInteger),
    Column("model", Text),
    Column("vector", LargeBinary),
    Index("notes_by_id", "owner", "kind", "id", unique=True),
    sqlite_autoincrement=True,
)
"""Memories, documents and their passages, by owner; numbers are never given twice, since an index goes by them."""
Index("notes_by_shelf", notes.c.owner, notes.c.kind, notes.c.shelf, notes.c.state, notes.c.number)
_PINNED = text("pinned_at IS NOT NULL")
Index(
    "notes_pinned", notes.c.owner, notes.c.kind, notes.c.shelf,
    sqlite_where=_PINNED, postgresql_where=_PINNED,
)  # fmt: skip
_ABOUT = text("topic IS NOT NULL")
Index(
    "notes_by_topic", notes.c.owner, notes.c.kind, notes.c.shelf, notes.c.topic,
    sqlite_where=_ABOUT, postgresql_where=_ABOUT,
)  # fmt: skip
_SOURCED = text("source_conversation IS NOT NULL")
Index(
    "notes_by_source", notes.c.owner, notes.c.source_conversation, notes.c.source_seq,
    sqlite_where=_SOURCED, postgresql_where=_SOURCED,
)  # fmt: skip

uses = Table(
    "uses",
    metadata,
    Column("conversation", BigInteger, primary_key=True, autoincrement=False),
    Column("kind", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("uses", BigInteger, nullable=False),
    Column("last_at", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)
"""How often a tool or a skill was used in a conversation."""

turns = Table(
    "turns",
    metadata,
    Column("number", _Number, primary_key=True, autoincrement=True),
    Column("conversation", BigInteger, nullable=False),
    Column("id", Text, nullable=False),
    Column("state", SmallInteger, nullable=False),
    Column("holder", Text, nullable=False),
    Column("lease_until", BigInteger),
    Column("is_asked_to_stop", SmallInteger, nullable=False),
    Column("received_at", BigInteger, nullable=False),
    Column("question", LargeBinary),
    Column("record", LargeBinary, nullable=False),
    Index("turns_by_id", "conversation", "id", unique=True),
    Index("turns_by_number", "conversation", "number"),
    sqlite_autoincrement=True,
)
"""One question each, and where its answer stands."""
_UNFINISHED = text("state < 2")
Index("turns_unfinished", turns.c.conversation, sqlite_where=_UNFINISHED, postgresql_where=_UNFINISHED)

run_events = Table(
    "run_events",
    metadata,
    Column("turn", BigInteger, primary_key=True, autoincrement=False),
    Column("first", Integer, primary_key=True, autoincrement=False),
    Column("last", Integer, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("kept_at", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)
"""What turns told while they ran, in batches, by the turn's number."""
Index("run_events_by_age", run_events.c.kept_at)
api_keys = Table(
    "api_keys",
    metadata,
    Column("id", Text, primary_key=True),
    Column("owner", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("is_admin", SmallInteger, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("revoked_at", BigInteger),
    Column("digest", LargeBinary, nullable=False),
    sqlite_with_rowid=False,
)
"""Who may speak for an owner to the service; of a key only its hash."""

replies = Table(
    "replies",
    metadata,
    Column("owner", Text, primary_key=True),
    Column("idempotency_key", Text, primary_key=True),
    Column("request", LargeBinary, nullable=False),
    Column("conversation", Text),
    Column("status", Integer),
    Column("headers", LargeBinary, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("running_until", BigInteger, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)
"""What the service answered to an idempotency key."""

ERASE_RULES = {
    "conversations": "title and metadata blanked, row kept as a tombstone",
    "branches": "numbers only: kept",
    "entries": "raw, salt and token count blanked; id, role and chain kept, commitment stored",
    "payloads": "row deleted; the blob it names is deleted when no other row names it",
    "doomed_blobs": "names of blobs only, gone with them",
    "answers": "rows of the conversation deleted; of an erased message's answer only the key kept, to refuse a retry",
    "compactions": "rows over an erased message deleted, with the summaries in them",
    "policies": "row of the conversation deleted",
    "calibrations": "names of models and numbers only: kept",
    "manifests": "rows of the conversation deleted; seqs and digests of a single message stay",
    "prompts": "rows of the conversation deleted; a program's own words, so none of a single message's",
    "threads": "numbers only: kept",
    "agent_checkpoints": "rows of the conversation deleted; those that only refer to an erased message leave it out",
    "agent_writes": "rows of the conversation deleted, and of a message those that hold its id or its text",
    "blobs": "rows of the conversation deleted, and of a message those that hold its id or its text",
    "jobs": "rows of the conversation deleted; errors, which may quote an erased message, blanked",
    "everthread_jobs.procrastinate_jobs": "the same on PostgreSQL; a row that runs is blanked, its worker deletes it",
    "everthread_jobs.procrastinate_events": "times and states only: they go with their job",
    "everthread_jobs.procrastinate_periodic_defers": "never used",
    "everthread_jobs.procrastinate_workers": "times only",
    "notes": "rows deleted that were made from an erased message or conversation; with an owner all of that owner's",
    "note_words": "a note's tokens deleted from the index with it, which is then rewritten (SQLite)",
    "uses": "rows of the conversation deleted; of a single message a count stays",
    "items": "rows of the owner deleted with everything of that owner; they belong to no conversation",
    "turns": "rows of the conversation deleted; of a message: what quotes it, and a question that waits",
    "run_events": "rows of the conversation deleted, also for a single message, which stands in them in pieces",
    "api_keys": "rows of the owner deleted with everything of that owner",
    "replies": "rows of the owner deleted; of what may speak of an erased conversation or message only the key kept",
    "vectors": "rows of the conversation deleted, and of a message those of its entries",
    "vector_models": "names of embedders only: kept",
    "erasures": "names what was erased, by id only",
    "entry_ids": "hashes of ids only: kept, as the ids are",
    "filed": "numbers only: kept",
    "unindexed": "numbers only: kept until the index has caught up",
    "words": "the entry's tokens deleted from the index, which is then rewritten",
    "alembic_version": "holds no text",
}
"""What `erase` does to each table (`words`, `unindexed`, `entry_ids`, `vectors`, jobs: see their migrations)."""

SQLITE_ONLY = ("entry_ids", "filed", "jobs", "note_words", "unindexed")
"""In a PostgreSQL database a table of such a name is somebody else's."""
