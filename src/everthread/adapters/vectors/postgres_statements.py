"""Every statement of vectors on PostgreSQL, by name. Values are bound; numbers of our own stand in the few statements
that PostgreSQL does not let bind, or plans by the value."""

from __future__ import annotations

from everthread.core.entries import Flag

MODEL = "SELECT number, dimension FROM vector_models WHERE name = $1"
"""An embedder's number and dimension."""

DIMENSIONS = "SELECT number, dimension FROM vector_models"
"""The same of all."""

NEW_MODEL = "INSERT INTO vector_models (name, dimension) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING"
"""Know an embedder, whoever else does at the same time."""

LIVING = "SELECT number FROM conversations WHERE owner = $1 AND id = $2 AND erased_at IS NULL FOR SHARE"
"""A conversation, which is not erased until we have committed."""

_PUT = f"""
INSERT INTO vectors (owner, conversation, model, seq, part, {{column}})
SELECT $1, $2, $3, $4, $5, $6::{{type}}
WHERE NOT EXISTS (
    SELECT 1 FROM entries WHERE owner = $1 AND conversation = $2 AND seq = $4 AND flags & {Flag.ERASED:d} <> 0)
ON CONFLICT (owner, conversation, model, seq, part) DO UPDATE SET {{column}} = excluded.{{column}}"""

PUT_EMBEDDING = _PUT.format(column="embedding", type="real[]::halfvec")
"""Keep a vector unless its entry was erased."""

PUT_RECORD = _PUT.format(column="record", type="bytea")
"""The same where there is no pgvector."""

RECORDS = """
SELECT c.id, v.record FROM conversations c JOIN vectors v ON v.owner = c.owner AND v.conversation = c.number
WHERE c.owner = $1 AND ($2::text IS NULL OR c.id = $2) AND c.erased_at IS NULL AND v.model = $3
    AND v.record IS NOT NULL"""
"""The records of a conversation or of an owner."""

NEAR_IN_CONVERSATION = """
WITH mine AS MATERIALIZED (
    SELECT c.id, v.seq, v.part, v.embedding
    FROM conversations c JOIN vectors v ON v.owner = c.owner AND v.conversation = c.number
    WHERE c.owner = $1 AND c.id = $2 AND c.erased_at IS NULL AND v.model = $3 AND v.embedding IS NOT NULL)
SELECT id, seq, part, -(embedding <#> $4::real[]::halfvec) AS score FROM mine
ORDER BY score DESC, seq DESC, part DESC LIMIT $5"""
"""The nearest of a conversation, all compared."""

NEAR_EXACT = """
WITH mine AS MATERIALIZED (
    SELECT c.id, v.seq, v.part, v.embedding
    FROM vectors v JOIN conversations c ON c.owner = v.owner AND c.number = v.conversation
    WHERE v.owner = $1 AND v.model = $2 AND c.erased_at IS NULL AND v.embedding IS NOT NULL)
SELECT id, seq, part, -(embedding <#> $3::real[]::halfvec) AS score FROM mine
ORDER BY score DESC, seq DESC, part DESC LIMIT $4"""
"""The nearest of an owner, all compared."""

NEAR_BY_INDEX = """
WITH found AS MATERIALIZED (
    SELECT conversation, seq, part, embedding::halfvec({dimension}) <#> $2::real[]::halfvec({dimension}) AS distance
    FROM vectors WHERE model = {model} AND owner = $1
    ORDER BY embedding::halfvec({dimension}) <#> $2::real[]::halfvec({dimension}) LIMIT $3)
SELECT c.id, f.seq, f.part, -f.distance AS score
FROM found f JOIN conversations c ON c.owner = $1 AND c.number = f.conversation
WHERE c.erased_at IS NULL ORDER BY f.distance, f.seq DESC, f.part DESC"""
"""The nearest of an owner by the index of the model; model and dimension are numbers that we gave."""

SEARCH_ON = """
SET LOCAL enable_sort = off; SET LOCAL hnsw.iterative_scan = strict_order; SET LOCAL hnsw.max_scan_tuples = 200000;
SET LOCAL hnsw.ef_search = {most}"""
"""Go on in the index until enough of the owner's are found, and use it."""

COUNT_OF_OWNER = "SELECT count(*) FROM (SELECT 1 FROM vectors WHERE owner = $1 AND model = $2 LIMIT $3) AS counted"
"""How many vectors an owner has of a model, counted up to a cap."""

FORGET = """
DELETE FROM vectors v USING conversations c, vector_models m
WHERE c.owner = v.owner AND c.number = v.conversation AND m.number = v.model AND c.owner = $1
    AND ($2::text IS NULL OR c.id = $2)
    AND ($3::bigint[] IS NULL OR v.seq = ANY ($3)) AND ($4::text IS NULL OR m.name = $4)"""
"""Destroy vectors of an owner, a conversation, some entries; of one embedder or all."""

FORGET_ERASED = """
DELETE FROM vectors v WHERE v.owner = $1 AND v.conversation = ANY ($2) AND ($3::text IS NULL OR EXISTS (
    SELECT 1 FROM entries e
    WHERE e.owner = v.owner AND e.conversation = v.conversation AND e.seq = v.seq AND e.id = $3))"""
"""Destroy the vectors of conversations, or of one message of them."""

INDEXED = """
SELECT m.name, count(*), max(v.seq)
FROM conversations c JOIN vectors v ON v.owner = c.owner AND v.conversation = c.number
JOIN vector_models m ON m.number = v.model
WHERE c.owner = $1 AND c.id = $2 AND c.erased_at IS NULL GROUP BY m.name"""
"""How far each embedder's index of a conversation has come."""

MODELS = "SELECT m.name, count(*) FROM vectors v JOIN vector_models m ON m.number = v.model GROUP BY m.name"
"""How many vectors each embedder has."""

OFFERED = """
SELECT coalesce(
    (SELECT extversion FROM pg_extension WHERE extname = 'vector'),
    (SELECT default_version FROM pg_available_extensions WHERE name = 'vector'))"""
"""The version of pgvector that is installed in this database, or could be."""

HAS_COLUMN = """
SELECT EXISTS (SELECT 1 FROM pg_attribute WHERE attrelid = 'vectors'::regclass AND attname = 'embedding'
    AND NOT attisdropped)"""
"""Whether vectors are kept as pgvector's."""

MAKE_COLUMN = """
CREATE EXTENSION IF NOT EXISTS vector;
SET lock_timeout = '5s';
ALTER TABLE vectors ADD COLUMN IF NOT EXISTS embedding halfvec;
ALTER TABLE vectors ALTER COLUMN embedding SET STATISTICS 0"""
"""Install pgvector and make its column, without statistics: their samples would outlive an erase."""

MAKE_INDEX = """
CREATE INDEX IF NOT EXISTS vectors_near_{model} ON vectors
USING hnsw ((embedding::halfvec({dimension})) halfvec_ip_ops) WHERE model = {model}"""
"""The index of one embedder's vectors; model and dimension are numbers that we gave."""

SOME_RECORDS = """
SELECT owner, conversation, model, seq, part, record FROM vectors WHERE embedding IS NULL AND record IS NOT NULL
LIMIT $1 FOR UPDATE SKIP LOCKED"""
"""Vectors from before there was pgvector."""

CARRY_OVER = """
UPDATE vectors SET embedding = $6::real[]::halfvec, record = NULL
WHERE owner = $1 AND conversation = $2 AND model = $3 AND seq = $4 AND part = $5"""
"""Keep one as pgvector's."""
