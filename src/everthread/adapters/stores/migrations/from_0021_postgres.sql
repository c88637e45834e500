-- Keys change nearly everywhere, so the old tables step aside as a whole and their rows are copied. Vectors stay where they
-- are: their key is all that changes, and the index of a large one takes long to make.
CREATE SCHEMA everthread_0021;
ALTER TABLE conversations SET SCHEMA everthread_0021;
ALTER TABLE branches SET SCHEMA everthread_0021;
ALTER TABLE entries SET SCHEMA everthread_0021;
ALTER TABLE payloads SET SCHEMA everthread_0021;
ALTER TABLE doomed_blobs SET SCHEMA everthread_0021;
ALTER TABLE answers SET SCHEMA everthread_0021;
ALTER TABLE erasures SET SCHEMA everthread_0021;
ALTER TABLE words SET SCHEMA everthread_0021;
ALTER TABLE compactions SET SCHEMA everthread_0021;
ALTER TABLE policies SET SCHEMA everthread_0021;
ALTER TABLE calibrations SET SCHEMA everthread_0021;
ALTER TABLE manifests SET SCHEMA everthread_0021;
ALTER TABLE prompts SET SCHEMA everthread_0021;
ALTER TABLE threads SET SCHEMA everthread_0021;
ALTER TABLE agent_checkpoints SET SCHEMA everthread_0021;
ALTER TABLE agent_writes SET SCHEMA everthread_0021;
ALTER TABLE blobs SET SCHEMA everthread_0021;
ALTER TABLE items SET SCHEMA everthread_0021;
ALTER TABLE notes SET SCHEMA everthread_0021;
ALTER TABLE uses SET SCHEMA everthread_0021;
ALTER TABLE turns SET SCHEMA everthread_0021;
ALTER TABLE run_events SET SCHEMA everthread_0021;
ALTER TABLE api_keys SET SCHEMA everthread_0021;
ALTER TABLE replies SET SCHEMA everthread_0021;
ALTER TABLE vectors DROP CONSTRAINT vectors_pkey;
ALTER TABLE vectors ALTER owner TYPE TEXT COLLATE "C";
ALTER TABLE vectors ADD PRIMARY KEY (conversation, model, seq, part, owner);

CREATE MISSING TABLES;  -- of schema.sql

INSERT INTO conversations (number, owner, id, parent_number, title, metadata, is_active, off_record, created_at, updated_at, deleted_at, erased_at, entry_count, chain, active_branch, leaf_seq, leaf_depth, compaction_check_at)
SELECT number, owner, id, parent_number, title, metadata, is_active, off_record, created_at, updated_at, deleted_at, erased_at, entry_count, chain, active_branch, leaf_seq, leaf_depth, look_at FROM everthread_0021.conversations;
INSERT INTO branches (owner, conversation, number, parent, fork_seq, leaf_seq, leaf_depth, created_at)
SELECT c.owner, b.conversation, b.number, b.parent, b.fork_seq, b.leaf_seq, b.leaf_depth, b.created_at
FROM everthread_0021.branches b JOIN conversations c ON c.number = b.conversation;
INSERT INTO entries (owner, conversation, seq, id, kind, role, revises, how, revision, parent_seq, branch, depth, created_at, tokens, salt, chain, raw, commitment, newest_seq, flags, updated_at)
SELECT c.owner, c.number, e.key & 4294967295, e.id, e.kind, e.role, e.revises, e.how, e.revision, e.parent_seq, e.branch, e.depth, e.created_at, e.tokens, e.salt, e.chain, e.raw, e.commitment, e.newest_seq, e.flags, e.updated_at
FROM everthread_0021.entries e JOIN conversations c ON c.number = e.key >> 32;
INSERT INTO payloads (owner, conversation, seq, body, blob, blob_bytes, commitment)
SELECT c.owner, c.number, p.key & 4294967295, p.body, p.blob, p.blob_bytes, p.commitment
FROM everthread_0021.payloads p JOIN conversations c ON c.number = p.key >> 32;
INSERT INTO doomed_blobs SELECT name, doomed_at FROM everthread_0021.doomed_blobs;
INSERT INTO answers (owner, conversation, idempotency_key, body, receipts, created_at)
SELECT c.owner, a.conversation, a.idempotency_key, a.body, a.receipts, a.created_at
FROM everthread_0021.answers a JOIN conversations c ON c.number = a.conversation;
INSERT INTO erasures (number, owner, conversation, message, erased_at, finished_at)
SELECT number, owner, conversation, message, erased_at, finished_at FROM everthread_0021.erasures;
INSERT INTO words (owner, conversation, seq, tokens)
SELECT c.owner, c.number, w.key & 4294967295, w.tokens
FROM everthread_0021.words w JOIN conversations c ON c.number = w.key >> 32;
INSERT INTO compactions (owner, conversation, id, first_seq, last_seq, record, created_at, undone_at, invalid_at, branch, after_seq, level)
SELECT c.owner, o.conversation, o.id, o.first_seq, o.last_seq, o.record, o.created_at, o.undone_at, o.invalid_at, o.branch, o.after_seq, o.level
FROM everthread_0021.compactions o JOIN conversations c ON c.number = o.conversation;
INSERT INTO policies (owner, conversation, policy)
SELECT coalesce(c.owner, ''), p.conversation, p.policy
FROM everthread_0021.policies p LEFT JOIN conversations c ON c.number = p.conversation;
INSERT INTO calibrations (model, factor, samples) SELECT model, factor, samples FROM everthread_0021.calibrations;
INSERT INTO manifests (owner, conversation, id, manifest, created_at)
SELECT c.owner, m.conversation, m.id, m.manifest, m.created_at
FROM everthread_0021.manifests m JOIN conversations c ON c.number = m.conversation;
-- A prompt stood once for each conversation; from now on once for each owner.
INSERT INTO prompt_uses (owner, conversation, digest)
SELECT c.owner, p.conversation, p.digest FROM everthread_0021.prompts p JOIN conversations c ON c.number = p.conversation;
INSERT INTO prompts (owner, digest, conversations, body)
SELECT DISTINCT ON (c.owner, p.digest) c.owner, p.digest, count(*) OVER (PARTITION BY c.owner, p.digest), p.body
FROM everthread_0021.prompts p JOIN conversations c ON c.number = p.conversation;
INSERT INTO threads (owner, conversation, made, tip, epoch, is_closed, erasures)
SELECT c.owner, t.conversation, t.made, t.tip, t.epoch, t.is_closed, t.erasures
FROM everthread_0021.threads t JOIN conversations c ON c.number = t.conversation;
INSERT INTO agent_checkpoints (owner, conversation, number, namespace, id, parent_id, run_id, state, log_count, branch, leaf_seq, leaf_depth, body, metadata)
SELECT c.owner, c.number, k.key & 4294967295, k.namespace, k.id, k.parent_id, k.run_id, k.state, k.log_count, k.branch, k.leaf_seq, k.leaf_depth, k.body, k.metadata
FROM everthread_0021.agent_checkpoints k JOIN conversations c ON c.number = k.key >> 32;
INSERT INTO agent_writes (owner, conversation, checkpoint, task_id, idx, task_path, channel, kind, value, is_held)
SELECT c.owner, c.number, w.key & 4294967295, w.task_id, w.idx, w.task_path, w.channel, w.kind, w.value, w.is_held
FROM everthread_0021.agent_writes w JOIN conversations c ON c.number = w.key >> 32;
INSERT INTO blobs (owner, conversation, digest, body)
SELECT c.owner, b.conversation, b.digest, b.body FROM everthread_0021.blobs b JOIN conversations c ON c.number = b.conversation;
INSERT INTO items (owner, namespace, key, value, created_at, updated_at, expires_at, ttl_micros, model, vectors)
SELECT owner, namespace, key, value, created_at, updated_at, expires_at, ttl_micros, model, vectors FROM everthread_0021.items;
INSERT INTO notes (number, owner, kind, id, shelf, text, record, created_at, updated_at, topic, state, past_at, pinned_at, source_conversation, source_seq, model, vector, tokens)
SELECT number, owner, kind, id, shelf, text, record, created_at, updated_at, topic, state, past_at, pinned_at, source_conversation, source_seq, model, vector, tokens FROM everthread_0021.notes;
INSERT INTO uses (owner, conversation, kind, name, uses, last_at)
SELECT c.owner, u.conversation, u.kind, u.name, u.uses, u.last_at FROM everthread_0021.uses u JOIN conversations c ON c.number = u.conversation;
INSERT INTO turns (number, owner, conversation, id, state, holder, lease_until, is_asked_to_stop, received_at, question, record)
SELECT t.number, c.owner, t.conversation, t.id, t.state, t.holder, t.lease_until, t.is_asked_to_stop, t.received_at, t.question, t.record
FROM everthread_0021.turns t JOIN conversations c ON c.number = t.conversation;
INSERT INTO run_events (owner, conversation, run, first, last, body, kept_at)
SELECT t.owner, t.conversation, e.turn, e.first, e.last, e.body, e.kept_at
FROM everthread_0021.run_events e JOIN turns t ON t.number = e.turn;
INSERT INTO api_keys (id, owner, name, is_admin, created_at, revoked_at, digest)
SELECT id, owner, name, is_admin, created_at, revoked_at, digest FROM everthread_0021.api_keys;
INSERT INTO replies (owner, idempotency_key, request, conversation, status, headers, body, running_until, created_at)
SELECT owner, idempotency_key, request, conversation, status, headers, body, running_until, created_at FROM everthread_0021.replies;

-- Numbers that were given by hand move no sequence.
SELECT setval(pg_get_serial_sequence('conversations', 'number'), greatest((SELECT max(number) FROM conversations), 1));
SELECT setval(pg_get_serial_sequence('erasures', 'number'), greatest((SELECT max(number) FROM erasures), 1));
SELECT setval(pg_get_serial_sequence('notes', 'number'), greatest((SELECT max(number) FROM notes), 1));
SELECT setval(pg_get_serial_sequence('turns', 'number'), greatest((SELECT max(number) FROM turns), 1));

DROP SCHEMA everthread_0021 CASCADE;
DROP TABLE alembic_version;
