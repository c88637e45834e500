"""How far our counts of tokens are from each model's own: learnt from reports, kept over a restart."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "calibrations",
        sa.Column("model", sa.Text, primary_key=True),
        sa.Column("factor", sa.Double, nullable=False),
        sa.Column("samples", sa.BigInteger, nullable=False),
    )
