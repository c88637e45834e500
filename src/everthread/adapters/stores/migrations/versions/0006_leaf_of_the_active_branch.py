"""The leaf of the active branch, in the conversation's own row: an append changes one row less."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

_FILL = """
UPDATE conversations SET (leaf_seq, leaf_depth) = (
    SELECT b.leaf_seq, b.leaf_depth FROM branches b
    WHERE b.conversation = conversations.number AND b.number = conversations.active_branch)"""


def upgrade() -> None:
    op.add_column("conversations", sa.Column("leaf_seq", sa.BigInteger, nullable=False, server_default="0"))
    op.add_column("conversations", sa.Column("leaf_depth", sa.Integer, nullable=False, server_default="0"))
    op.execute(_FILL)
