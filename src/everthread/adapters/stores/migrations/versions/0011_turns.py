"""Turns, and what they told while they ran."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

_number = sa.BigInteger().with_variant(sa.Integer, "sqlite")
_UNFINISHED = sa.text("state < 2")
_TEXTS = (("turns", "record"), ("turns", "question"), ("run_events", "body"))


def upgrade() -> None:
    op.create_table(
        "turns",
        sa.Column("number", _number, primary_key=True, autoincrement=True),
        sa.Column("conversation", sa.BigInteger, nullable=False),
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("state", sa.SmallInteger, nullable=False),
        sa.Column("holder", sa.Text, nullable=False),
        sa.Column("lease_until", sa.BigInteger),
        sa.Column("is_asked_to_stop", sa.SmallInteger, nullable=False),
        sa.Column("received_at", sa.BigInteger, nullable=False),
        sa.Column("question", sa.LargeBinary),
        sa.Column("record", sa.LargeBinary, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("turns_by_id", "turns", ["conversation", "id"], unique=True)
    op.create_index("turns_by_number", "turns", ["conversation", "number"])
    op.create_index(
        "turns_unfinished", "turns", ["conversation"], sqlite_where=_UNFINISHED, postgresql_where=_UNFINISHED
    )
    op.create_table(
        "run_events",
        sa.Column("turn", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("first", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("last", sa.Integer, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.Column("kept_at", sa.BigInteger, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_index("run_events_by_age", "run_events", ["kept_at"])
    if op.get_bind().dialect.name == "postgresql":
        for table, column in _TEXTS:  # samples would outlive an erase
            op.execute(f"ALTER TABLE {table} ALTER COLUMN {column} SET STATISTICS 0")
