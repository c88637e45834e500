"""The log: conversations, branches, entries, large payloads, remembered answers, erasures."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_number = sa.BigInteger().with_variant(sa.Integer, "sqlite")

_TEXTS = (
    ("conversations", "title"),
    ("conversations", "metadata"),
    ("entries", "salt"),
    ("entries", "raw"),
    ("payloads", "body"),
    ("answers", "idempotency_key"),
    ("answers", "body"),
    ("answers", "receipts"),
)
"""Columns that an erase empties."""


def upgrade() -> None:
    op.create_table(
        "conversations",
        sa.Column("number", _number, primary_key=True, autoincrement=True),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("parent_number", sa.BigInteger),
        sa.Column("title", sa.Text),
        sa.Column("metadata", sa.LargeBinary, nullable=False),
        sa.Column("is_active", sa.SmallInteger, nullable=False),
        sa.Column("off_record", sa.SmallInteger, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("updated_at", sa.BigInteger, nullable=False),
        sa.Column("deleted_at", sa.BigInteger),
        sa.Column("erased_at", sa.BigInteger),
        sa.Column("entry_count", sa.Integer, nullable=False),
        sa.Column("chain", sa.LargeBinary, nullable=False),
        sa.Column("active_branch", sa.Integer, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("conversations_by_id", "conversations", ["owner", "id"], unique=True)
    op.create_index("conversations_by_number", "conversations", ["owner", "number"])
    op.create_index(
        "conversations_by_parent", "conversations", ["parent_number"],
        sqlite_where=sa.text("parent_number IS NOT NULL"), postgresql_where=sa.text("parent_number IS NOT NULL"),
    )  # fmt: skip
    op.create_table(
        "branches",
        sa.Column("conversation", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("parent", sa.Integer),
        sa.Column("fork_seq", sa.BigInteger, nullable=False),
        sa.Column("leaf_seq", sa.BigInteger, nullable=False),
        sa.Column("leaf_depth", sa.Integer, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "entries",
        sa.Column("key", _number, primary_key=True, autoincrement=False),
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("kind", sa.SmallInteger, nullable=False),
        sa.Column("role", sa.Text, nullable=False),
        sa.Column("revises", sa.BigInteger),
        sa.Column("how", sa.SmallInteger),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.Column("parent_seq", sa.BigInteger),
        sa.Column("branch", sa.Integer, nullable=False),
        sa.Column("depth", sa.Integer, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("tokens", sa.Integer, nullable=False),
        sa.Column("salt", sa.LargeBinary),
        sa.Column("chain", sa.LargeBinary, nullable=False),
        sa.Column("raw", sa.LargeBinary),
        sa.Column("commitment", sa.LargeBinary),
        sa.Column("newest_seq", sa.BigInteger),
        sa.Column("flags", sa.SmallInteger, nullable=False),
        sa.Column("updated_at", sa.BigInteger),
    )
    op.execute("CREATE INDEX entries_by_id ON entries ((key >> 32), id)")
    op.create_table(
        "payloads",
        sa.Column("key", _number, primary_key=True, autoincrement=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "answers",
        sa.Column("conversation", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("idempotency_key", sa.Text, primary_key=True),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.Column("receipts", sa.LargeBinary, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "erasures",
        sa.Column("number", _number, primary_key=True, autoincrement=True),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("conversation", sa.Text),
        sa.Column("message", sa.Text),
        sa.Column("erased_at", sa.BigInteger, nullable=False),
        sa.Column("finished_at", sa.BigInteger),
    )
    if op.get_bind().dialect.name == "postgresql":
        _fit_postgresql()


def _fit_postgresql() -> None:
    """Keep samples of texts out of the planner's statistics, where no erase would find them.

    The rows that every append updates get room beside them, so that their indexes need no new entries.
    """
    for table, column in _TEXTS:
        op.execute(f"ALTER TABLE {table} ALTER COLUMN {column} SET STATISTICS 0")
    for table in ("conversations", "branches"):
        op.execute(f"ALTER TABLE {table} SET (fillfactor = 70)")
