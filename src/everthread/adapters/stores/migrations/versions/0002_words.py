"""The search index over the log: FTS5 on SQLite, a tsvector with GIN on PostgreSQL, both fed ready-made tokens."""

from __future__ import annotations

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


_FTS5 = """
CREATE VIRTUAL TABLE words
USING fts5(tokens, content='', detail=none, columnsize=0, prefix='1', tokenize='ascii')"""
"""prefix: a Chinese character is the beginning of a token; without it a million messages take 50 ms, with it 1."""


def upgrade() -> None:
    if op.get_bind().dialect.name == "sqlite":
        op.execute(_FTS5)
        op.execute("CREATE TABLE unindexed (conversation INTEGER PRIMARY KEY, after_seq INTEGER NOT NULL)")
        op.execute("INSERT INTO unindexed SELECT number, 0 FROM conversations WHERE entry_count > 0 AND off_record = 0")
    else:
        op.execute("CREATE TABLE words (key bigint PRIMARY KEY, tokens tsvector NOT NULL)")
        op.execute("CREATE INDEX words_by_token ON words USING gin (tokens) WITH (gin_pending_list_limit = 512)")
        op.execute("ALTER TABLE words ALTER COLUMN tokens SET STATISTICS 0")  # they would keep words that are erased
