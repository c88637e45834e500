-- What a new file has from the start. The rest of the tables stands in later.sql. A test holds both equal to what
-- the migrations make.

CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL, CONSTRAINT alembic_version_pkc PRIMARY KEY
(version_num)) WITHOUT ROWID;

CREATE TABLE conversations (number INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, owner TEXT NOT NULL, id TEXT NOT NULL,
parent_number BIGINT, title TEXT, metadata BLOB NOT NULL, is_active SMALLINT NOT NULL, off_record SMALLINT NOT NULL,
created_at BIGINT NOT NULL, updated_at BIGINT NOT NULL, deleted_at BIGINT, erased_at BIGINT, entry_count INTEGER NOT
NULL, chain BLOB NOT NULL, active_branch INTEGER NOT NULL, leaf_seq BIGINT DEFAULT '0' NOT NULL, leaf_depth INTEGER
DEFAULT '0' NOT NULL, look_at INTEGER DEFAULT '0' NOT NULL);
CREATE UNIQUE INDEX conversations_by_id ON conversations (owner, id);
CREATE INDEX conversations_by_number ON conversations (owner, number);
CREATE INDEX conversations_by_parent ON conversations (parent_number) WHERE parent_number IS NOT NULL;

CREATE TABLE branches (conversation BIGINT NOT NULL, number INTEGER NOT NULL, parent INTEGER, fork_seq BIGINT NOT
NULL, leaf_seq BIGINT NOT NULL, leaf_depth INTEGER NOT NULL, created_at BIGINT NOT NULL, PRIMARY KEY (conversation,
number)) WITHOUT ROWID;

CREATE TABLE entries (key INTEGER NOT NULL, id TEXT NOT NULL, kind SMALLINT NOT NULL, role TEXT NOT NULL, revises
BIGINT, how SMALLINT, revision INTEGER NOT NULL, parent_seq BIGINT, branch INTEGER NOT NULL, depth INTEGER NOT NULL,
created_at BIGINT NOT NULL, tokens INTEGER NOT NULL, salt BLOB, chain BLOB NOT NULL, raw BLOB, commitment BLOB,
newest_seq BIGINT, flags SMALLINT NOT NULL, updated_at BIGINT, PRIMARY KEY (key));
CREATE INDEX entries_pinned ON entries (key) WHERE flags & 2 <> 0;

CREATE VIRTUAL TABLE words USING fts5(tokens, content='', detail=none, columnsize=0, prefix='1', tokenize='ascii');

CREATE TABLE unindexed (conversation INTEGER PRIMARY KEY, after_seq INTEGER NOT NULL, counted_seq INTEGER NOT NULL
DEFAULT 0);

CREATE TABLE jobs (number INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, conversation BIGINT NOT NULL, kind TEXT NOT
NULL, priority INTEGER NOT NULL, details TEXT NOT NULL, state SMALLINT NOT NULL, attempts INTEGER NOT NULL, due_at
BIGINT NOT NULL, leased_until BIGINT NOT NULL, token TEXT, error TEXT, put_at BIGINT NOT NULL);
CREATE UNIQUE INDEX jobs_waiting ON jobs (conversation, kind) WHERE state = 0;
CREATE UNIQUE INDEX jobs_running ON jobs (conversation) WHERE state = 1;
CREATE INDEX jobs_in_order ON jobs (state, priority DESC, number);
