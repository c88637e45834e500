"""From here on a SQLite file may lack tables that nothing was written to; an earlier everthread would miss them."""

from __future__ import annotations

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """What has all tables is as good as what has not."""
