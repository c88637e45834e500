"""Tools that messages call are counted when the index reaches them (SQLite); of what waits now they are counted."""

from __future__ import annotations

from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    if op.get_bind().dialect.name == "sqlite":
        op.execute("ALTER TABLE unindexed ADD COLUMN counted_seq INTEGER NOT NULL DEFAULT 0")
        op.execute(
            "UPDATE unindexed SET counted_seq = (SELECT entry_count FROM conversations WHERE number = conversation)"
        )
