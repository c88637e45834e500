"""Checkpoints of agent graphs beside the log: rows, the writes that wait on them, and the bytes they share."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

_number = sa.BigInteger().with_variant(sa.Integer, "sqlite")

_TEXTS = (
    ("agent_checkpoints", "body"),
    ("agent_checkpoints", "metadata"),
    ("agent_writes", "value"),
    ("blobs", "body"),
)
"""Columns that an erase empties."""


def upgrade() -> None:
    op.create_table(
        "threads",
        sa.Column("conversation", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("made", sa.Integer, nullable=False),
        sa.Column("tip", sa.Integer, nullable=False),
        sa.Column("epoch", sa.Integer, nullable=False),
        sa.Column("is_closed", sa.SmallInteger, nullable=False),
        sa.Column("erasures", sa.Integer, nullable=False),
    )
    op.create_table(
        "agent_checkpoints",
        sa.Column("key", _number, primary_key=True, autoincrement=False),
        sa.Column("namespace", sa.Text, nullable=False),
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("parent_id", sa.Text),
        sa.Column("run_id", sa.Text),
        sa.Column("state", sa.SmallInteger, nullable=False),
        sa.Column("log_count", sa.Integer, nullable=False),
        sa.Column("branch", sa.Integer, nullable=False),
        sa.Column("leaf_seq", sa.BigInteger, nullable=False),
        sa.Column("leaf_depth", sa.Integer, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.Column("metadata", sa.LargeBinary, nullable=False),
    )
    op.execute("CREATE UNIQUE INDEX checkpoints_by_id ON agent_checkpoints ((key >> 32), namespace, id)")
    op.execute("CREATE INDEX checkpoints_by_run ON agent_checkpoints (run_id) WHERE run_id IS NOT NULL")
    op.create_table(
        "agent_writes",
        sa.Column("key", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("task_id", sa.Text, primary_key=True),
        sa.Column("idx", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("task_path", sa.Text, nullable=False),
        sa.Column("channel", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("value", sa.LargeBinary, nullable=False),
        sa.Column("is_held", sa.SmallInteger, nullable=False),
        sqlite_with_rowid=False,
    )
    op.execute("CREATE INDEX writes_held ON agent_writes (key) WHERE is_held = 1")
    op.create_table(
        "blobs",
        sa.Column("conversation", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("digest", sa.LargeBinary, primary_key=True),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sqlite_with_rowid=False,
    )
    if op.get_bind().dialect.name == "postgresql":
        _fit_postgresql()


def _fit_postgresql() -> None:
    """Keep samples of texts out of the planner's statistics, where no erase would find them; ids compare as bytes,
    as they do on SQLite, because the greatest id is the newest checkpoint.
    """
    for table, column in _TEXTS:
        op.execute(f"ALTER TABLE {table} ALTER COLUMN {column} SET STATISTICS 0")
    for table, column in (("agent_checkpoints", "namespace"), ("agent_checkpoints", "id"), ("agent_writes", "task_id")):
        op.execute(f'ALTER TABLE {table} ALTER COLUMN {column} TYPE text COLLATE "C"')
