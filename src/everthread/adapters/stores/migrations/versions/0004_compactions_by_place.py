"""Compactions found by where they begin and end, so that a view reads the few it needs."""

from __future__ import annotations

import json

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

_COLUMNS = {"branch": sa.Integer, "after_seq": sa.BigInteger, "level": sa.Integer}
_LIVE = "undone_at IS NULL AND invalid_at IS NULL"
_TEXTS = (("compactions", "record"), ("manifests", "manifest"))
"""Columns that an erase empties."""


def upgrade() -> None:
    for name, kind in _COLUMNS.items():
        op.add_column("compactions", sa.Column(name, kind, nullable=False, server_default="0"))
    _fill()
    op.execute(
        f"CREATE INDEX compactions_by_start ON compactions (conversation, after_seq, level, last_seq) WHERE {_LIVE}"
    )
    op.execute(
        "CREATE INDEX compactions_by_end ON compactions (conversation, last_seq, after_seq) WHERE invalid_at IS NULL"
    )
    op.execute("CREATE INDEX compactions_by_age ON compactions (conversation, created_at, id)")
    if op.get_bind().dialect.name == "postgresql":
        for table, column in _TEXTS:  # the planner's statistics would keep what is erased
            op.execute(f"ALTER TABLE {table} ALTER COLUMN {column} SET STATISTICS 0")


def _fill() -> None:
    """From the records, read here: no database's own JSON takes every text that a summary may hold."""
    bind = op.get_bind()
    table = sa.table(
        "compactions",
        sa.column("conversation"),
        sa.column("id"),
        sa.column("record"),
        *(sa.column(name) for name in _COLUMNS),
    )
    for conversation, id, record in bind.execute(sa.select(table.c.conversation, table.c.id, table.c.record)).all():
        kept = json.loads(record)
        one = sa.and_(table.c.conversation == conversation, table.c.id == id)
        bind.execute(sa.update(table).where(one).values({name: kept[name] for name in _COLUMNS}))
