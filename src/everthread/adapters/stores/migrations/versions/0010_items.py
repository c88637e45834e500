"""Items: documents that agents keep beside their conversations, by owner, namespace and key."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "items",
        sa.Column("owner", sa.Text, primary_key=True),
        sa.Column("namespace", sa.Text(collation=_BYTES[op.get_bind().dialect.name]), primary_key=True),
        sa.Column("key", sa.Text, primary_key=True),
        sa.Column("value", sa.LargeBinary, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("updated_at", sa.BigInteger, nullable=False),
        sa.Column("expires_at", sa.BigInteger),
        sa.Column("ttl_micros", sa.BigInteger),
        sa.Column("model", sa.Text),
        sa.Column("vectors", sa.LargeBinary),
        sqlite_with_rowid=False,
    )
    if op.get_bind().dialect.name == "postgresql":
        op.execute("ALTER TABLE items ALTER COLUMN value SET STATISTICS 0")  # samples would outlive an erase


_BYTES = {"sqlite": None, "postgresql": "C"}
"""A namespace and those below it are one stretch of an order by bytes."""
