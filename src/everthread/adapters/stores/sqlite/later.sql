-- Tables that a file gets when something is first written to them (later.py): a table with all that goes with it,
-- an empty line, the next one.

CREATE TABLE payloads (key INTEGER NOT NULL, body BLOB NOT NULL, blob TEXT, blob_bytes BIGINT, commitment BLOB,
PRIMARY KEY (key));
CREATE INDEX payloads_by_blob ON payloads (blob) WHERE blob IS NOT NULL;

CREATE TABLE answers (conversation BIGINT NOT NULL, idempotency_key TEXT NOT NULL, body BLOB NOT NULL, receipts BLOB
NOT NULL, created_at BIGINT NOT NULL, PRIMARY KEY (conversation, idempotency_key)) WITHOUT ROWID;

CREATE TABLE erasures (number INTEGER NOT NULL, owner TEXT NOT NULL, conversation TEXT, message TEXT, erased_at BIGINT
NOT NULL, finished_at BIGINT, PRIMARY KEY (number));

CREATE TABLE compactions (conversation BIGINT NOT NULL, id TEXT NOT NULL, first_seq BIGINT NOT NULL, last_seq BIGINT
NOT NULL, record BLOB NOT NULL, created_at BIGINT NOT NULL, undone_at BIGINT, invalid_at BIGINT, branch INTEGER
DEFAULT '0' NOT NULL, after_seq BIGINT DEFAULT '0' NOT NULL, level INTEGER DEFAULT '0' NOT NULL, PRIMARY KEY
(conversation, id)) WITHOUT ROWID;
CREATE INDEX compactions_by_start ON compactions (conversation, after_seq, level, last_seq) WHERE undone_at IS NULL
AND invalid_at IS NULL;
CREATE INDEX compactions_by_end ON compactions (conversation, last_seq, after_seq) WHERE invalid_at IS NULL;
CREATE INDEX compactions_by_age ON compactions (conversation, created_at, id);

CREATE TABLE policies (conversation BIGINT NOT NULL, policy BLOB NOT NULL, PRIMARY KEY (conversation));

CREATE TABLE manifests (conversation BIGINT NOT NULL, id TEXT NOT NULL, manifest BLOB NOT NULL, created_at BIGINT NOT
NULL, PRIMARY KEY (conversation, id)) WITHOUT ROWID;

CREATE TABLE prompts (conversation BIGINT NOT NULL, digest TEXT NOT NULL, body BLOB NOT NULL, PRIMARY KEY
(conversation, digest)) WITHOUT ROWID;

CREATE TABLE threads (conversation BIGINT NOT NULL, made INTEGER NOT NULL, tip INTEGER NOT NULL, epoch INTEGER NOT
NULL, is_closed SMALLINT NOT NULL, erasures INTEGER NOT NULL, PRIMARY KEY (conversation));

CREATE TABLE agent_checkpoints (key INTEGER NOT NULL, namespace TEXT NOT NULL, id TEXT NOT NULL, parent_id TEXT,
run_id TEXT, state SMALLINT NOT NULL, log_count INTEGER NOT NULL, branch INTEGER NOT NULL, leaf_seq BIGINT NOT NULL,
leaf_depth INTEGER NOT NULL, body BLOB NOT NULL, metadata BLOB NOT NULL, PRIMARY KEY (key));
CREATE UNIQUE INDEX checkpoints_by_id ON agent_checkpoints ((key >> 32), namespace, id);
CREATE INDEX checkpoints_by_run ON agent_checkpoints (run_id) WHERE run_id IS NOT NULL;

CREATE TABLE agent_writes (key BIGINT NOT NULL, task_id TEXT NOT NULL, idx INTEGER NOT NULL, task_path TEXT NOT NULL,
channel TEXT NOT NULL, kind TEXT NOT NULL, value BLOB NOT NULL, is_held SMALLINT NOT NULL, PRIMARY KEY (key, task_id,
idx)) WITHOUT ROWID;
CREATE INDEX writes_held ON agent_writes (key) WHERE is_held = 1;

CREATE TABLE blobs (conversation BIGINT NOT NULL, digest BLOB NOT NULL, body BLOB NOT NULL, PRIMARY KEY (conversation,
digest)) WITHOUT ROWID;

CREATE TABLE doomed_blobs (name TEXT NOT NULL, doomed_at BIGINT NOT NULL, PRIMARY KEY (name)) WITHOUT ROWID;

CREATE TABLE items (owner TEXT NOT NULL, namespace TEXT NOT NULL, key TEXT NOT NULL, value BLOB NOT NULL, created_at
BIGINT NOT NULL, updated_at BIGINT NOT NULL, expires_at BIGINT, ttl_micros BIGINT, model TEXT, vectors BLOB, PRIMARY
KEY (owner, namespace, key)) WITHOUT ROWID;

CREATE TABLE turns (number INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, conversation BIGINT NOT NULL, id TEXT NOT NULL,
state SMALLINT NOT NULL, holder TEXT NOT NULL, lease_until BIGINT, is_asked_to_stop SMALLINT NOT NULL, received_at
BIGINT NOT NULL, question BLOB, record BLOB NOT NULL);
CREATE UNIQUE INDEX turns_by_id ON turns (conversation, id);
CREATE INDEX turns_by_number ON turns (conversation, number);
CREATE INDEX turns_unfinished ON turns (conversation) WHERE state < 2;

CREATE TABLE run_events (turn BIGINT NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL, body BLOB NOT NULL,
kept_at BIGINT NOT NULL, PRIMARY KEY (turn, first)) WITHOUT ROWID;
CREATE INDEX run_events_by_age ON run_events (kept_at);

CREATE TABLE api_keys (id TEXT NOT NULL, owner TEXT NOT NULL, name TEXT NOT NULL, is_admin SMALLINT NOT NULL,
created_at BIGINT NOT NULL, revoked_at BIGINT, digest BLOB NOT NULL, PRIMARY KEY (id)) WITHOUT ROWID;

CREATE TABLE replies (owner TEXT NOT NULL, idempotency_key TEXT NOT NULL, request BLOB NOT NULL, conversation TEXT,
status INTEGER, headers BLOB NOT NULL, body BLOB NOT NULL, running_until BIGINT NOT NULL, created_at BIGINT NOT NULL,
PRIMARY KEY (owner, idempotency_key)) WITHOUT ROWID;

CREATE TABLE notes (number INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, owner TEXT NOT NULL, kind SMALLINT NOT NULL, id
TEXT NOT NULL, shelf TEXT NOT NULL, text TEXT NOT NULL, record BLOB NOT NULL, created_at BIGINT NOT NULL, updated_at
BIGINT NOT NULL, topic TEXT, state SMALLINT NOT NULL, past_at BIGINT, pinned_at BIGINT, source_conversation TEXT,
source_seq BIGINT, model TEXT, vector BLOB);
CREATE UNIQUE INDEX notes_by_id ON notes (owner, kind, id);
CREATE INDEX notes_by_shelf ON notes (owner, kind, shelf, state, number);
CREATE INDEX notes_by_topic ON notes (owner, kind, shelf, topic) WHERE topic IS NOT NULL;
CREATE INDEX notes_by_source ON notes (owner, source_conversation, source_seq) WHERE source_conversation IS NOT NULL;
CREATE INDEX notes_pinned ON notes (owner, kind, shelf) WHERE pinned_at IS NOT NULL;
CREATE VIRTUAL TABLE note_words USING fts5(tokens, content='', detail=none, columnsize=0, prefix='1',
tokenize='ascii');

CREATE TABLE uses (conversation BIGINT NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, uses BIGINT NOT NULL, last_at
BIGINT NOT NULL, PRIMARY KEY (conversation, kind, name)) WITHOUT ROWID;

CREATE TABLE vector_models (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, dimension INTEGER NOT NULL);

CREATE TABLE vectors (conversation INTEGER NOT NULL, model INTEGER NOT NULL, page INTEGER NOT NULL, owner TEXT NOT
NULL, body BLOB NOT NULL, PRIMARY KEY (conversation, model, page));

CREATE TABLE calibrations (model TEXT NOT NULL, factor DOUBLE NOT NULL, samples BIGINT NOT NULL, PRIMARY KEY (model));

CREATE TABLE entry_ids (conversation INTEGER NOT NULL, hash INTEGER NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY
(conversation, hash, seq)) WITHOUT ROWID;

CREATE TABLE filed (conversation INTEGER PRIMARY KEY, seq INTEGER NOT NULL);
