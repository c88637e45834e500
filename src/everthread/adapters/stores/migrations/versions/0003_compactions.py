"""Compactions: summaries that stand for stretches of a path, in views only; and how each conversation is compacted."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("CREATE INDEX entries_pinned ON entries (key) WHERE flags & 2 <> 0")
    op.create_table(
        "compactions",
        sa.Column("conversation", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("first_seq", sa.BigInteger, nullable=False),
        sa.Column("last_seq", sa.BigInteger, nullable=False),
        sa.Column("record", sa.LargeBinary, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("undone_at", sa.BigInteger),
        sa.Column("invalid_at", sa.BigInteger),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "policies",
        sa.Column("conversation", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("policy", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "manifests",
        sa.Column("conversation", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("manifest", sa.LargeBinary, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sqlite_with_rowid=False,
    )
