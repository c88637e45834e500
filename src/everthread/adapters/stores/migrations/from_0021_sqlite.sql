-- A file of revision 0021 lacks tables that nothing was ever written to. Those that change here are made first, empty and
-- as they were, so that what follows holds for every file.
CREATE TABLE IF NOT EXISTS turns (number INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, conversation BIGINT NOT NULL, id TEXT NOT NULL, state SMALLINT NOT NULL, holder TEXT NOT NULL, lease_until BIGINT, is_asked_to_stop SMALLINT NOT NULL, received_at BIGINT NOT NULL, question BLOB, record BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS run_events (turn BIGINT NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL, body BLOB NOT NULL, kept_at BIGINT NOT NULL, PRIMARY KEY (turn, first)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS prompts (conversation BIGINT NOT NULL, digest TEXT NOT NULL, body BLOB NOT NULL, PRIMARY KEY (conversation, digest)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS filed (conversation INTEGER PRIMARY KEY, seq INTEGER NOT NULL);

ALTER TABLE filed RENAME TO entry_ids_until;
ALTER TABLE conversations RENAME COLUMN look_at TO compaction_check_at;
ALTER TABLE conversations ADD COLUMN quarantined_at BIGINT;
ALTER TABLE conversations ADD COLUMN held_at BIGINT;
ALTER TABLE entries ADD COLUMN origin SMALLINT NOT NULL DEFAULT 0;
ALTER TABLE entries ADD COLUMN chain_version SMALLINT NOT NULL DEFAULT 1;
ALTER TABLE turns ADD COLUMN reserved_events INTEGER NOT NULL DEFAULT 0;
ALTER TABLE prompts RENAME TO old_prompts;
ALTER TABLE run_events RENAME TO old_run_events;
DROP INDEX IF EXISTS run_events_by_age;

CREATE MISSING TABLES;  -- of schema.sql

INSERT INTO run_events (conversation, run, first, last, body, kept_at)
SELECT t.conversation, e.turn, e.first, e.last, e.body, e.kept_at FROM old_run_events e JOIN turns t ON t.number = e.turn;
DROP TABLE old_run_events;

-- A prompt stood once for each conversation; from now on once for each owner.
INSERT INTO prompt_uses (conversation, digest) SELECT conversation, digest FROM old_prompts;
INSERT INTO prompts (owner, digest, conversations, body)
SELECT c.owner, p.digest, count(*), p.body FROM old_prompts p JOIN conversations c ON c.number = p.conversation
GROUP BY c.owner, p.digest;
DROP TABLE old_prompts;

DROP TABLE alembic_version;
