"""Every statement the PostgreSQL store runs, by name: one statement, one sentence. All values are bound."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from everthread.adapters.jobs.postgres_statements import JOBS_IN_STATE
from everthread.adapters.stores.layout import (
    CHECKPOINT_COLUMNS,
    COMPACTION_COLUMNS,
    CONVERSATION_COLUMNS,
    INSERT_COLUMNS,
    ITEM_COLUMNS,
    KEY_COLUMNS,
    LISTED_AT,
    REPLY_COLUMNS,
    THREAD_COLUMNS,
    WRITE_COLUMNS,
    is_place,
)
from everthread.core.checkpoints import CheckpointState
from everthread.core.entries import HIDDEN_FLAGS, SEQ_BITS, SEQ_MASK, Flag, Kind, Mark, Revision
from everthread.core.ports import ListOrder


class ConversationKey(NamedTuple):
    """What the rows of a conversation are found by: the first two values of each statement about them."""

    owner: str
    number: int


# -- transactions ----------------------------------------------------------------------------------------------

BEGIN = """
BEGIN ISOLATION LEVEL READ COMMITTED;
SET LOCAL lock_timeout = '30s';
SET LOCAL idle_in_transaction_session_timeout = '60s'"""
"""Begin, and wait for another's lock no longer than this; one round trip. What was waited for is then seen. The server
releases the locks of clients that have vanished, which it would not notice for hours on a network that drops
what is sent."""

BEGIN_DURABLY = f"{BEGIN}; SET LOCAL synchronous_commit = on"
"""The same on a server whose commits do not wait for the disk; this transaction's does."""

COMMITS_WITHOUT_WAITING = "SELECT current_setting('synchronous_commit') = 'off'"
"""Whether the server acknowledges commits that it can lose."""

# -- conversations ---------------------------------------------------------------------------------------------

_CONVERSATION = (
    f"SELECT {CONVERSATION_COLUMNS} FROM conversations c "
    "LEFT JOIN conversations p ON p.owner = c.owner AND p.number = c.parent_number"
)

CREATE_CONVERSATION = """
WITH made AS (
    INSERT INTO conversations (owner, id, parent_number, title, metadata, is_active, off_record, created_at,
        updated_at, entry_count, chain, active_branch)
    VALUES ($1, $2, $3, $4, $5, 1, $6, $7, $7, 0, $8, 0)
    ON CONFLICT (owner, id) DO NOTHING RETURNING number
)
INSERT INTO branches (owner, conversation, number, parent, fork_seq, leaf_seq, leaf_depth, created_at)
SELECT $1, number, 0, NULL, 0, 0, 0, $7 FROM made RETURNING conversation"""
"""A conversation starts active, empty and with one branch; no row when somebody else has just made it."""

CONVERSATION_STATE = "SELECT number, erased_at, off_record FROM conversations WHERE owner = $1 AND id = $2"
"""Whether an owner has, or had, a conversation."""

GET_CONVERSATION = f"{_CONVERSATION} WHERE c.owner = $1 AND c.id = $2 AND c.erased_at IS NULL"
"""One conversation of one owner."""

_LISTED = "c.owner = $1 AND c.erased_at IS NULL AND ($2 OR c.deleted_at IS NULL)"
_OF_PARENT = "c.parent_number = (SELECT number FROM conversations WHERE owner = $1 AND id = {parent})"
_BY_CREATION = "c.number < $4 ORDER BY c.number DESC LIMIT $3"
_BY_WHAT_WAS_SAID = f"({LISTED_AT}, c.number) < ($5::bigint, $4) ORDER BY {LISTED_AT} DESC, c.number DESC LIMIT $3"

LIST_CONVERSATIONS: Mapping[ListOrder, str] = {
    "created": f"{_CONVERSATION} WHERE {_LISTED} AND {_BY_CREATION}",
    "said": f"{_CONVERSATION} WHERE {_LISTED} AND {_BY_WHAT_WAS_SAID}",
}
"""One page of an owner's conversations, newest first."""

LIST_CHILDREN: Mapping[ListOrder, str] = {
    "created": f"{_CONVERSATION} WHERE {_OF_PARENT.format(parent='$5')} AND {_LISTED} AND {_BY_CREATION}",
    "said": f"{_CONVERSATION} WHERE {_OF_PARENT.format(parent='$6')} AND {_LISTED} AND {_BY_WHAT_WAS_SAID}",
}
"""One page of a conversation's children, newest first."""

ALL_CONVERSATIONS = f"{_CONVERSATION} ORDER BY c.number"
"""Every conversation of every owner, erased ones too."""

UPDATE_CONVERSATION = {
    column: f"""
UPDATE conversations SET {column} = $1, updated_at = $2 WHERE owner = $3 AND id = $4 AND erased_at IS NULL"""
    for column in ("title", "metadata", "is_active", "deleted_at")
}
"""Set one column; these are all that can be set."""

_CHANGE = "number, changed_at, salt, commitment, chain"

CHANGES = f"""
SELECT {_CHANGE} FROM conversation_changes
WHERE owner = $1 AND conversation = (SELECT number FROM conversations WHERE owner = $1 AND id = $2) AND number > $3
ORDER BY number LIMIT $4"""
"""The chain over a conversation's settings, a page of it."""

NEWEST_CHANGE = f"""
SELECT {_CHANGE} FROM conversation_changes WHERE owner = $1 AND conversation = $2 ORDER BY number DESC LIMIT 1"""
"""The last link of that chain."""

NEWEST_CHANGES = """
SELECT DISTINCT ON (s.conversation) c.owner, c.id, s.number, s.changed_at, s.salt, s.commitment, s.chain
FROM conversation_changes s JOIN conversations c ON c.owner = s.owner AND c.number = s.conversation
ORDER BY s.conversation, s.number DESC"""
"""The last link of each of these chains."""

INSERT_CHANGE = f"""
INSERT INTO conversation_changes (owner, conversation, {_CHANGE}) VALUES ($1, $2, $3, $4, $5, $6, $7)"""
"""Commit to what a conversation's row says now."""

BLANK_CHANGES = """
UPDATE conversation_changes SET salt = NULL
WHERE owner = $1 AND conversation = ANY($2::bigint[]) AND salt IS NOT NULL"""
"""Destroy the salts of what it said before."""

# -- the log ---------------------------------------------------------------------------------------------------
# What belongs to a conversation is found by its owner ($1) and its number ($2).

ENTRY = """
e.seq, e.id, e.kind, e.role, e.revises, e.how, e.revision, e.parent_seq, e.branch, e.depth, e.created_at,
e.tokens, e.salt, e.chain, coalesce(e.raw, (
    SELECT CASE WHEN p.blob IS NULL THEN p.body ELSE '\\x00'::bytea || convert_to(p.blob, 'UTF8') END
    FROM payloads p WHERE p.owner = e.owner AND p.conversation = e.conversation AND p.seq = e.seq)),
e.commitment, e.newest_seq, e.flags, e.updated_at, e.origin, e.chain_version"""
"""The columns of an `Entry`, in its order; a payload that is in a blob comes as its reference (core/blobs.py)."""

LOG_HEAD = """
SELECT c.number, c.owner, c.id, c.entry_count, c.chain, c.active_branch, c.erased_at IS NOT NULL, c.off_record,
    c.compaction_check_at, b.number, b.parent, b.fork_seq, c.leaf_seq, c.leaf_depth, b.created_at
FROM conversations c
JOIN branches b ON b.owner = c.owner AND b.conversation = c.number AND b.number = c.active_branch
WHERE c.owner = $1 AND c.id = $2"""
"""The end of a log and its active branch."""

LOCK_HEAD = f"{LOG_HEAD} FOR UPDATE"
"""The same for a writer: the next writer waits here until this one commits.

Both rows are locked, because only of a locked row PostgreSQL reads what the writer before us has just
committed. When that writer switched the active branch, the two no longer join and no row comes back; the
conversation is locked all the same, and asking again finds it."""

ORIGINS = f"SELECT DISTINCT origin, role FROM entries WHERE owner = $1 AND conversation = $2 AND kind <> {Kind.MARK:d}"
"""Which doors a log was written through."""

BRANCHES = """
SELECT b.number, b.parent, b.fork_seq, CASE WHEN b.number = c.active_branch THEN c.leaf_seq ELSE b.leaf_seq END,
    CASE WHEN b.number = c.active_branch THEN c.leaf_depth ELSE b.leaf_depth END, b.created_at
FROM branches b JOIN conversations c ON c.owner = b.owner AND c.number = b.conversation
WHERE b.owner = $1 AND b.conversation = $2 ORDER BY b.number"""
"""Every branch of a conversation; where the active one ends is in the conversation's row."""

_ENTRIES = f"SELECT {ENTRY} FROM entries e WHERE e.owner = $1 AND e.conversation = $2"

ENTRIES_BY_ID = f"""
SELECT {ENTRY} FROM entries e
WHERE e.owner = $1 AND e.conversation + 0 = $2 AND e.id = ANY($3::text[]) AND e.kind <> {Kind.MARK:d} ORDER BY e.seq"""
"""Every revision of some messages, by their index (`conversation + 0`: by no other)."""

ENTRIES_BY_SEQ = f"{_ENTRIES} AND e.seq = ANY($3::bigint[]) ORDER BY e.seq"
"""Some entries."""

SCAN = f"{_ENTRIES} AND e.seq > $3 ORDER BY e.seq LIMIT $4"
"""The log itself, in order."""

FRAMEWORK_ENTRIES = f"""
{_ENTRIES} AND (e.kind = {Kind.SUMMARY:d} OR (e.kind = {Kind.MARK:d} AND e.how = {Mark.REMOVED:d})) ORDER BY e.seq"""
"""Summaries of frameworks, and marks of what they removed from their lists."""

PATH = f"""
{_ENTRIES} AND e.seq > $3 AND e.seq <= $4 AND e.branch = $5 AND {is_place("e")}
  AND e.flags & $6 = 0
ORDER BY e.seq LIMIT $7"""
"""Places of one stretch of a branch, oldest first."""

PATH_NEWEST_FIRST = PATH.replace("ORDER BY e.seq LIMIT", "ORDER BY e.seq DESC LIMIT")
"""The same, newest first."""

ANSWER = """
SELECT idempotency_key, body, receipts FROM answers WHERE owner = $1 AND conversation = $2 AND idempotency_key = $3"""
"""The receipts that were returned for an idempotency key."""

INSERT_ANSWER = """
INSERT INTO answers (owner, conversation, idempotency_key, body, receipts, created_at)
VALUES ($1, $2, $3, $4, $5, $6)"""
"""Remember an answer."""

INSERT_ENTRIES = f"""
WITH found_by AS (
    INSERT INTO words (owner, conversation, seq, tokens)
    SELECT $1, $2, seq, array_to_tsvector(string_to_array(tokens, ' '))
    FROM unnest($21::bigint[], $22::text[]) AS new (seq, tokens)
)
INSERT INTO entries (owner, conversation, {INSERT_COLUMNS.replace("key", "seq")})
SELECT $1, $2, * FROM unnest($3::bigint[], $4::text[], $5::smallint[], $6::text[], $7::bigint[], $8::smallint[],
    $9::integer[], $10::bigint[], $11::integer[], $12::integer[], $13::bigint[], $14::integer[], $15::bytea[],
    $16::bytea[], $17::bytea[], $18::smallint[],
    $19::smallint[], $20::smallint[])"""
"""Write entries, and put their tokens into the index; nothing ever changes these columns but an erase."""

INSERT_PAYLOAD = """
INSERT INTO payloads (owner, conversation, seq, body, blob, blob_bytes, commitment)
VALUES ($1, $2, $3, $4, $5, $6, $7)"""
"""Write a payload that is too large for its entry's row, or the name of the blob that holds it."""

BLOB_OF = "SELECT blob FROM payloads WHERE owner = $1 AND conversation = $2 AND seq = $3"
"""Which blob holds a payload, if one does."""

BLOB_NAMES = "SELECT DISTINCT blob, blob_bytes FROM payloads WHERE blob IS NOT NULL"
"""Every blob that is referred to."""

USED_BLOBS = "SELECT blob FROM payloads WHERE blob = ANY($1::text[])"
"""The blobs among these that something refers to."""

DOOMED_BLOBS = "SELECT name FROM doomed_blobs"
"""Blobs of what was erased that are still to be deleted."""

FORGET_DOOMED = "DELETE FROM doomed_blobs WHERE name = ANY($1::text[])"
"""Note that blobs were deleted, or are needed again."""

SHARE_BLOBS = "SELECT pg_advisory_xact_lock_shared(7310580732)"
"""Held by a writer of a blob until the commit that refers to it …"""

LOCK_BLOBS = "SELECT pg_advisory_xact_lock(7310580732)"
"""… and awaited by a process that deletes blobs without references."""

TOUCH = """
UPDATE entries e
SET newest_seq = coalesce(t.newest_seq, e.newest_seq), flags = (e.flags | t.on_flags) & ~t.off_flags,
    updated_at = t.updated_at, commitment = coalesce(t.commitment, e.commitment)
FROM unnest($3::bigint[], $4::bigint[], $5::bigint[], $6::smallint[], $7::smallint[], $8::bytea[])
    AS t (seq, updated_at, newest_seq, on_flags, off_flags, commitment)
WHERE e.owner = $1 AND e.conversation = $2 AND e.seq = t.seq"""
"""Project later entries onto the rows of those they speak of."""

WRITE_BRANCHES = """
INSERT INTO branches (owner, conversation, number, parent, fork_seq, leaf_seq, leaf_depth, created_at)
SELECT $1, $2, * FROM unnest($3::integer[], $4::integer[], $5::bigint[], $6::bigint[], $7::integer[], $8::bigint[])
ON CONFLICT (owner, conversation, number) DO UPDATE
SET parent = excluded.parent, fork_seq = excluded.fork_seq, leaf_seq = excluded.leaf_seq,
    leaf_depth = excluded.leaf_depth, created_at = excluded.created_at"""
"""Write branches, new or as another one becomes active."""

ADVANCE = f"""
WITH written AS ({WRITE_BRANCHES})
UPDATE conversations
SET entry_count = $9, chain = $10, active_branch = $11, leaf_seq = $12, leaf_depth = $13, compaction_check_at = $14,
    updated_at = $15, last_said_at = greatest(last_said_at, $16::bigint)
WHERE owner = $1 AND number = $2"""
"""Move the head of a log together with its branches."""

SET_COMPACTION_CHECK_AT = "UPDATE conversations SET compaction_check_at = $3 WHERE owner = $1 AND number = $2"
"""Move the mark at which a compaction is worth a look."""

# -- views -----------------------------------------------------------------------------------------------------

_BEGINNING_HERE = f"""
SELECT {COMPACTION_COLUMNS} FROM compactions c
WHERE c.owner = $1 AND c.conversation = $2 AND c.after_seq = {{place}} AND c.undone_at IS NULL
  AND c.invalid_at IS NULL
  AND EXISTS (SELECT 1 FROM path WHERE path.branch = c.branch AND path.after < c.last_seq AND c.last_seq <= path.last)
ORDER BY c.level DESC, c.last_seq DESC LIMIT 1"""
"""The highest live compaction on the path that begins at a place."""

_PATH = "path AS (SELECT * FROM unnest($3::integer[], $4::bigint[], $5::bigint[]) AS stretch (branch, after, last))"

COMPACTION_ROW = f"""
WITH RECURSIVE {_PATH}, told AS (
    ({_BEGINNING_HERE.format(place="0")})
    UNION ALL
    SELECT following.* FROM told CROSS JOIN LATERAL ({_BEGINNING_HERE.format(place="told.last_seq")}) AS following
)
SELECT {COMPACTION_COLUMNS} FROM told ORDER BY last_seq"""
"""The summaries that tell a path from its beginning: each begins where the one before it ends."""

COMPACTIONS_OVER = f"""
SELECT {COMPACTION_COLUMNS} FROM compactions
WHERE owner = $1 AND conversation = $2 AND last_seq >= $3 AND after_seq <= $4 AND invalid_at IS NULL"""
"""The compactions, live or undone, whose stretch meets or touches another one."""

EVERY_COMPACTION_OVER = COMPACTIONS_OVER.removesuffix(" AND invalid_at IS NULL")
"""The same, invalid ones too."""

IS_ASKED_BACK = f"""
WITH {_PATH}
SELECT EXISTS (
    SELECT 1 FROM compactions c
    JOIN path ON path.branch = c.branch AND path.after < c.last_seq AND c.last_seq <= path.last
    WHERE c.owner = $1 AND c.conversation = $2 AND c.last_seq > $6 AND c.undone_at IS NOT NULL
      AND c.invalid_at IS NULL)"""
"""Whether one that reaches further than some place was undone on a path."""

COMPACTIONS_BY_ID = f"""
SELECT {COMPACTION_COLUMNS} FROM compactions WHERE owner = $1 AND conversation = $2 AND id = ANY($3::text[])"""
"""Some compactions."""

COMPACTION_PAGE = f"""
SELECT {COMPACTION_COLUMNS} FROM compactions
WHERE owner = $1 AND conversation = $2 AND (created_at, id) > ($3, $4) ORDER BY created_at, id LIMIT $5"""
"""A page of every compaction of a conversation, oldest first."""

INSERT_COMPACTION = f"""
INSERT INTO compactions (owner, conversation, {COMPACTION_COLUMNS})
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
ON CONFLICT (owner, conversation, id) DO UPDATE
SET undone_at = excluded.undone_at, invalid_at = excluded.invalid_at"""
"""Write a compaction, new or undone."""

INVALIDATE_COMPACTIONS = """
UPDATE compactions SET invalid_at = $4 WHERE owner = $1 AND conversation = $2 AND id = ANY($3::text[])"""
"""Messages inside no longer say what was summarised."""

DEPTH = "SELECT depth FROM entries WHERE owner = $1 AND conversation = $2 AND seq = $3"
"""How many messages a path has up to one."""

_MARKED = Flag.PINNED | Flag.QUARANTINED
"""The condition of the index `entries_marked`; the planner uses the index only for the same condition."""

PINNED = f"""
{_ENTRIES} AND e.flags & {_MARKED:d} <> 0 AND e.flags & {Flag.PINNED:d} <> 0 AND e.flags & {HIDDEN_FLAGS:d} = 0
  AND (e.how IS NULL OR e.how = {Revision.EDIT:d})
ORDER BY e.seq DESC LIMIT $3"""
"""The places of pinned messages that are neither deleted nor erased, the newest first."""

QUARANTINED = f"""
SELECT e.branch, e.seq FROM entries e WHERE e.owner = $1 AND e.conversation = $2
  AND e.flags & {_MARKED:d} <> 0 AND e.flags & {Flag.QUARANTINED:d} <> 0
  AND (e.how IS NULL OR e.how = {Revision.EDIT:d})
ORDER BY e.seq DESC LIMIT $3"""
"""The places of quarantined messages, the newest first."""

POLICIES = """
SELECT conversation, policy FROM policies
WHERE owner = '' AND conversation = 0 OR owner = $1 AND conversation = $2"""
"""How the server and a conversation are compacted."""

LOCK_POLICIES = "SELECT pg_advisory_xact_lock(7310580733)"
"""Changes of a policy wait for one another: the first of a conversation has no row that could be locked."""

SET_POLICY = """
INSERT INTO policies (owner, conversation, policy) VALUES ($1, $2, $3)
ON CONFLICT (owner, conversation) DO UPDATE SET policy = excluded.policy"""
"""Set how a conversation, or the server, is compacted."""

DELETE_POLICY = "DELETE FROM policies WHERE owner = $1 AND conversation = ANY($2::bigint[])"
"""Take that back."""

CALIBRATION = "SELECT factor, samples FROM calibrations WHERE model = $1"
"""How far our counts are from a model's own."""

KEEP_CALIBRATION = """
INSERT INTO calibrations (model, factor, samples) VALUES ($1, $2, $3)
ON CONFLICT (model) DO UPDATE SET factor = excluded.factor, samples = excluded.samples"""
"""Remember that."""

KEEP_MANIFEST = """
INSERT INTO manifests (owner, conversation, id, manifest, created_at) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (owner, conversation, id) DO UPDATE SET manifest = excluded.manifest"""
"""Remember what a model was shown."""

MANIFEST_IDS = """
SELECT id FROM manifests WHERE owner = $1 AND conversation = $2 AND id COLLATE "C" > $3
ORDER BY id COLLATE "C" LIMIT $4"""
"""A page of the manifests of a conversation."""

MANIFEST = "SELECT manifest FROM manifests WHERE owner = $1 AND conversation = $2 AND id = $3"
"""A manifest."""

DELETE_MANIFESTS = "DELETE FROM manifests WHERE owner = $1 AND conversation = ANY($2::bigint[])"
"""Forget what models were shown of conversations."""

KEEP_PROMPTS = """
WITH used AS (
    INSERT INTO prompt_uses (owner, conversation, digest)
    SELECT $1, $2, digest FROM unnest($3::text[]) AS given (digest) ON CONFLICT DO NOTHING RETURNING digest
)
INSERT INTO prompts (owner, digest, conversations, body)
SELECT $1, given.digest, 1, given.body FROM unnest($3::text[], $4::bytea[]) AS given (digest, body)
JOIN used ON used.digest = given.digest ORDER BY given.digest
ON CONFLICT (owner, digest) DO UPDATE SET conversations = prompts.conversations + 1"""
"""Keep texts that manifests name by their hash: once for each owner, with how many conversations name them. In one
order for all writers, so that two cannot wait for each other."""

PROMPTS = """
SELECT p.digest, p.body FROM prompt_uses u JOIN prompts p ON p.owner = u.owner AND p.digest = u.digest
WHERE u.owner = $1 AND u.conversation = $2 AND u.digest = ANY($3::text[])"""
"""Texts that manifests of a conversation name."""

RELEASE_PROMPTS = """
WITH released AS (
    DELETE FROM prompt_uses WHERE owner = $1 AND conversation = ANY($2::bigint[]) RETURNING digest
), counted AS (SELECT digest, count(*) AS uses FROM released GROUP BY digest)
UPDATE prompts p SET conversations = p.conversations - counted.uses FROM counted
WHERE p.owner = $1 AND p.digest = counted.digest"""
"""Conversations name their texts no longer …"""

DELETE_UNUSED_PROMPTS = "DELETE FROM prompts WHERE owner = $1 AND conversations = 0"
"""… and delete the prompts that no manifest names any more."""

# -- checkpoints -----------------------------------------------------------------------------------------------

_CHECKPOINT_COLUMNS = CHECKPOINT_COLUMNS.replace("key", "number")
_CHECKPOINT = ", ".join(f"c.{column}" for column in _CHECKPOINT_COLUMNS.split(", "))
_WRITE_COLUMNS = WRITE_COLUMNS.replace("key", "checkpoint")

THREAD = f"SELECT {THREAD_COLUMNS} FROM threads WHERE owner = $1 AND conversation = $2"
"""A conversation's row about its checkpoints as a whole."""

WRITE_THREAD = f"""
INSERT INTO threads (owner, conversation, {THREAD_COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (owner, conversation) DO UPDATE SET made = excluded.made, tip = excluded.tip, epoch = excluded.epoch,
    is_closed = excluded.is_closed, erasures = excluded.erasures"""
"""Set it."""

_CHECKPOINTS = f"SELECT {_CHECKPOINT} FROM agent_checkpoints c WHERE c.owner = $1 AND c.conversation = $2"

CHECKPOINT = f"{_CHECKPOINTS} AND c.namespace = $3 AND c.id = $4"
"""One checkpoint, shown or not."""

NEWEST_CHECKPOINT = f"""
{_CHECKPOINTS} AND c.namespace = $3 AND c.state = {CheckpointState.VISIBLE:d} ORDER BY c.id DESC LIMIT 1"""
"""The checkpoint shown with the greatest id."""

CHECKPOINTS = f"{_CHECKPOINTS} ORDER BY c.number"
"""Every checkpoint of a conversation."""

LIST_CHECKPOINTS = f"""
SELECT t.id, t.number, {_CHECKPOINT}
FROM conversations t JOIN agent_checkpoints c ON c.owner = t.owner AND c.conversation = t.number
WHERE t.owner = $1 AND ($2::text IS NULL OR t.id = $2) AND t.erased_at IS NULL AND c.state = {CheckpointState.VISIBLE:d}
  AND ($3::text IS NULL OR c.namespace = $3) AND ($4::text IS NULL OR c.id = $4) AND ($5::text IS NULL OR c.id < $5)
  AND ($6::text IS NULL OR t.id COLLATE "C" > $6
    OR t.id = $6 AND (c.namespace > $7 OR c.namespace = $7 AND c.id < $8))
ORDER BY t.id COLLATE "C", c.namespace, c.id DESC LIMIT $9"""
"""One page of the checkpoints of an owner, or of a conversation."""

ANCESTORS = f"""
WITH RECURSIVE up (depth, number, parent_id) AS (
    SELECT 0, c.number, c.parent_id FROM agent_checkpoints c
    WHERE c.owner = $1 AND c.conversation = $2 AND c.namespace = $3 AND c.id = $4
    UNION ALL
    SELECT up.depth + 1, p.number, p.parent_id
    FROM up JOIN agent_checkpoints p
      ON p.owner = $1 AND p.conversation = $2 AND p.namespace = $3 AND p.id = up.parent_id
    WHERE up.depth + 1 < $5
)
SELECT {_CHECKPOINT} FROM up
JOIN agent_checkpoints c ON c.owner = $1 AND c.conversation = $2 AND c.number = up.number ORDER BY up.depth"""
"""A checkpoint and those it was made from, nearest first."""

_IN_ORDER = 'ORDER BY checkpoint, task_path COLLATE "C", task_id, idx'

WRITES = f"""
SELECT conversation, {_WRITE_COLUMNS} FROM agent_writes
WHERE owner = $1 AND (conversation, checkpoint) IN (SELECT * FROM unnest($2::bigint[], $3::bigint[])) {_IN_ORDER}"""
"""The writes on checkpoints, in the order in which they are applied."""

HELD_WRITES = f"""
SELECT {_WRITE_COLUMNS} FROM agent_writes
WHERE owner = $1 AND conversation = $2 AND checkpoint = $3 AND is_held = 1 {_IN_ORDER}"""
"""The writes on a checkpoint that hold messages."""

ALL_WRITES = f"SELECT {_WRITE_COLUMNS} FROM agent_writes WHERE owner = $1 AND conversation = $2 {_IN_ORDER}"
"""The writes of a conversation."""

CHUNKS = "SELECT digest, body FROM blobs WHERE owner = $1 AND conversation = $2 AND get_byte(body, 0) >= 128"
"""The bytes of a conversation that are lists of others."""

PUT_CHECKPOINT = f"""
INSERT INTO agent_checkpoints (owner, conversation, {_CHECKPOINT_COLUMNS})
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
ON CONFLICT (owner, conversation, number) DO UPDATE SET parent_id = excluded.parent_id, run_id = excluded.run_id,
    state = excluded.state, log_count = excluded.log_count, branch = excluded.branch, leaf_seq = excluded.leaf_seq,
    leaf_depth = excluded.leaf_depth, body = excluded.body, metadata = excluded.metadata"""
"""Write a checkpoint, new or changed."""

SETTLE_WRITE = f"""
INSERT INTO agent_writes (owner, conversation, {_WRITE_COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
ON CONFLICT (owner, conversation, checkpoint, task_id, idx) DO UPDATE SET task_path = excluded.task_path,
    channel = excluded.channel, kind = excluded.kind, value = excluded.value, is_held = excluded.is_held"""
"""Put a write in the place of what it was."""

KEEP_WRITE = f"{SETTLE_WRITE} WHERE excluded.idx < 0"
"""Keep a write; of what a task has once the last one counts, else the first."""

KEEP_BLOB = "INSERT INTO blobs (owner, conversation, digest, body) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING"
"""Keep bytes by their digest."""

BLOBS = "SELECT digest, body FROM blobs WHERE owner = $1 AND conversation = $2 AND digest = ANY($3::bytea[])"
"""Blobs by digest."""

DIGESTS = "SELECT digest FROM blobs WHERE owner = $1 AND conversation = $2"
"""The digests of a conversation's blobs."""

DELETE_CHECKPOINTS = """
DELETE FROM agent_checkpoints WHERE owner = $1 AND conversation = $2 AND number = ANY($3::bigint[])"""
"""Remove checkpoints."""

DELETE_WRITES = """
DELETE FROM agent_writes WHERE owner = $1 AND conversation = $2 AND checkpoint = ANY($3::bigint[])"""
"""Remove the writes on checkpoints."""

DELETE_BLOBS = "DELETE FROM blobs WHERE owner = $1 AND conversation = $2 AND digest = ANY($3::bytea[])"
"""Remove bytes that nothing refers to any more."""

DELETE_UNSHARED_BLOBS = f"""
{DELETE_BLOBS}
  AND 1 = (
    SELECT count(*) FROM (SELECT 1 FROM agent_checkpoints WHERE owner = $1 AND conversation = $2 LIMIT 2) AS found)"""
"""The same if the conversation has a single checkpoint."""

OF_RUNS = """
SELECT DISTINCT t.owner, t.id
FROM agent_checkpoints c JOIN conversations t ON t.owner = c.owner AND t.number = c.conversation
WHERE c.run_id = ANY($1::text[]) AND ($2::text IS NULL OR t.owner = $2) AND t.erased_at IS NULL
ORDER BY t.owner, t.id"""
"""Conversations that have checkpoints of runs."""

WITH_HELD = """
SELECT DISTINCT t.owner, t.id
FROM agent_writes w JOIN conversations t ON t.owner = w.owner AND t.number = w.conversation
WHERE w.is_held = 1 AND ($1::text IS NULL OR t.owner = $1) AND t.erased_at IS NULL ORDER BY t.owner, t.id"""
"""Conversations with writes that hold messages."""

# -- items -----------------------------------------------------------------------------------------------------

PUT_ITEM = f"""
INSERT INTO items (owner, {ITEM_COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
ON CONFLICT (owner, namespace, key) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at,
    expires_at = excluded.expires_at, ttl_micros = excluded.ttl_micros, model = excluded.model,
    vectors = excluded.vectors"""
"""Write an item, new or changed."""

DELETE_ITEM = "DELETE FROM items WHERE owner = $1 AND namespace = $2 AND key = $3"
"""Remove an item."""

TOUCH_ITEM = """
UPDATE items SET expires_at = $1 + ttl_micros
WHERE owner = $2 AND namespace = $3 AND key = $4 AND ttl_micros IS NOT NULL"""
"""Let an item that was read live on."""

DELETE_EXPIRED_ITEMS = "DELETE FROM items WHERE owner = $1 AND expires_at <= $2"
"""Remove what has expired."""

ITEMS = f"""
SELECT {ITEM_COLUMNS} FROM items
WHERE owner = $1 AND (namespace, key) IN (SELECT * FROM unnest($2::text[], $3::text[]))
  AND (expires_at IS NULL OR expires_at > $4)"""
"""Some items."""

ITEMS_UNDER = f"""
SELECT {ITEM_COLUMNS} FROM items
WHERE owner = $1 AND (namespace = $2 OR namespace >= $3 AND namespace < $4) AND (expires_at IS NULL OR expires_at > $5)
ORDER BY updated_at DESC, namespace, key COLLATE "C" """
"""All items of a namespace and those below it."""

ITEM_NAMESPACES = """
SELECT DISTINCT namespace FROM items WHERE owner = $1 AND (expires_at IS NULL OR expires_at > $2) ORDER BY namespace"""
"""The namespaces that have items."""

DELETE_ITEMS_OF = "DELETE FROM items WHERE owner = $1"
"""Destroy the items of an owner."""

# -- imports ---------------------------------------------------------------------------------------------------

_SOURCE = "SELECT number, format, path, inode, read_bytes, head_digest, updated_at FROM import_sources"

SOURCES = f"{_SOURCE} WHERE owner = $1 ORDER BY path"
"""The files that an owner imports."""

SOURCE_AT = f"{_SOURCE} WHERE owner = $1 AND path = $2"
"""One of them."""

KEEP_SOURCE = """
INSERT INTO import_sources (owner, format, path, inode, read_bytes, head_digest, updated_at)
VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (owner, path) DO UPDATE SET format = excluded.format, inode = excluded.inode,
    read_bytes = excluded.read_bytes, head_digest = excluded.head_digest, updated_at = excluded.updated_at
RETURNING number"""
"""How far a file was read."""

KEEP_LINES = """
INSERT INTO import_lines (owner, conversation, seq, source, first_byte, line)
SELECT $1, $2, l.* FROM unnest($3::bigint[], $4::bigint[], $5::bigint[], $6::bytea[]) l
ON CONFLICT (conversation, seq, owner) DO UPDATE SET source = excluded.source, first_byte = excluded.first_byte,
    line = excluded.line
WHERE import_lines.source <> excluded.source OR import_lines.first_byte <> excluded.first_byte
   OR length(import_lines.line) < length(excluded.line)"""
"""The lines that entries came from. Of two watchers, the one that has read more of the file wins."""

LINES = """
SELECT seq, source, first_byte, line FROM import_lines
WHERE owner = $1 AND conversation = $2 AND seq > $3 ORDER BY seq LIMIT $4"""
"""The lines of a conversation, from a seq on."""

LINE_BEFORE = """
SELECT seq, first_byte, line FROM import_lines
WHERE owner = $1 AND conversation = $2 AND source = $3 AND first_byte BETWEEN 0 AND $4
ORDER BY first_byte DESC LIMIT 1 FOR UPDATE"""
"""The last line of a file before a position."""

SET_LINE = "UPDATE import_lines SET line = $4 WHERE owner = $1 AND conversation = $2 AND seq = $3"
"""What else stands between two messages."""

DETACH_LINES = "UPDATE import_lines SET first_byte = -1 WHERE owner = $1 AND conversation = $2 AND source = $3"
"""The file was rewritten: its lines have no position until they are read again."""

# -- keys and replies ------------------------------------------------------------------------------------------

ADD_KEY = f"INSERT INTO api_keys ({KEY_COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7)"
"""Keep a new key."""

KEY = f"SELECT {KEY_COLUMNS} FROM api_keys WHERE id = $1"
"""A key by its public part."""

KEYS = f"SELECT {KEY_COLUMNS} FROM api_keys WHERE $1::text IS NULL OR owner = $1 ORDER BY created_at, id"
"""The keys of an owner, or all."""

REVOKE_KEY = "UPDATE api_keys SET revoked_at = coalesce(revoked_at, $1) WHERE id = $2"
"""Make a key worthless; when it was before, it stays so since then."""

DELETE_KEYS_OF = "DELETE FROM api_keys WHERE owner = $1"
"""Destroy the keys of an owner."""

DELETE_OLD_REPLIES = "DELETE FROM replies WHERE owner = $1 AND created_at < $2"
"""Delete replies that are too old to be requested again."""

BEGIN_REPLY = """
INSERT INTO replies (owner, idempotency_key, request, headers, body, running_until, created_at)
VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (owner, idempotency_key) DO NOTHING"""
"""Say that an answer is being made."""

REPLY = f"SELECT {REPLY_COLUMNS} FROM replies WHERE owner = $1 AND idempotency_key = $2 FOR UPDATE"
"""The reply stored for a key."""

TAKE_REPLY = "UPDATE replies SET running_until = $1 WHERE owner = $2 AND idempotency_key = $3"
"""Go on with an answer whose maker died."""

RENEW_REPLY = """
UPDATE replies SET running_until = $1
WHERE owner = $2 AND idempotency_key = $3 AND request = $4 AND status IS NULL"""

KEEP_REPLY = """
UPDATE replies SET conversation = $1, status = $2, headers = $3, body = $4
WHERE owner = $5 AND idempotency_key = $6 AND request = $7 AND status IS NULL"""
"""Keep an answer, unless it was erased while it was made."""

DROP_REPLY = """
DELETE FROM replies WHERE owner = $1 AND idempotency_key = $2 AND request = $3 AND status IS NULL"""
"""Give up an answer that could not be made."""

BLANK_REPLIES = """
UPDATE replies SET request = $1, headers = $2, body = $3, status = 0
WHERE owner = $4 AND (conversation = $5 OR conversation IS NULL) AND length(request) > 0"""
"""Destroy what answers say, or may say, of a conversation; with NULL, of none that is named; the keys stay."""

DELETE_REPLIES_OF = "DELETE FROM replies WHERE owner = $1"
"""Destroy the answers to an owner."""

# -- search ----------------------------------------------------------------------------------------------------

SEARCH_SETTINGS = """
SET LOCAL enable_seqscan = off; SET LOCAL enable_sort = off; SET LOCAL max_parallel_workers_per_gather = 0;
SET LOCAL jit = off; SET LOCAL plan_cache_mode = force_custom_plan"""
"""The planner knows nothing of the words (statistics would keep erased ones): the plan is ours to choose."""

INDEX_SIZE = "SELECT greatest(reltuples, 0)::bigint FROM pg_class WHERE oid = 'words'::regclass"
"""About how many entries are indexed; 0 before the first vacuum."""

INDEX_ROWS = """
SELECT (pg_relation_size(oid) / current_setting('block_size')::integer
    * CASE WHEN reltuples > 0 AND relpages > 0 THEN reltuples / relpages ELSE 20 END)::bigint
FROM pg_class WHERE oid = 'words'::regclass"""
"""About the same by the size it has now, so that a sample of what nobody has vacuumed yet is not all of it."""

SAMPLE = """
WITH sampled AS MATERIALIZED (SELECT tokens FROM words TABLESAMPLE SYSTEM ($3::real) REPEATABLE (1))
SELECT count(*), count(*) FILTER (WHERE tokens @@ $1::text::tsquery),
    count(*) FILTER (WHERE tokens @@ $2::text::tsquery),
    array(SELECT (SELECT count(*) FROM sampled WHERE tokens @@ asked.query::tsquery)
          FROM unnest($4::text[]) WITH ORDINALITY AS asked (query, number) ORDER BY asked.number)
FROM sampled"""
"""Of a share of the index: how many entries, how many of the owner, how many that match, how many with each word."""

WALK = f"""
SELECT found.key
FROM (SELECT number FROM conversations WHERE owner = $2 AND ($4::bigint IS NULL OR number = $4) ORDER BY number DESC) c
CROSS JOIN LATERAL (
    SELECT conversation << {SEQ_BITS} | seq AS key FROM words
    WHERE owner = $2 AND conversation = c.number AND (tokens @@ $1::text::tsquery) IS TRUE
    ORDER BY seq DESC LIMIT $3) AS found
LIMIT $3"""
"""The newest entries that match, by reading an owner's entries from the newest on: for words that are common."""

LOOK_UP = f"""
WITH matching AS MATERIALIZED (SELECT owner, conversation, seq FROM words WHERE tokens @@ $1::text::tsquery)
SELECT conversation << {SEQ_BITS} | seq FROM matching
WHERE owner = $2 AND ($3::bigint IS NULL OR conversation = $3) ORDER BY conversation DESC, seq DESC LIMIT $4"""
"""An owner's newest entries that match, by the index of words: for words that are rare."""

_WANTED = "unnest($1::bigint[]) AS wanted (key)"

MATCHED_ENTRIES = f"""
SELECT c.id, wanted.key, {ENTRY}
FROM {_WANTED}
JOIN entries e ON e.owner = $2 AND e.conversation = wanted.key >> {SEQ_BITS} AND e.seq = wanted.key & {SEQ_MASK}
JOIN conversations c ON c.owner = e.owner AND c.number = e.conversation
LEFT JOIN entries place
  ON e.how = {Revision.REPLACE:d} AND place.owner = e.owner AND place.conversation = e.conversation
    AND place.seq = e.revises
WHERE c.deleted_at IS NULL AND e.newest_seq IS NULL
  AND e.flags & {HIDDEN_FLAGS:d} = 0 AND (e.how IS DISTINCT FROM {Revision.REPLACE:d} OR place.newest_seq = e.seq)
ORDER BY wanted.key DESC"""
"""The entries that matched: the newest revisions of messages that are neither deleted nor erased."""

TERM_POSTINGS_WALK = f"""
SELECT asked.number, array(
    SELECT conversation << {SEQ_BITS} | seq FROM words
    WHERE owner = $2 AND conversation = $3 AND (tokens @@ asked.query::tsquery) IS TRUE ORDER BY seq DESC LIMIT $4)
FROM unnest($1::text[]) WITH ORDINALITY AS asked (query, number) ORDER BY asked.number"""
"""Of each term the entries of one conversation that have it, newest first, by reading them all."""

TERM_POSTINGS_LOOK_UP = f"""
WITH matching AS MATERIALIZED (SELECT conversation, seq FROM words WHERE tokens @@ $1::text::tsquery)
SELECT conversation << {SEQ_BITS} | seq FROM matching ORDER BY conversation DESC, seq DESC LIMIT $2"""
"""The entries of an owner that have a term, newest first, by the index of words."""

CONVERSATION_NUMBERS = "SELECT id, number FROM conversations WHERE owner = $1 AND id = ANY($2::text[])"
"""The numbers of conversations."""

PLACED = f"""
SELECT c.id, place.conversation << {SEQ_BITS} | place.seq, place.branch, place.depth, {ENTRY}
FROM {_WANTED}
JOIN entries found
  ON found.owner = $2 AND found.conversation = wanted.key >> {SEQ_BITS} AND found.seq = wanted.key & {SEQ_MASK}
JOIN entries place ON place.owner = found.owner AND place.conversation = found.conversation
  AND place.seq = CASE WHEN found.how = {Revision.REPLACE:d} THEN found.revises ELSE found.seq END
JOIN entries e ON e.owner = place.owner AND e.conversation = place.conversation
  AND e.seq = coalesce(place.newest_seq, place.seq)
JOIN conversations c ON c.owner = place.owner AND c.number = place.conversation
WHERE c.deleted_at IS NULL AND {is_place("place")}
  AND place.flags & {HIDDEN_FLAGS:d} = 0 AND e.flags & {Flag.ERASED:d} = 0"""
"""Messages by the keys of their place or of a revision, in their newest revision; none that is deleted or erased."""

# -- erasing ---------------------------------------------------------------------------------------------------

LOCK_ERASE_TARGETS = """
SELECT number, id FROM conversations
WHERE owner = $1 AND erased_at IS NULL AND number IN (
    WITH RECURSIVE family (number) AS (
        SELECT number FROM conversations WHERE owner = $1 AND ($2::text IS NULL OR id = $2)
        UNION
        SELECT c.number FROM family JOIN conversations c ON c.owner = $1 AND c.parent_number = family.number AND $3
    )
    SELECT number FROM family
) ORDER BY number FOR UPDATE"""
"""The conversations an erase reaches; of one that was erased before, those of its subagents that are left. Nobody
writes to them until it is done."""

LEFT_BY_ERASED_PARENTS = """
SELECT c.owner, c.id FROM conversations c
JOIN conversations p ON p.owner = c.owner AND p.number = c.parent_number
WHERE c.parent_number IS NOT NULL AND c.erased_at IS NULL AND p.erased_at IS NOT NULL"""
"""What an erase left that was interrupted between a conversation and those of its subagents, as it once could be."""

_TO_ERASE = f"""
e.owner = $1 AND e.conversation = ANY($2::bigint[]) AND ($3::text IS NULL OR e.id = $3 AND e.kind <> {Kind.MARK:d})"""
_OF_ERASED = f"(owner, conversation, seq) IN (SELECT e.owner, e.conversation, e.seq FROM entries e WHERE {_TO_ERASE})"

DELETE_WORDS = f"DELETE FROM words WHERE {_OF_ERASED}"
"""Take the tokens of these entries out of the index."""

BLANK_ENTRIES = f"""
UPDATE entries e
SET raw = NULL, salt = NULL, tokens = 0, flags = e.flags | 4, updated_at = $4,
    commitment = coalesce(
        (SELECT p.commitment FROM payloads p
         WHERE p.owner = e.owner AND p.conversation = e.conversation AND p.seq = e.seq),
        sha256(e.salt || coalesce(e.raw, (
            SELECT p.body FROM payloads p
            WHERE p.owner = e.owner AND p.conversation = e.conversation AND p.seq = e.seq))),
        e.commitment)
WHERE {_TO_ERASE} AND e.flags & {Flag.ERASED:d} = 0"""
"""Destroy payloads and salts; the commitment, as `core.chain.commit` makes it, keeps the chain provable."""

DELETE_COMPACTIONS = "DELETE FROM compactions WHERE owner = $1 AND conversation = ANY($2::bigint[])"
"""Destroy every summary of conversations."""

DELETE_COMPACTIONS_BY_ID = """
DELETE FROM compactions WHERE owner = $1 AND conversation = $2 AND id = ANY($3::text[])"""
"""Destroy the summaries that speak of an erased message."""

DOOM_BLOBS = f"""
INSERT INTO doomed_blobs (name, doomed_at)
SELECT DISTINCT p.blob, $4::bigint
FROM payloads p JOIN entries e ON e.owner = p.owner AND e.conversation = p.conversation AND e.seq = p.seq
WHERE p.blob IS NOT NULL AND {_TO_ERASE}
ON CONFLICT (name) DO NOTHING"""
"""Note the blobs of these entries."""

DELETE_PAYLOADS = f"DELETE FROM payloads WHERE {_OF_ERASED}"
"""Destroy large payloads."""

DELETE_FACTS = f"DELETE FROM message_facts WHERE {_OF_ERASED}"
"""Destroy what was found in these entries."""

DELETE_LINES = f"DELETE FROM import_lines WHERE {_OF_ERASED}"
"""Destroy the lines they were imported from."""

DELETE_USAGE = "DELETE FROM model_usage WHERE owner = $1 AND conversation = ANY($2::bigint[])"
"""Forget what calls of models used in conversations."""

DELETE_SOURCES_OF = "DELETE FROM import_sources WHERE owner = $1"
"""Forget which files an owner imported."""

DELETE_CHECKPOINTS_ABOUT = """
DELETE FROM agent_checkpoints
WHERE owner = $1 AND conversation = ANY($2::bigint[])
  AND ($3::bytea IS NULL OR position($3 IN body) > 0 OR position($3 IN metadata) > 0)"""
"""Destroy checkpoints of conversations, or those that hold some bytes in a small value of their own."""

DELETE_WRITES_ABOUT = """
DELETE FROM agent_writes
WHERE owner = $1 AND conversation = ANY($2::bigint[]) AND ($3::bytea IS NULL OR position($3 IN value) > 0)"""
"""Destroy writes of conversations, or those that hold some bytes."""

DELETE_BLOBS_ABOUT = """
DELETE FROM blobs
WHERE owner = $1 AND conversation = ANY($2::bigint[]) AND ($3::bytea IS NULL OR position($3 IN body) > 0)"""
"""Destroy the bytes of conversations' checkpoints, or those that hold some bytes."""

NOTE_ERASURE = "UPDATE threads SET erasures = erasures + 1 WHERE owner = $1 AND conversation = ANY($2::bigint[])"
"""Count an erasure, so that caches of these checkpoints are not used any more."""

ENTRIES_TO_ERASE = f"""
SELECT {ENTRY} FROM entries e WHERE {_TO_ERASE} AND e.flags & {Flag.ERASED:d} = 0 ORDER BY e.conversation, e.seq"""
"""The entries of a message that still have their payload."""

SEQS_OF = f"SELECT e.seq FROM entries e WHERE {_TO_ERASE}"
"""The seqs of a message's revisions."""

ANSWERS = """
SELECT conversation, idempotency_key, body, receipts FROM answers
WHERE owner = $1 AND conversation = ANY($2::bigint[])"""
"""Every answer of conversations."""

BLANK_ANSWER = """
UPDATE answers SET body = $4, receipts = $5 WHERE owner = $1 AND conversation = $2 AND idempotency_key = $3"""
"""Leave of an answer only its key."""

DELETE_ANSWERS = "DELETE FROM answers WHERE owner = $1 AND conversation = ANY($2::bigint[])"
"""Forget the answers of conversations: the hash of a short body could be guessed."""

TITLES = "SELECT number, id, title FROM conversations WHERE owner = $1 AND number = ANY($2::bigint[])"
"""The titles of conversations."""

BLANK_TITLE = "UPDATE conversations SET title = NULL WHERE owner = $1 AND number = $2"
"""Take a conversation's title away, which quotes an erased message."""

BLANK_CONVERSATIONS = """
UPDATE conversations SET title = NULL, metadata = '{}', erased_at = $3, updated_at = $3
WHERE owner = $1 AND number = ANY($2::bigint[])"""
"""Make the rows of conversations tombstones."""

INSERT_ERASURE = "INSERT INTO erasures (owner, conversation, message, erased_at) VALUES ($1, $2, $3, $4)"
"""Remember an erasure, to apply it again after a restore."""

ERASURES = "SELECT owner, conversation, message, erased_at FROM erasures ORDER BY number"
"""Everything ever erased."""

UNFINISHED_ERASURES = "SELECT number FROM erasures WHERE finished_at IS NULL"
"""Erasures whose bytes may still lie in the tables' files."""

FINISH_ERASURES = "UPDATE erasures SET finished_at = $2 WHERE number = ANY($1::bigint[])"
"""Note that the tables were rewritten."""

TRY_ERASE_LOCK = "SELECT pg_try_advisory_lock(7310580731)"
"""Rewrite one after the other, whichever process begins. Who waits for it tries again, because a statement that
waits is a transaction, which would hold up the rewrite that it waits for."""

NEXT_TRANSACTION = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text"
"""A number that all finished transactions are below of."""

OLDER_TRANSACTIONS = """
SELECT pg_snapshot_xmin(pg_current_snapshot()) < $1::text::xid8 OR EXISTS (
    SELECT FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()
      AND age(backend_xmin) > age($1::text::xid8::xid))"""
"""Whether transactions run that may still see what was there before: a rewrite would keep it for them. One that writes
holds it up from whichever database, since every snapshot, that of the rewrite too, reaches back to it."""

REWRITTEN_TABLES = (
    "conversations", "conversation_changes", "entries", "payloads", "answers", "compactions", "manifests", "prompts",
    "message_facts", "agent_checkpoints", "agent_writes", "blobs", "turns", "run_events", "replies", "words", "vectors",
    "notes", "uses", "items", "api_keys", "import_sources", "import_lines", "everthread_jobs.procrastinate_jobs",
)  # fmt: skip
"""The tables an erase takes text from."""

ASIDE = "everthread_replacing"
"""The schema into which a restore moves the tables it replaces."""

HAS_ASIDE = f"SELECT to_regnamespace('{ASIDE}') IS NOT NULL"
"""Whether a restore was cut off, and left them there."""

REWRITE_PATIENCE = "SET lock_timeout = '10s'; SET statement_timeout = 0"
"""How long a rewrite waits for those who read a table, while newcomers wait behind it; itself it may take long."""

REWRITE = "VACUUM (FULL, ANALYZE) {table}"
"""Rewrite a table and its indexes without dead rows, and its statistics, which hold common values of its columns;
the table's name comes from the fixed list."""

FILES = "SELECT pg_relation_filenode(name::regclass) FROM unnest($1::text[]) AS name"
"""The files of tables: other ones after a rewrite."""

STALE_OFF_RECORD = "SELECT owner, id FROM conversations WHERE off_record = 1 AND erased_at IS NULL AND updated_at < $1"
"""Off-record conversations that a crash left behind."""

# -- looking after the whole -----------------------------------------------------------------------------------

MIGRATION_LOCK = "SELECT pg_advisory_lock(7310580730)"
"""Migrate one after the other, whichever process begins."""

HAS_VERSION = "SELECT to_regclass($1) IS NOT NULL"
"""Whether there is a table that tells the version of the tables."""

HAS_SCHEMA = "SELECT to_regnamespace($1) IS NOT NULL"
"""Whether there is a schema by this name."""

DELETE_VERSION = "DELETE FROM schema_version"
"""The version before …"""

INSERT_VERSION = "INSERT INTO schema_version (version) VALUES ($1)"
"""… and the one after a step."""

STATS = {
    "conversations": "SELECT count(*) FROM conversations WHERE erased_at IS NULL",
    "messages": f"SELECT count(*) FROM entries e WHERE {is_place('e')} AND e.flags & {Flag.ERASED:d} = 0",
    "entries": "SELECT count(*) FROM entries",
    "erased_entries": f"SELECT count(*) FROM entries WHERE flags & {Flag.ERASED:d} <> 0",
    "flagged_secrets": f"SELECT count(*) FROM entries WHERE flags & {Flag.SECRET:d} <> 0",
    "owners": "SELECT count(DISTINCT owner) FROM conversations",
    "jobs_waiting": JOBS_IN_STATE.format(status="todo"),
    "jobs_dead": JOBS_IN_STATE.format(status="failed"),
    "payload_bytes": """
SELECT (SELECT coalesce(sum(octet_length(raw)), 0) FROM entries)
    + (SELECT coalesce(sum(octet_length(body) + coalesce(blob_bytes, 0)), 0) FROM payloads)""",
    "database_bytes": "SELECT pg_database_size(current_database())",
}
"""The counts of `everthread stats`."""

_TOKENS_TO_RENEW = 1_000
SOME_WORDS = f"""
SELECT conversation, seq, owner, tsvector_to_array(tokens) FROM words
WHERE (conversation, seq, owner) > ($1, $2, $3) AND tokens::text ~ $4
ORDER BY conversation, seq, owner LIMIT {_TOKENS_TO_RENEW}"""
"""The next entries of the index with one of these letters."""

RENEW_WORDS = """
UPDATE words SET tokens = array_to_tsvector($4::text[]) WHERE conversation = $1 AND seq = $2 AND owner = $3"""
"""Put other tokens of an entry into the index."""

SOME_NOTES = f"""
SELECT owner, number, tsvector_to_array(tokens) FROM notes
WHERE (owner, number) > ($1, $2) AND tokens::text ~ $3 ORDER BY owner, number LIMIT {_TOKENS_TO_RENEW}"""
"""The next notes with one of these letters among their tokens."""

RENEW_NOTE = "UPDATE notes SET tokens = array_to_tsvector($3::text[]) WHERE owner = $1 AND number = $2"
"""Put other tokens of a note into the index."""
