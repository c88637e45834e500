"""What models were told beside the messages, kept once for all manifests that name it."""

from __future__ import annotations

import hashlib
import json

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "prompts",
        sa.Column("conversation", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("digest", sa.Text, primary_key=True),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sqlite_with_rowid=False,
    )
    if op.get_bind().dialect.name == "postgresql":  # the planner's statistics would keep what is erased
        op.execute("ALTER TABLE prompts ALTER COLUMN body SET STATISTICS 0")
    _take_out_of_manifests()


def _take_out_of_manifests() -> None:
    bind = op.get_bind()
    manifests = sa.table("manifests", *map(sa.column, ("conversation", "id", "manifest")))
    prompts = sa.table("prompts", *map(sa.column, ("conversation", "digest", "body")))
    kept: set[tuple[int, str]] = set()
    for conversation, id, manifest in bind.execute(sa.select(manifests)).all():
        fields = json.loads(manifest)
        text = fields.pop("system", None)
        fields |= {"system_digest": None, "tools_digest": None, "recalled": []}
        if text:
            body = text.encode()
            fields["system_digest"] = digest = hashlib.sha256(body).hexdigest()
            if (conversation, digest) not in kept:
                bind.execute(sa.insert(prompts).values(conversation=conversation, digest=digest, body=body))
                kept.add((conversation, digest))
        one = sa.and_(manifests.c.conversation == conversation, manifests.c.id == id)
        bind.execute(sa.update(manifests).where(one).values(manifest=json.dumps(fields).encode()))
