"""The SQL of the SQLite store's log, views, turns and jobs, by name: one statement, one sentence. All values are bound.

What fits one of its other modules alone is there: the search index, packing, erasing, backups.
"""

from __future__ import annotations

from collections.abc import Mapping

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

PAGE = 1024
"""Bytes of a page of a new file. Packed messages fill such pages as well as larger ones; each of the many tables that
have a few rows takes a whole page."""

BUSY_SECONDS = 30
"""How long a writer waits for its turn when other processes write to the same file."""

PRAGMAS = (
    "PRAGMA synchronous = FULL",
    "PRAGMA temp_store = MEMORY",
    "PRAGMA cache_size = -16000",
)
"""FULL: a commit is on the disk when it returns, also after a power cut."""

WAL_BYTES = 8_192_000
"""So long the WAL grows before its pages are copied: words and ids come in no order, so each batch changes other pages
of their index, and the longer they stay in the WAL the fewer are copied twice. But while its file grows each commit
has more to sync: twice as long, and a conversation of 1,000 messages paid more for that than one of 100,000 gained."""

CHECKPOINT_AFTER = "PRAGMA wal_autocheckpoint = {}"
"""The same in pages, whose size an older file has from its beginning."""

WAIT = f"PRAGMA busy_timeout = {BUSY_SECONDS * 1000}"
"""Wait for other processes as long as ever."""

WAIT_BRIEFLY = "PRAGMA busy_timeout = 1000"
"""Wait for other processes no longer than a usual call of theirs takes."""

USE_PAGES = f"PRAGMA page_size = {PAGE}"
"""Holds for a file that is new; SQLite leaves the others as they are."""

USE_WAL = "PRAGMA journal_mode = WAL"
"""Readers beside the writer; noted in the file, so only the first connection ever changes it."""

PAGE_BYTES = "PRAGMA page_size"
"""How large the pages of a file are."""

SCHEMA_NUMBER = "PRAGMA schema_version"
"""Reads the beginning of the file, and nothing else."""

VERSION_TABLES = "SELECT name FROM sqlite_schema WHERE name IN ('schema_version', 'alembic_version')"
"""The table that tells the version of a file's tables, or the one that did before the first release."""

DELETE_VERSION = "DELETE FROM schema_version"
"""The version before …"""

INSERT_VERSION = "INSERT INTO schema_version (version) VALUES (?)"
"""… and the one after a step."""

READER_PRAGMAS = ("PRAGMA query_only = ON", "PRAGMA cache_size = -2000")
"""A reader streams more than it looks at twice: the operating system's cache is enough, and memory stays small."""

RAW = """coalesce(unpacked(e.raw, e.id), (
    SELECT CASE WHEN p.blob IS NULL THEN unpacked(p.body, e.id) ELSE blob(p.blob) END
    FROM payloads p WHERE p.key = e.key))"""
"""A payload, from wherever it is; `blob` and `unpacked` are our own functions (`blobs`, `packing`)."""

ENTRY = f"""
e.key & {SEQ_MASK}, e.id, e.kind, e.role, e.revises, e.how, e.revision, e.parent_seq, e.branch, e.depth, e.created_at,
e.tokens, e.salt, e.chain, {RAW},
e.commitment, e.newest_seq, e.flags, e.updated_at, e.origin, e.chain_version"""
"""The columns of an `Entry`, in its order."""

_CONVERSATION = (
    f"SELECT {CONVERSATION_COLUMNS} FROM conversations c LEFT JOIN conversations p ON p.number = c.parent_number"
)

CREATE_CONVERSATION = """
INSERT INTO conversations (owner, id, parent_number, title, metadata, is_active, off_record, created_at, updated_at,
    entry_count, chain, active_branch)
VALUES (?, ?, ?, ?, ?, 1, ?, ?, ?, 0, ?, 0)"""
"""A conversation starts active and empty."""

INSERT_BRANCH = """
INSERT OR REPLACE INTO branches (conversation, number, parent, fork_seq, leaf_seq, leaf_depth, created_at)
VALUES (?, ?, ?, ?, ?, ?, ?)"""
"""Write a branch, new or as another one becomes active."""

CONVERSATION_STATE = "SELECT number, erased_at, off_record FROM conversations WHERE owner = ? AND id = ?"
"""Whether an owner has, or had, a conversation."""

GET_CONVERSATION = f"{_CONVERSATION} WHERE c.owner = ? AND c.id = ? AND c.erased_at IS NULL"
"""One conversation of one owner."""

_LISTED = "c.owner = :owner AND c.erased_at IS NULL AND (:include_deleted OR c.deleted_at IS NULL)"
_PAGES: Mapping[ListOrder, str] = {
    "created": "c.number < :before ORDER BY c.number DESC LIMIT :limit",
    "said": f"({LISTED_AT}, c.number) < (:said_before, :before) ORDER BY {LISTED_AT} DESC, c.number DESC LIMIT :limit",
}

LIST_CONVERSATIONS = {order: f"{_CONVERSATION} WHERE {_LISTED} AND {page}" for order, page in _PAGES.items()}
"""One page of an owner's conversations, newest first."""

LIST_CHILDREN = {
    order: f"""
{_CONVERSATION}
WHERE c.parent_number = (SELECT number FROM conversations WHERE owner = :owner AND id = :parent)
  AND {_LISTED} AND {page}"""
    for order, page in _PAGES.items()
}
"""One page of a conversation's children, newest first."""

ALL_CONVERSATIONS = f"{_CONVERSATION} ORDER BY c.number"
"""Every conversation of every owner, erased ones too."""

UPDATE_CONVERSATION = (
    "UPDATE conversations SET {column} = ?, updated_at = ? WHERE owner = ? AND id = ? AND erased_at IS NULL"
)
"""Set one column; the column's name comes from a fixed list, never from a caller."""

_CHANGE = "number, changed_at, salt, commitment, chain"

CHANGES = f"""
SELECT {_CHANGE} FROM conversation_changes
WHERE conversation = (SELECT number FROM conversations WHERE owner = ? AND id = ?) AND number > ?
ORDER BY number LIMIT ?"""
"""The chain over a conversation's settings, a page of it."""

NEWEST_CHANGE = f"SELECT {_CHANGE} FROM conversation_changes WHERE conversation = ? ORDER BY number DESC LIMIT 1"
"""The last link of that chain."""

NEWEST_CHANGES = """
SELECT c.owner, c.id, max(s.number), s.changed_at, s.salt, s.commitment, s.chain
FROM conversation_changes s JOIN conversations c ON c.number = s.conversation GROUP BY s.conversation"""
"""The last link of each of these chains; with `max`, SQLite takes the other columns from the same row."""

INSERT_CHANGE = f"INSERT INTO conversation_changes (conversation, {_CHANGE}) VALUES (?, ?, ?, ?, ?, ?)"
"""Commit to what a conversation's row says now."""

BLANK_CHANGES = "UPDATE conversation_changes SET salt = NULL WHERE conversation = ? AND salt IS NOT NULL"
"""Destroy the salts of what it said before."""

LOG_HEAD = """
SELECT c.number, c.owner, c.id, c.entry_count, c.chain, c.active_branch, c.erased_at IS NOT NULL, c.off_record,
    c.compaction_check_at, b.number, b.parent, b.fork_seq, c.leaf_seq, c.leaf_depth, b.created_at
FROM conversations c JOIN branches b ON b.conversation = c.number AND b.number = c.active_branch
WHERE c.owner = ? AND c.id = ?"""
"""The end of a log and its active branch."""

ORIGINS = f"SELECT DISTINCT origin, role FROM entries WHERE key > ? AND key <= ? AND kind <> {Kind.MARK:d}"
"""Which doors a log was written through."""

BRANCHES = """
SELECT b.number, b.parent, b.fork_seq, iif(b.number = c.active_branch, c.leaf_seq, b.leaf_seq),
    iif(b.number = c.active_branch, c.leaf_depth, b.leaf_depth), b.created_at
FROM branches b JOIN conversations c ON c.number = b.conversation WHERE b.conversation = ? ORDER BY b.number"""
"""Every branch of a conversation; where the active one ends is in the conversation's row."""

ENTRIES_BY_KEY = f"SELECT {ENTRY} FROM entries e WHERE e.key IN ({{}}) ORDER BY e.key"
"""Some entries; the braces take as many question marks as there are keys."""

INDEXED_SEQS = "SELECT seq FROM entry_ids WHERE conversation = ? AND hash IN ({})"
"""The seqs of ids by the index, and of others with the same hashes."""

INDEXED_HASHES_AFTER = "SELECT hash FROM entry_ids WHERE conversation = ? AND hash > ? ORDER BY hash LIMIT ?"
"""The next hashes of a conversation's ids in the index."""

PENDING_SEQS = f"""
SELECT key & {SEQ_MASK} FROM entries
WHERE key > (? << {SEQ_BITS}) + coalesce((SELECT seq FROM entry_ids_until WHERE conversation = ?), 0) AND key <= ?
  AND id IN ({{}})"""
"""The seqs of ids that are not in the index yet."""

PENDING_IDS = f"""
SELECT key & {SEQ_MASK}, CAST(id AS TEXT) FROM entries
WHERE key > ? AND key <= ? AND kind <> {Kind.MARK:d} ORDER BY key"""
"""The ids in a stretch of a log."""

IDS_INDEXED_UNTIL = "SELECT seq FROM entry_ids_until WHERE conversation = ?"
"""Up to where the ids of a log are in the index; no row when none is."""

INSERT_ENTRY_ID = "INSERT OR IGNORE INTO entry_ids (conversation, hash, seq) VALUES (?, ?, ?)"
"""Put an id into the index, which another process may have done meanwhile."""

SET_IDS_INDEXED_UNTIL = """
INSERT INTO entry_ids_until (conversation, seq) VALUES (?, ?)
ON CONFLICT (conversation) DO UPDATE SET seq = max(seq, excluded.seq)"""
"""Note up to where the ids of a log are in the index."""

CHAIN_AT = "SELECT chain FROM entries WHERE key = ?"
"""The link of the chain that one entry has."""

ENTRY_BY_KEY = f"SELECT {ENTRY} FROM entries e WHERE e.key = ?"
"""One entry."""

SCAN = f"SELECT {ENTRY} FROM entries e WHERE e.key > ? AND e.key <= ? ORDER BY e.key LIMIT ?"
"""The log itself, in order."""

FRAMEWORK_ENTRIES = f"""
SELECT {ENTRY} FROM entries e
WHERE e.key > ? AND e.key <= ?
  AND (e.kind = {Kind.SUMMARY:d} OR (e.kind = {Kind.MARK:d} AND e.how = {Mark.REMOVED:d})) ORDER BY e.key"""
"""Summaries of frameworks, and marks of what they removed from their lists."""

PATH = f"""
SELECT {ENTRY} FROM entries e
WHERE e.key > ? AND e.key < ? AND e.branch = ? AND {is_place("e")} AND e.flags & ? = 0
ORDER BY e.key LIMIT ?"""
"""Places of one stretch of a branch, oldest first."""

PATH_NEWEST_FIRST = PATH.replace("ORDER BY e.key LIMIT", "ORDER BY e.key DESC LIMIT")
"""The same, newest first."""

ANSWER = "SELECT idempotency_key, body, receipts FROM answers WHERE conversation = ? AND idempotency_key = ?"
"""The receipts that were returned for an idempotency key."""

INSERT_ANSWER = "INSERT INTO answers (conversation, idempotency_key, body, receipts, created_at) VALUES (?, ?, ?, ?, ?)"
"""Remember an answer."""

INSERT_ENTRY = f"""
INSERT INTO entries ({INSERT_COLUMNS})
VALUES (?, ?, ?, ?, nullif(?, -1), nullif(?, -1), ?, ?, ?, ?, ?, ?, ?, ?, packed(?, ?), ?, ?, ?)"""
"""Write an entry, -1 for what it does not revise, and its id once more after its payload; nothing ever changes these
columns but an erase."""

INSERT_PAYLOAD = """
INSERT INTO payloads (key, body, blob, blob_bytes, commitment)
VALUES (?, packed(?, (SELECT id FROM entries WHERE key = ?)), ?, ?, ?)"""
"""Write a payload that is too large for its entry's row, or the name of the blob that holds it; its key once more after
the payload."""

BLOB_OF = "SELECT blob, commitment FROM payloads WHERE key = ?"
"""Which blob holds a payload, if one does, and what the payload is committed to."""

BLOB_NAMES = "SELECT DISTINCT blob, blob_bytes FROM payloads WHERE blob IS NOT NULL"
"""Every blob that is referred to."""

HAS_BLOB = "SELECT 1 FROM payloads WHERE blob = ? LIMIT 1"
"""Whether something refers to a blob."""

DOOM_BLOB = "INSERT OR IGNORE INTO doomed_blobs (name, doomed_at) VALUES (?, ?)"
"""Note a blob of what was erased."""

DOOMED_BLOBS = "SELECT name FROM doomed_blobs"
"""Blobs that are still to be deleted."""

FORGET_DOOMED = "DELETE FROM doomed_blobs WHERE name = ?"
"""Note that a blob was deleted, or is needed again."""

NOTE_UNINDEXED = "INSERT OR IGNORE INTO unindexed (conversation, after_seq) VALUES (?, ?)"
"""Note up to where a log is indexed, unless that is noted already; `indexing` does the rest."""

TO_INDEX = """
SELECT e.key, e.kind, e.role, e.how, e.flags, e.tokens, e.chain, e.created_at
FROM entries e WHERE e.key > ? AND e.key <= ? ORDER BY e.key LIMIT ?"""
"""The columns that the index needs of the entries it has not reached, except their payloads."""

WAITING_MESSAGES = f"""
SELECT e.key, {RAW} FROM entries e
WHERE e.key > ? AND e.key <= ? AND e.kind = {Kind.MESSAGE:d} AND e.flags & {Flag.ERASED:d} = 0 ORDER BY e.key"""
"""The messages among them that are not erased, for one who looks through them."""

PAYLOAD = f"SELECT {RAW} FROM entries e WHERE e.key = ?"
"""The payload of an entry, if the writer does not have it in memory."""

UNINDEXED = """
SELECT u.conversation, u.after_seq, u.counted_seq, c.owner, c.entry_count
FROM unindexed u JOIN conversations c ON c.number = u.conversation LIMIT 1"""
"""A log that the index is behind of."""

INDEXED_UNTIL = "SELECT after_seq FROM unindexed WHERE conversation = ?"
"""Up to where a log is indexed; no row when that is all of it."""

WAITING = """
SELECT c.entry_count - u.after_seq FROM conversations c JOIN unindexed u ON u.conversation = c.number
WHERE c.owner = ? AND c.id = ?"""
"""How many entries of a log wait for the index; no row when none does."""

MOVE_UNINDEXED = "UPDATE unindexed SET after_seq = ? WHERE conversation = ?"
"""Note that a part of the rest is indexed."""

DELETE_UNINDEXED = "DELETE FROM unindexed WHERE conversation = ?"
"""Note that all of a log is indexed."""

INSERT_WORDS = "INSERT INTO words (rowid, tokens) VALUES (?, ?)"
"""Put an entry's tokens into the index."""

SET_TOKENS = "UPDATE entries SET tokens = ? WHERE key = ?"
"""Note how many tokens an entry has."""

DELETE_WORDS = "INSERT INTO words (words, rowid, tokens) VALUES ('delete', ?, ?)"
"""Take an entry's tokens out of the index: the very tokens that were put in."""

TOUCH = """
UPDATE entries SET newest_seq = coalesce(?, newest_seq), flags = (flags | ?) & ~?, updated_at = ?,
    commitment = coalesce(?, commitment) WHERE key = ?"""
"""Project a later entry onto the row of the one it speaks of."""

ADVANCE = """
UPDATE conversations
SET entry_count = ?, chain = ?, active_branch = ?, leaf_seq = ?, leaf_depth = ?, compaction_check_at = ?,
    updated_at = ?, last_said_at = max(coalesce(last_said_at, ?), coalesce(?, last_said_at))
WHERE number = ?"""
"""Move the head of a log."""

SET_COMPACTION_CHECK_AT = "UPDATE conversations SET compaction_check_at = ? WHERE number = ?"
"""Move the mark at which a compaction is worth a look."""

MATCH = "SELECT rowid FROM words WHERE words MATCH ? AND rowid BETWEEN ? AND ? ORDER BY rowid DESC"
"""Entries that match, newest first; the reader stops when it has enough."""

MATCH_COUNT = "SELECT count(*) FROM (SELECT 1 FROM words WHERE words MATCH ? AND rowid BETWEEN ? AND ? LIMIT ?)"
"""How many entries match, counted up to a cap."""

SCOPE_SIZE = """
SELECT coalesce(sum(entry_count), 0)
FROM (
    SELECT entry_count FROM conversations WHERE owner = ? AND (? IS NULL OR id = ?) ORDER BY number DESC LIMIT 1000)"""
"""About how many messages an owner, or one conversation, has."""

OWNER_SHARE = "SELECT (SELECT count(*) FROM conversations WHERE owner = ?), (SELECT max(number) FROM conversations)"
"""How many conversations an owner has, and about how many there are."""

OWNED = """
SELECT c.number FROM json_each(?) AS wanted CROSS JOIN conversations c ON c.number = wanted.value WHERE c.owner = ?"""
"""Which of these conversations somebody owns. CROSS: else SQLite goes through all of the owner's for each."""

OWNER = "SELECT owner FROM conversations WHERE number = ?"
"""The owner of a conversation."""

MATCHED_ENTRY = f"""
SELECT c.id, e.key, {ENTRY}
FROM entries e JOIN conversations c ON c.number = e.key >> {SEQ_BITS}
LEFT JOIN entries place ON e.how = {Revision.REPLACE:d} AND place.key = (e.key & ~{SEQ_MASK}) | e.revises
WHERE e.key = ? AND c.owner = ? AND c.deleted_at IS NULL AND e.newest_seq IS NULL AND e.flags & {HIDDEN_FLAGS:d} = 0
  AND (e.how IS NOT {Revision.REPLACE:d} OR place.newest_seq = e.key & {SEQ_MASK})"""
"""An entry that matched, if it is the newest revision of a message that is neither deleted nor erased."""

TERM_POSTINGS = "SELECT json_group_array(rowid) FROM words WHERE words MATCH ? AND rowid BETWEEN ? AND ?"
"""The entries that have a term, as one list: thousands of rows would cost twice the time."""

NEWEST_TERM_POSTINGS = """
SELECT json_group_array(rowid) FROM (
    SELECT rowid FROM words WHERE words MATCH ? AND rowid BETWEEN ? AND ? ORDER BY rowid DESC LIMIT ?)"""
"""The newest so many of them; to count them, newest first, takes a third longer."""

NUMBER = "SELECT number FROM conversations WHERE owner = ? AND id = ?"
"""The number of a conversation."""

PLACED = f"""
SELECT c.id, place.key, place.branch, place.depth, {ENTRY}
FROM json_each(?) AS wanted
JOIN entries found ON found.key = wanted.value
JOIN entries place ON place.key = CASE
    WHEN found.how = {Revision.REPLACE:d} THEN (found.key & ~{SEQ_MASK}) | found.revises ELSE found.key END
JOIN entries e ON e.key = (place.key & ~{SEQ_MASK}) | coalesce(place.newest_seq, place.key & {SEQ_MASK})
JOIN conversations c ON c.number = place.key >> {SEQ_BITS}
WHERE c.owner = ? AND c.deleted_at IS NULL AND {is_place("place")}
  AND place.flags & {HIDDEN_FLAGS:d} = 0 AND e.flags & {Flag.ERASED:d} = 0"""
"""Messages by the keys of their place or of a revision, in their newest revision; none that is deleted or erased."""

ERASE_TARGETS = """
WITH RECURSIVE family (number) AS (
    SELECT number FROM conversations WHERE owner = :owner AND (:id IS NULL OR id = :id)
    UNION
    SELECT c.number FROM family JOIN conversations c ON c.parent_number = family.number AND :with_children
)
SELECT c.number, c.id FROM family JOIN conversations c ON c.number = family.number
WHERE c.erased_at IS NULL ORDER BY c.number"""
"""The conversations an erase reaches; of one that was erased before, those of its subagents that are left."""

LEFT_BY_ERASED_PARENTS = """
SELECT c.owner, c.id FROM conversations c JOIN conversations p ON p.number = c.parent_number
WHERE c.parent_number IS NOT NULL AND c.erased_at IS NULL AND p.erased_at IS NOT NULL"""
"""What an erase left that was interrupted between a conversation and those of its subagents, as it once could be."""

ENTRIES_TO_ERASE = f"""
SELECT {ENTRY} FROM entries e
WHERE e.key > ? AND e.key <= ? AND e.flags & {Flag.ERASED:d} = 0 AND (? IS NULL OR e.id = ? AND e.kind <> {Kind.MARK:d})
ORDER BY e.key LIMIT 500"""
"""Entries of a conversation, or of one message in all its revisions, that still have their payload."""

BLANK_ENTRY = """
UPDATE entries SET raw = NULL, salt = NULL, commitment = ?, tokens = 0, flags = flags | 4, updated_at = ?
WHERE key = ?"""
"""Destroy payload and salt; the commitment keeps the chain provable."""

DELETE_PAYLOAD = "DELETE FROM payloads WHERE key = ?"
"""Destroy a large payload."""

ANSWERS = "SELECT idempotency_key, body, receipts FROM answers WHERE conversation = ?"
"""Every answer of a conversation."""

BLANK_ANSWER = "UPDATE answers SET body = ?, receipts = ? WHERE conversation = ? AND idempotency_key = ?"
"""Leave of an answer only its key."""

DELETE_ANSWERS = "DELETE FROM answers WHERE conversation = ?"
"""Forget the answers of a conversation: the hash of a short body could be guessed."""

TITLE = "SELECT title FROM conversations WHERE number = ?"
"""The title of a conversation."""

BLANK_TITLE = "UPDATE conversations SET title = NULL WHERE number = ?"
"""Take a conversation's title away, which quotes an erased message."""

BLANK_CONVERSATION = (
    "UPDATE conversations SET title = NULL, metadata = '{}', erased_at = ?, updated_at = ? WHERE number = ?"
)
"""Make a conversation's row a tombstone."""

INSERT_ERASURE = "INSERT INTO erasures (owner, conversation, message, erased_at) VALUES (?, ?, ?, ?)"
"""Remember an erasure, to apply it again after a restore."""

ERASURES = "SELECT owner, conversation, message, erased_at FROM erasures ORDER BY number"
"""Everything ever erased."""

UNFINISHED_ERASURES = "SELECT count(*) FROM erasures WHERE finished_at IS NULL"
"""Erasures whose bytes may still lie in free pages."""

NEWEST_ERASURE = "SELECT max(number) FROM erasures"
"""The last erasure that a rewrite which begins now will have removed from the file."""

FINISH_ERASURES = "UPDATE erasures SET finished_at = ? WHERE finished_at IS NULL AND number <= ?"
"""Note that the file was rewritten; not for what another process erased meanwhile."""

OFF_RECORD = "SELECT owner, id FROM conversations WHERE off_record = 1 AND erased_at IS NULL"
"""Conversations that are to be erased at close."""

STALE_OFF_RECORD = f"{OFF_RECORD} AND updated_at < ?"
"""Off-record conversations that a crash left behind."""

STATS = {
    "conversations": "SELECT count(*) FROM conversations WHERE erased_at IS NULL",
    "messages": f"SELECT count(*) FROM entries e WHERE {is_place('e')} AND e.flags & {Flag.ERASED:d} = 0",
    "entries": "SELECT count(*) FROM entries",
    "erased_entries": f"SELECT count(*) FROM entries WHERE flags & {Flag.ERASED:d} <> 0",
    "flagged_secrets": f"SELECT count(*) FROM entries WHERE flags & {Flag.SECRET:d} <> 0",
    "owners": "SELECT count(DISTINCT owner) FROM conversations",
    "jobs_waiting": "SELECT count(*) FROM jobs WHERE state = 0",
    "jobs_dead": "SELECT count(*) FROM jobs WHERE state = 2",
    "payload_bytes": """
SELECT (SELECT coalesce(sum(length(unpacked(raw, id))), 0) FROM entries)
    + (SELECT coalesce(sum(length(unpacked(body, id)) + coalesce(blob_bytes, 0)), 0)
       FROM payloads JOIN entries USING (key))""",
    "database_bytes": "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()",
}
"""The counts of `everthread stats`."""

IS_OFF_RECORD = "SELECT off_record FROM conversations WHERE number = ?"
"""Whether a conversation was kept out of the index."""

# -- views -----------------------------------------------------------------------------------------------------

COMPACTIONS_FROM = """
SELECT id, branch, last_seq FROM compactions INDEXED BY compactions_by_start
WHERE conversation = ? AND after_seq = ? AND undone_at IS NULL AND invalid_at IS NULL
ORDER BY level DESC, last_seq DESC"""
"""The live compactions that begin at one place, the highest first; by itself SQLite would read all of them."""

COMPACTIONS_OVER = f"""
SELECT {COMPACTION_COLUMNS} FROM compactions
WHERE conversation = ? AND last_seq >= ? AND after_seq <= ? AND invalid_at IS NULL"""
"""The compactions, live or undone, whose stretch meets or touches another one."""

EVERY_COMPACTION_OVER = COMPACTIONS_OVER.removesuffix(" AND invalid_at IS NULL")
"""The same, invalid ones too."""

UNDONE_COMPACTIONS = """
SELECT branch, last_seq FROM compactions
WHERE conversation = ? AND last_seq > ? AND undone_at IS NOT NULL AND invalid_at IS NULL"""
"""The last seqs of undone compactions that reach beyond a place."""

COMPACTION = f"SELECT {COMPACTION_COLUMNS} FROM compactions WHERE conversation = ? AND id = ?"
"""One compaction."""

COMPACTION_PAGE = f"""
SELECT {COMPACTION_COLUMNS} FROM compactions
WHERE conversation = ? AND (created_at, id) > (?, ?) ORDER BY created_at, id LIMIT ?"""
"""A page of every compaction of a conversation, oldest first."""

INSERT_COMPACTION = f"""
INSERT OR REPLACE INTO compactions (conversation, {COMPACTION_COLUMNS})
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""
"""Write a compaction, new or undone."""

INVALIDATE_COMPACTION = "UPDATE compactions SET invalid_at = ? WHERE conversation = ? AND id = ?"
"""A message inside no longer says what was summarised."""

DELETE_COMPACTION = "DELETE FROM compactions WHERE conversation = ? AND id = ?"
"""Destroy a summary that speaks of an erased message."""

DELETE_COMPACTIONS = "DELETE FROM compactions WHERE conversation = ?"
"""Destroy every summary of a conversation."""

DEPTH = "SELECT depth FROM entries WHERE key = ?"
"""How many messages a path has up to one."""

_MARKED = Flag.PINNED | Flag.QUARANTINED
"""The condition of the index `entries_marked`; SQLite uses the index only for the same condition."""

PINNED = f"""
SELECT {ENTRY} FROM entries e
WHERE e.flags & {_MARKED:d} <> 0 AND e.flags & {Flag.PINNED:d} <> 0 AND e.key > ? AND e.key <= ?
  AND e.flags & {HIDDEN_FLAGS:d} = 0
  AND (e.how IS NULL OR e.how = {Revision.EDIT:d})
ORDER BY e.key DESC LIMIT ?"""
"""The places of pinned messages that are neither deleted nor erased, the newest first."""

QUARANTINED = f"""
SELECT e.branch, e.key & {SEQ_MASK} FROM entries e
WHERE e.flags & {_MARKED:d} <> 0 AND e.flags & {Flag.QUARANTINED:d} <> 0 AND e.key > ? AND e.key <= ?
  AND (e.how IS NULL OR e.how = {Revision.EDIT:d})
ORDER BY e.key DESC LIMIT ?"""
"""The places of quarantined messages, the newest first."""

POLICIES = "SELECT conversation, policy FROM policies WHERE conversation IN (0, ?)"
"""How the server and a conversation are compacted."""

SET_POLICY = "INSERT OR REPLACE INTO policies (conversation, policy) VALUES (?, ?)"
"""Set how a conversation, or the server, is compacted."""

DELETE_POLICY = "DELETE FROM policies WHERE conversation = ?"
"""Take that back."""

CALIBRATION = "SELECT factor, samples FROM calibrations WHERE model = ?"
"""How far our counts are from a model's own."""

KEEP_CALIBRATION = "INSERT OR REPLACE INTO calibrations (model, factor, samples) VALUES (?, ?, ?)"
"""Remember that."""

KEEP_MANIFEST = "INSERT OR IGNORE INTO manifests (conversation, id, manifest, created_at) VALUES (?, ?, ?, ?)"
"""Remember what a model was shown."""

NEWEST_MANIFEST = "SELECT id, manifest FROM manifests WHERE conversation = ? ORDER BY id DESC LIMIT 1"
"""The manifest that was most likely kept last: ids begin with their time."""

MANIFEST_IDS = "SELECT id FROM manifests WHERE conversation = ? AND id > ? ORDER BY id LIMIT ?"
"""A page of the manifests of a conversation."""

MANIFEST = "SELECT manifest FROM manifests WHERE conversation = ? AND id = ?"
"""A manifest."""

DELETE_MANIFESTS = "DELETE FROM manifests WHERE conversation = ?"
"""Forget what models were shown of a conversation."""

USE_PROMPT = "INSERT OR IGNORE INTO prompt_uses (conversation, digest) VALUES (?, ?)"
"""Note that manifests of a conversation name a text; the first one of a conversation counts …"""

KEEP_PROMPT = """
INSERT INTO prompts (owner, digest, conversations, body) VALUES (?, ?, 1, ?)
ON CONFLICT (owner, digest) DO UPDATE SET conversations = conversations + 1"""
"""… and the text is kept once for each owner, with how many conversations name it."""

PROMPT = """
SELECT p.body FROM prompt_uses u JOIN prompts p ON p.owner = ? AND p.digest = u.digest
WHERE u.conversation = ? AND u.digest = ?"""
"""A text that manifests of a conversation name."""

RELEASE_PROMPTS = """
UPDATE prompts SET conversations = conversations - 1
WHERE owner = ? AND digest IN (SELECT digest FROM prompt_uses WHERE conversation = ?)"""
"""A conversation names its texts no longer …"""

DELETE_PROMPT_USES = "DELETE FROM prompt_uses WHERE conversation = ?"
"""… which is noted …"""

DELETE_UNUSED_PROMPTS = "DELETE FROM prompts WHERE owner = ? AND conversations = 0"
"""… and delete the prompts that no manifest names any more."""

DELETE_FACTS_OF = "DELETE FROM message_facts WHERE conversation = ?"
"""Forget what was found in the messages of a conversation."""

DELETE_FACTS = "DELETE FROM message_facts WHERE conversation = ? AND seq = ?"
"""Forget what was found in one."""

DELETE_USAGE_OF = "DELETE FROM model_usage WHERE conversation = ?"
"""Forget what the calls of models used."""

DELETE_LINES_OF = "DELETE FROM import_lines WHERE conversation = ?"
"""Destroy the lines that a conversation was imported from."""

DELETE_LINE = "DELETE FROM import_lines WHERE conversation = ? AND seq = ?"
"""Destroy the line that an entry was imported from."""

DELETE_SOURCES_OF = "DELETE FROM import_sources WHERE owner = ?"
"""Forget which files an owner imported."""

# -- imports ---------------------------------------------------------------------------------------------------

_SOURCE = "SELECT number, format, path, inode, read_bytes, head_digest, updated_at FROM import_sources"

SOURCES = f"{_SOURCE} WHERE owner = ? ORDER BY path"
"""The files that an owner imports."""

SOURCE_AT = f"{_SOURCE} WHERE owner = ? AND path = ?"
"""One of them."""

KEEP_SOURCE = """
INSERT INTO import_sources (owner, format, path, inode, read_bytes, head_digest, updated_at)
VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (owner, path) DO UPDATE SET format = excluded.format, inode = excluded.inode,
    read_bytes = excluded.read_bytes, head_digest = excluded.head_digest, updated_at = excluded.updated_at
RETURNING number"""
"""How far a file was read."""

KEEP_LINE = """
INSERT INTO import_lines (conversation, seq, source, first_byte, line) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (conversation, seq) DO UPDATE SET source = excluded.source, first_byte = excluded.first_byte,
    line = excluded.line
WHERE import_lines.source <> excluded.source OR import_lines.first_byte <> excluded.first_byte
   OR length(import_lines.line) < length(excluded.line)"""
"""The line that an entry came from. Of two watchers, the one that has read more of the file wins."""

LINES = """
SELECT seq, source, first_byte, line FROM import_lines WHERE conversation = ? AND seq > ? ORDER BY seq LIMIT ?"""
"""The lines of a conversation, from a seq on."""

LINE_BEFORE = """
SELECT seq, first_byte, line FROM import_lines
WHERE conversation = ? AND source = ? AND first_byte BETWEEN 0 AND ? ORDER BY first_byte DESC LIMIT 1"""
"""The last line of a file before a position."""

SET_LINE = "UPDATE import_lines SET line = ? WHERE conversation = ? AND seq = ?"
"""What else stands between two messages."""

DETACH_LINES = "UPDATE import_lines SET first_byte = -1 WHERE conversation = ? AND source = ?"
"""The file was rewritten: its lines have no position until they are read again."""

# -- checkpoints -----------------------------------------------------------------------------------------------

THREAD = f"SELECT {THREAD_COLUMNS} FROM threads WHERE conversation = ?"
"""A conversation's row about its checkpoints as a whole."""

WRITE_THREAD = f"""
INSERT INTO threads (conversation, {THREAD_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (conversation) DO UPDATE SET made = excluded.made, tip = excluded.tip, epoch = excluded.epoch,
    is_closed = excluded.is_closed, erasures = excluded.erasures"""
"""Set it."""

_THREAD_AND_CHECKPOINT = ", ".join(
    [f"t.{column}" for column in THREAD_COLUMNS.split(", ")]
    + [f"c.{column}" for column in CHECKPOINT_COLUMNS.split(", ")]
)

THREAD_AND_CHECKPOINTS = f"""
SELECT {_THREAD_AND_CHECKPOINT}, EXISTS (SELECT 1 FROM agent_writes w WHERE w.key = c.key AND w.is_held = 1)
FROM threads t LEFT JOIN agent_checkpoints c ON c.key >> {SEQ_BITS} = +t.conversation AND c.namespace = ?
  AND c.id IN (?, ?)
WHERE t.conversation = ?"""
"""A conversation's thread with each of two checkpoints that it has, shown or not, and whether writes on it hold
messages."""

_SAVED = f"""
SELECT {_THREAD_AND_CHECKPOINT}, EXISTS (SELECT 1 FROM agent_writes w WHERE w.key = c.key) FROM conversations v
JOIN agent_checkpoints c ON c.key >> {SEQ_BITS} = +v.number JOIN threads t ON t.conversation = v.number
WHERE v.owner = ? AND v.id = ? AND v.erased_at IS NULL AND c.namespace = ?"""

CHECKPOINT = f"{_SAVED} AND c.id = ?"
"""One checkpoint, shown or not, with its conversation's thread, and whether there are writes on it."""

NEWEST_CHECKPOINT = f"{_SAVED} AND c.state = {CheckpointState.VISIBLE:d} ORDER BY c.id DESC LIMIT 1"
"""The same of the checkpoint shown with the greatest id."""

CHECKPOINTS = f"SELECT {CHECKPOINT_COLUMNS} FROM agent_checkpoints WHERE key > ? AND key <= ? ORDER BY key"
"""Every checkpoint of a conversation."""

LIST_CHECKPOINTS = f"""
SELECT t.id, {", ".join(f"c.{column}" for column in CHECKPOINT_COLUMNS.split(", "))}
FROM conversations t JOIN agent_checkpoints c ON c.key >> {SEQ_BITS} = +t.number
WHERE t.owner = :owner AND (:conversation IS NULL OR t.id = :conversation) AND t.erased_at IS NULL
  AND c.state = {CheckpointState.VISIBLE:d}
  AND (:namespace IS NULL OR c.namespace = :namespace) AND (:id IS NULL OR c.id = :id)
  AND (:before IS NULL OR c.id < :before)
  AND (:after_thread IS NULL OR t.id > :after_thread
    OR t.id = :after_thread AND (c.namespace > :after_namespace
      OR c.namespace = :after_namespace AND c.id < :after_id))
ORDER BY t.id, c.namespace, c.id DESC LIMIT :limit"""
"""One page of the checkpoints of an owner, or of a conversation."""

ANCESTORS = f"""
WITH RECURSIVE up (depth, key, parent_id) AS (
    SELECT 0, key, parent_id FROM agent_checkpoints WHERE key >> {SEQ_BITS} = :number
      AND namespace = :namespace AND id = :id
    UNION ALL
    SELECT up.depth + 1, p.key, p.parent_id
    FROM up JOIN agent_checkpoints p ON p.key >> {SEQ_BITS} = :number AND p.namespace = :namespace
      AND p.id = up.parent_id
    WHERE up.depth + 1 < :limit
)
SELECT {", ".join(f"c.{column}" for column in CHECKPOINT_COLUMNS.split(", "))}
FROM up JOIN agent_checkpoints c ON c.key = up.key ORDER BY up.depth"""
"""A checkpoint and those it was made from, nearest first."""

WRITES = f"SELECT {WRITE_COLUMNS} FROM agent_writes WHERE key = ? ORDER BY task_path, task_id, idx"
"""The writes on a checkpoint, in the order in which they are applied."""

HELD_WRITES = f"""
SELECT {WRITE_COLUMNS} FROM agent_writes WHERE key > ? AND key <= ? AND is_held = 1
ORDER BY key, task_path, task_id, idx"""
"""The writes of a conversation, or of one checkpoint, that hold messages."""

ALL_WRITES = (
    f"SELECT {WRITE_COLUMNS} FROM agent_writes WHERE key > ? AND key <= ? ORDER BY key, task_path, task_id, idx"
)
"""The writes of a conversation."""

CHUNKS = "SELECT digest, body FROM blobs WHERE conversation = ? AND substr(body, 1, 1) >= x'80'"
"""The bytes of a conversation that are lists of others."""

PUT_CHECKPOINT = f"""
INSERT INTO agent_checkpoints ({CHECKPOINT_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (key) DO UPDATE SET parent_id = excluded.parent_id, run_id = excluded.run_id, state = excluded.state,
    log_count = excluded.log_count, branch = excluded.branch, leaf_seq = excluded.leaf_seq,
    leaf_depth = excluded.leaf_depth, body = excluded.body, metadata = excluded.metadata"""
"""Write a checkpoint, new or changed."""

KEEP_WRITE = f"""
INSERT INTO agent_writes ({WRITE_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (key, task_id, idx) DO UPDATE SET task_path = excluded.task_path, channel = excluded.channel,
    kind = excluded.kind, value = excluded.value, is_held = excluded.is_held
WHERE excluded.idx < 0"""
"""Keep a write; of what a task has once the last one counts, else the first."""

SETTLE_WRITE = f"INSERT OR REPLACE INTO agent_writes ({WRITE_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
"""Put a write in the place of what it was."""

KEEP_BLOB = "INSERT OR IGNORE INTO blobs (conversation, digest, body) VALUES (?, ?, ?)"
"""Keep bytes by their digest."""

BLOB = "SELECT body FROM blobs WHERE conversation = ? AND digest = ?"
"""A blob by its digest."""

DIGESTS = "SELECT digest FROM blobs WHERE conversation = ?"
"""The digests of a conversation's blobs."""

DELETE_CHECKPOINT = "DELETE FROM agent_checkpoints WHERE key = ?"
"""Remove a checkpoint."""

DELETE_WRITES = "DELETE FROM agent_writes WHERE key = ?"
"""Remove the writes on a checkpoint."""

DELETE_BLOB = "DELETE FROM blobs WHERE conversation = ? AND digest = ?"
"""Remove bytes that nothing refers to any more."""

DELETE_UNSHARED_BLOB = f"""
{DELETE_BLOB}
  AND 1 = (SELECT count(*) FROM (SELECT 1 FROM agent_checkpoints WHERE key > ? AND key <= ? LIMIT 2))"""
"""The same if the conversation has a single checkpoint."""

OF_RUN = f"""
SELECT DISTINCT t.owner, t.id FROM agent_checkpoints c JOIN conversations t ON t.number = c.key >> {SEQ_BITS}
WHERE c.run_id = :run_id AND (:owner IS NULL OR t.owner = :owner) AND t.erased_at IS NULL"""
"""Conversations that have checkpoints of a run."""

WITH_HELD = f"""
SELECT DISTINCT t.owner, t.id FROM agent_writes w JOIN conversations t ON t.number = w.key >> {SEQ_BITS}
WHERE w.is_held = 1 AND (:owner IS NULL OR t.owner = :owner) AND t.erased_at IS NULL"""
"""Conversations with writes that hold messages."""

DELETE_CHECKPOINTS_OF = "DELETE FROM agent_checkpoints WHERE key > ? AND key <= ?"
"""Destroy the checkpoints of a conversation."""

DELETE_WRITES_OF = "DELETE FROM agent_writes WHERE key > ? AND key <= ?"
"""Destroy the writes of a conversation."""

DELETE_BLOBS_OF = "DELETE FROM blobs WHERE conversation = ?"
"""Destroy the bytes of a conversation's checkpoints."""

DELETE_WRITES_ABOUT = "DELETE FROM agent_writes WHERE key > ? AND key <= ? AND instr(value, ?) > 0"
"""Destroy the writes that hold some bytes."""

DELETE_BLOBS_ABOUT = "DELETE FROM blobs WHERE conversation = ? AND instr(body, ?) > 0"
"""Destroy the bytes that hold some bytes."""

DELETE_CHECKPOINTS_ABOUT = """
DELETE FROM agent_checkpoints WHERE key > ? AND key <= ? AND (instr(body, ?) > 0 OR instr(metadata, ?) > 0)"""
"""Destroy the checkpoints that hold some bytes in a small value of their own."""

NOTE_ERASURE = "UPDATE threads SET erasures = erasures + 1 WHERE conversation = ?"
"""Count an erasure, so that caches of these checkpoints are not used any more."""

# -- items -----------------------------------------------------------------------------------------------------

PUT_ITEM = f"""
INSERT INTO items (owner, {ITEM_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (owner, namespace, key) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at,
    expires_at = excluded.expires_at, ttl_micros = excluded.ttl_micros, model = excluded.model,
    vectors = excluded.vectors"""
"""Write an item, new or changed."""

DELETE_ITEM = "DELETE FROM items WHERE owner = ? AND namespace = ? AND key = ?"
"""Remove an item."""

TOUCH_ITEM = """
UPDATE items SET expires_at = ? + ttl_micros WHERE owner = ? AND namespace = ? AND key = ? AND ttl_micros IS NOT NULL"""
"""Let an item that was read live on."""

DELETE_EXPIRED_ITEMS = "DELETE FROM items WHERE owner = ? AND expires_at <= ?"
"""Remove what has expired."""

ITEM = f"""
SELECT {ITEM_COLUMNS} FROM items
WHERE owner = ? AND namespace = ? AND key = ? AND (expires_at IS NULL OR expires_at > ?)"""
"""One item."""

ITEMS_UNDER = f"""
SELECT {ITEM_COLUMNS} FROM items
WHERE owner = ? AND (namespace = ? OR namespace >= ? AND namespace < ?) AND (expires_at IS NULL OR expires_at > ?)
ORDER BY updated_at DESC, namespace, key"""
"""All items of a namespace and those below it."""

ITEM_NAMESPACES = """
SELECT DISTINCT namespace FROM items WHERE owner = ? AND (expires_at IS NULL OR expires_at > ?) ORDER BY namespace"""
"""The namespaces that have items."""

DELETE_ITEMS_OF = "DELETE FROM items WHERE owner = ?"
"""Destroy the items of an owner."""

# -- keys and replies ------------------------------------------------------------------------------------------

ADD_KEY = f"INSERT INTO api_keys ({KEY_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)"
"""Keep a new key."""

KEY = f"SELECT {KEY_COLUMNS} FROM api_keys WHERE id = ?"
"""A key by its public part."""

KEYS = f"SELECT {KEY_COLUMNS} FROM api_keys WHERE ? IS NULL OR owner = ? ORDER BY created_at, id"
"""The keys of an owner, or all."""

REVOKE_KEY = "UPDATE api_keys SET revoked_at = coalesce(revoked_at, ?) WHERE id = ?"
"""Make a key worthless; when it was before, it stays so since then."""

DELETE_KEYS_OF = "DELETE FROM api_keys WHERE owner = ?"
"""Destroy the keys of an owner."""

DELETE_OLD_REPLIES = "DELETE FROM replies WHERE owner = ? AND created_at < ?"
"""Delete replies that are too old to be requested again."""

BEGIN_REPLY = """
INSERT INTO replies (owner, idempotency_key, request, headers, body, running_until, created_at)
VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (owner, idempotency_key) DO NOTHING"""
"""Say that an answer is being made."""

REPLY = f"SELECT {REPLY_COLUMNS} FROM replies WHERE owner = ? AND idempotency_key = ?"
"""The reply stored for a key."""

TAKE_REPLY = "UPDATE replies SET running_until = ? WHERE owner = ? AND idempotency_key = ?"
"""Go on with an answer whose maker died."""

RENEW_REPLY = """
UPDATE replies SET running_until = ?
WHERE owner = ? AND idempotency_key = ? AND request = ? AND status IS NULL"""

KEEP_REPLY = """
UPDATE replies SET conversation = ?, status = ?, headers = ?, body = ?
WHERE owner = ? AND idempotency_key = ? AND request = ? AND status IS NULL"""
"""Keep an answer, unless it was erased while it was made."""

DROP_REPLY = """
DELETE FROM replies WHERE owner = ? AND idempotency_key = ? AND request = ? AND status IS NULL"""
"""Give up an answer that could not be made."""

BLANK_REPLIES = """
UPDATE replies SET request = ?, headers = ?, body = ?, status = 0
WHERE owner = ? AND (conversation = ? OR conversation IS NULL) AND length(request) > 0"""
"""Destroy what answers say, or may say, of a conversation; with None, of none that is named; the keys stay."""

DELETE_REPLIES_OF = "DELETE FROM replies WHERE owner = ?"
"""Destroy the answers to an owner."""
