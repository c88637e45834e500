"""Notes: memories, and documents with their passages, found by their words; and how often tools were used."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

_FTS5 = """
CREATE VIRTUAL TABLE note_words
USING fts5(tokens, content='', detail=none, columnsize=0, prefix='1', tokenize='ascii')"""


def upgrade() -> None:
    _make_notes()
    op.create_table(
        "uses",
        sa.Column("conversation", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("kind", sa.Text, primary_key=True),
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("uses", sa.BigInteger, nullable=False),
        sa.Column("last_at", sa.BigInteger, nullable=False),
        sqlite_with_rowid=False,
    )
    if op.get_bind().dialect.name == "sqlite":
        op.execute(_FTS5)
        return
    op.execute("ALTER TABLE notes ADD COLUMN tokens tsvector")
    op.execute("CREATE INDEX notes_by_token ON notes USING gin (tokens) WITH (gin_pending_list_limit = 512)")
    for column in ("text", "record", "topic", "tokens", "vector"):  # samples would outlive an erase
        op.execute(f"ALTER TABLE notes ALTER COLUMN {column} SET STATISTICS 0")
    op.execute("ALTER TABLE uses ALTER COLUMN name SET STATISTICS 0")


def _make_notes() -> None:
    op.create_table(
        "notes",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=True),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("kind", sa.SmallInteger, nullable=False),
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("shelf", sa.Text, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("record", sa.LargeBinary, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("updated_at", sa.BigInteger, nullable=False),
        sa.Column("topic", sa.Text),
        sa.Column("state", sa.SmallInteger, nullable=False),
        sa.Column("past_at", sa.BigInteger),
        sa.Column("pinned_at", sa.BigInteger),
        sa.Column("source_conversation", sa.Text),
        sa.Column("source_seq", sa.BigInteger),
        sa.Column("model", sa.Text),
        sa.Column("vector", sa.LargeBinary),
        sqlite_autoincrement=True,
    )
    op.create_index("notes_by_id", "notes", ["owner", "kind", "id"], unique=True)
    op.create_index("notes_by_shelf", "notes", ["owner", "kind", "shelf", "state", "number"])
    _index_where("notes_by_topic", ["owner", "kind", "shelf", "topic"], "topic IS NOT NULL")
    _index_where("notes_by_source", ["owner", "source_conversation", "source_seq"], "source_conversation IS NOT NULL")


def _index_where(name: str, columns: list[str], where: str) -> None:
    op.create_index(name, "notes", columns, sqlite_where=sa.text(where), postgresql_where=sa.text(where))
