"""From here on payloads may stand packed in a SQLite file; an earlier everthread could not read them."""

from __future__ import annotations

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """What stands there stays as it is."""
