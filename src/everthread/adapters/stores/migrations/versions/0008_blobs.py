"""Large payloads in a blob store, for those who set one."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("payloads", sa.Column("blob", sa.Text))
    op.add_column("payloads", sa.Column("blob_bytes", sa.BigInteger))
    op.add_column("payloads", sa.Column("commitment", sa.LargeBinary))
    op.execute("CREATE INDEX payloads_by_blob ON payloads (blob) WHERE blob IS NOT NULL")
    op.create_table(
        "doomed_blobs",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("doomed_at", sa.BigInteger, nullable=False),
        sqlite_with_rowid=False,
    )
