"""An index of the pinned notes: every context reads them, however many others there are."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    pinned = sa.text("pinned_at IS NOT NULL")
    columns = ["owner", "kind", "shelf"]
    op.create_index("notes_pinned", "notes", columns, sqlite_where=pinned, postgresql_where=pinned)
