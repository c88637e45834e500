"""Checkpoints under names of their own: LangGraph's savers call their tables `checkpoints` and `writes`, and one schema
or file is to hold both. Step 0007 makes them so by now; here those that it made before are renamed."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    found = sa.inspect(op.get_bind())
    if found.has_table("agent_checkpoints"):
        return
    for table in ("checkpoints", "writes"):
        op.rename_table(table, f"agent_{table}")
        if op.get_bind().dialect.name == "postgresql":
            op.execute(f"ALTER INDEX {table}_pkey RENAME TO agent_{table}_pkey")
