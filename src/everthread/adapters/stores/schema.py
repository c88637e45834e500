"""The tables of both databases, and the steps that bring an older database to them.

`schema.sql` is the one place where a table is written down. A new database is made from it at once; one that exists
runs the steps it is missing (`MIGRATIONS`). The stores run what these functions give: SQLite all that is missing in one
transaction, PostgreSQL each step in one, under a lock. So a migration killed anywhere resumes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Literal, NamedTuple

from everthread.adapters.jobs.postgres_statements import DROP_ROUNDS, INDEX_ROUNDS
from everthread.core.entries import SEQ_BITS, EntryOrigin
from everthread.core.errors import StoreError
from everthread.core.notes import NoteState

Database = Literal["sqlite", "postgres"]
_DATABASES = ("sqlite", "postgres")

VERSION_QUERY = "SELECT version FROM schema_version"
OLD_VERSION_QUERY = "SELECT version_num FROM alembic_version"
OLD_VERSION = "0021"
"""Before the first release tables went by 21 revisions of alembic. The last of them is still opened."""
BEFORE_FIRST = 0
"""The version that such a database counts as."""

_CREATE = re.compile(r"CREATE (?:UNIQUE |VIRTUAL )?(?:TABLE|INDEX|VIEW) ")
_TABLE = re.compile(r"CREATE (?:VIRTUAL )?TABLE (\w+)")
_OF_JOBS = re.compile(r"\b(?:TABLE|ON) jobs\b")
_VIEW = re.compile(r"CREATE VIEW (\w+)")


@cache
def create(database: Database) -> Sequence[str]:
    """The statements that create all tables."""
    return _render("schema.sql", database)


@cache
def tables(database: Database) -> Sequence[str]:
    """The names of all tables, except those that SQLite and procrastinate create for themselves."""
    return [table for statement in create(database) for table in _TABLE.findall(statement)]


def drop(database: Database) -> Sequence[str]:
    """The statements that drop all tables."""
    views = [view for statement in create(database) for view in _VIEW.findall(statement)]
    return [*(f"DROP VIEW {view}" for view in views), *(f"DROP TABLE IF EXISTS {table}" for table in tables(database))]


def _render(name: str, database: Database) -> Sequence[str]:
    """The statements of a file, as one database takes them."""
    lines: list[str] = []
    for line in (files(__package__) / name).read_text("utf-8").splitlines():
        code, _, comment = line.partition("--")
        if comment.strip() not in _DATABASES or comment.strip() == database:
            lines.append(code)
    text = " ".join(" ".join(lines).split())
    if database == "postgres":
        text = re.sub(r"\bBLOB\b", "BYTEA", text).replace(" WITHOUT ROWID", "")
    return [statement.strip() for statement in text.split(";") if statement.strip()]


class Migration(NamedTuple):
    """One migration: the statements from the previous version to this one, and back."""

    version: int
    upgrade: Callable[[Database], Sequence[str]]
    downgrade: Callable[[Database], Sequence[str]]


def _first_from_0021(database: Database) -> Sequence[str]:
    """Rename the old tables that changed, create the new ones, and copy the rows over."""
    missing = [
        _CREATE.sub(r"\g<0>IF NOT EXISTS ", statement, count=1)
        for statement in create(database)
        if _OF_JOBS.search(statement) is None  # revision 0021 has this table, as it was before version 2
    ]
    steps = _render(f"migrations/from_0021_{database}.sql", database)
    place = steps.index("CREATE MISSING TABLES")
    return [*steps[:place], *missing, *steps[place + 1 :]]


def _let_owners_take_turns(database: Database) -> Sequence[str]:
    """Jobs know their owner, their place in the order (`core/jobs.py`) and when they died."""
    if database == "postgres":
        return [INDEX_ROUNDS]
    columns = ("owner TEXT NOT NULL DEFAULT ''", "round INTEGER NOT NULL DEFAULT 0", "rank INTEGER NOT NULL DEFAULT 0")
    return [
        *(f"ALTER TABLE jobs ADD COLUMN {column}" for column in (*columns, "died_at BIGINT")),
        "UPDATE jobs SET owner = (SELECT c.owner FROM conversations c WHERE c.number = jobs.conversation)",
        "DROP INDEX jobs_in_order",
        *(statement for statement in create(database) if re.search(r"INDEX jobs_by_", statement)),
    ]


def _let_jobs_wait_in_one_line(database: Database) -> Sequence[str]:
    if database == "postgres":
        return [DROP_ROUNDS]
    return [
        "DROP INDEX jobs_by_rank",
        "DROP INDEX jobs_by_owner",
        *(f"ALTER TABLE jobs DROP COLUMN {column}" for column in ("owner", "round", "rank", "died_at")),
        "CREATE INDEX jobs_in_order ON jobs (state, priority DESC, number)",
    ]


_OF_CHANGES = re.compile(r"\bconversation_changes\b|\bentries_marked\b")


def _commit_to_settings(database: Database) -> Sequence[str]:
    """Conversations commit to their settings; pinned and quarantined entries share an index."""
    made = [statement for statement in create(database) if _OF_CHANGES.search(statement)]
    return ["DROP INDEX IF EXISTS entries_pinned", *(_CREATE.sub(r"\g<0>IF NOT EXISTS ", one, count=1) for one in made)]


def _forget_settings_committed_to(database: Database) -> Sequence[str]:
    key = "key" if database == "sqlite" else "conversation, seq"
    return [
        "DROP TABLE conversation_changes",
        "DROP INDEX entries_marked",
        f"CREATE INDEX entries_pinned ON entries ({key}) WHERE flags & 2 <> 0",
    ]


_UNUSED = ("quarantined_at", "held_at")
"""Messages are quarantined, by a mark in the log; and legal holds are records of their own, with who and why."""


def _drop_unused_columns(database: Database) -> Sequence[str]:
    if_exists = "IF EXISTS " if database == "postgres" else ""  # there, version 1 makes the table as it is now
    return [f"ALTER TABLE conversations DROP COLUMN {if_exists}{column}" for column in _UNUSED]


def _add_unused_columns(database: Database) -> Sequence[str]:
    return [f"ALTER TABLE conversations ADD COLUMN {column} BIGINT" for column in _UNUSED]


_FILL_LAST_SAID_AT = f"""
UPDATE conversations
SET last_said_at = (
    SELECT CASE WHEN e.origin = {EntryOrigin.IMPORT:d} THEN conversations.created_at ELSE e.created_at END
    FROM entries e WHERE {{leaf}})
WHERE leaf_seq > 0 AND erased_at IS NULL"""
_LEAF: Mapping[Database, str] = {
    "sqlite": f"e.key = (conversations.number << {SEQ_BITS} | conversations.leaf_seq)",
    "postgres": "e.owner = conversations.owner AND e.conversation = conversations.number "
    "AND e.seq = conversations.leaf_seq",
}


def _keep_when_was_said_last(database: Database) -> Sequence[str]:
    """Lists of conversations go by it. When an imported message was said stands in its packed payload, where SQL cannot
    read it: its conversation's beginning is nearer than the time of the import."""
    if_missing = "IF NOT EXISTS " if database == "postgres" else ""  # there, version 1 makes the table as it is now
    return [
        f"ALTER TABLE conversations ADD COLUMN {if_missing}last_said_at BIGINT",
        _FILL_LAST_SAID_AT.format(leaf=_LEAF[database]),
    ]


def _forget_when_was_said_last(database: Database) -> Sequence[str]:
    return ["ALTER TABLE conversations DROP COLUMN last_said_at"]


_NOTHING_INDEXED = """
INSERT INTO unindexed (conversation, after_seq, counted_seq)
SELECT number, 0, entry_count FROM conversations WHERE entry_count > 0 AND off_record = 0 AND erased_at IS NULL
ON CONFLICT (conversation) DO UPDATE SET after_seq = 0, counted_seq = max(counted_seq, unindexed.after_seq)"""


def index_anew() -> Sequence[str]:
    """The statements that empty the index of messages of a SQLite file, which the next searches fill again; what was
    indexed before has its uses counted."""
    return ["INSERT INTO words (words) VALUES ('delete-all')", _NOTHING_INDEXED]


def _search_without_accents(database: Database) -> Sequence[str]:
    """The index has words without accents, and traditional characters as simplified ones (version 2 of `text.words`).

    SQLite's indexes are made anew, of messages when they are searched next. PostgreSQL's, made of single tokens, have
    these renewed by `postgres.tables`, since SQL knows no stems.
    """
    if database == "postgres":
        return []
    return [
        *index_anew(),
        "INSERT INTO note_words (note_words) VALUES ('delete-all')",
        "INSERT INTO note_words (rowid, tokens) SELECT number, note_tokens(owner, shelf, text) FROM notes "
        f"WHERE state = {NoteState.LIVE:d} AND text <> ''",
    ]


def _keep_without_accents(_: Database) -> Sequence[str]:
    """The index stays: what it holds is found by an earlier everthread too, by words without accents."""
    return []


MIGRATIONS = (
    Migration(version=1, upgrade=_first_from_0021, downgrade=drop),
    Migration(version=2, upgrade=_let_owners_take_turns, downgrade=_let_jobs_wait_in_one_line),
    Migration(version=3, upgrade=_commit_to_settings, downgrade=_forget_settings_committed_to),
    Migration(version=4, upgrade=_drop_unused_columns, downgrade=_add_unused_columns),
    Migration(version=5, upgrade=_keep_when_was_said_last, downgrade=_forget_when_was_said_last),
    Migration(version=6, upgrade=_search_without_accents, downgrade=_keep_without_accents),
)
"""Every step, oldest first. A new one comes with the same change in `schema.sql`: a test compares what both make."""

RENEWS_TOKENS = 6
"""The version from which on the tokens of an index are those of today."""

VERSION = MIGRATIONS[-1].version
"""The version of the tables that this everthread works with."""


def missing_steps(found: int) -> Sequence[Migration]:
    """Return the migrations that a database of this version has yet to run."""
    return [step for step in MIGRATIONS if step.version > found]


def old_version(revision: str) -> int | None:
    """Return the version of a database that still has alembic's revisions; None when they are another program's."""
    if re.fullmatch(r"00[0-2]\d", revision) is None:
        return None
    if revision != OLD_VERSION:
        raise StoreError(
            f"the database has tables of revision {revision}, from before the first release; nothing was changed: only "
            f"revision {OLD_VERSION} can be brought up to date"
        )
    return BEFORE_FIRST


def refuse_newer(version: int) -> None:
    """Raise StoreError for a database written by a later everthread."""
    if version > VERSION:
        raise StoreError(
            f"the database has tables of version {version}, this everthread knows {VERSION}; nothing was changed: "
            "upgrade everthread to open it"
        )


ERASE_RULES = {
    "conversations": "title and metadata blanked, row kept as a tombstone; of a message: a title that may quote it",
    "conversation_changes": "salts blanked; the commitments keep the chain whole",
    "branches": "numbers only: kept",
    "entries": "raw, salt and token count blanked; id, role and chain kept, commitment stored",
    "payloads": "row deleted; the blob it names is deleted when no other row names it",
    "doomed_blobs": "names of blobs only, gone with them",
    "answers": "rows of the conversation deleted; of an erased message's answer only the key kept, to refuse a retry",
    "compactions": "rows over an erased message deleted, with the summaries in them",
    "policies": "row of the conversation deleted",
    "calibrations": "names of models and numbers only: kept",
    "manifests": "rows of the conversation deleted; seqs and digests of a single message stay",
    "prompts": "rows deleted that no other conversation names; a program's own words, so none of a single message's",
    "prompt_uses": "rows of the conversation deleted",
    "message_facts": "rows of the conversation deleted, and of a message that of each of its entries",
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
    "model_usage": "rows of the conversation deleted; of a single message its numbers stay",
    "import_sources": "rows of the owner deleted with everything of that owner",
    "import_lines": "rows of the conversation deleted, and of a message that of each of its entries",
    "api_keys": "rows of the owner deleted with everything of that owner",
    "replies": "rows of the owner deleted; of what may speak of an erased conversation or message only the key kept",
    "vectors": "rows of the conversation deleted, and of a message those of its entries",
    "vector_models": "names of embedders only: kept",
    "erasures": "names what was erased, by id only",
    "entry_ids": "hashes of ids only: kept, as the ids are",
    "entry_ids_until": "numbers only: kept",
    "unindexed": "numbers only: kept until the index has caught up",
    "words": "the entry's tokens deleted from the index, which is then rewritten",
    "schema_version": "holds no text",
}
"""What `erase` does to each table; a test fails when one has no rule."""
