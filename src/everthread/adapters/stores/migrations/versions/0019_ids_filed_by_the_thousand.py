"""Ids are filed by their hashes, many at once (SQLite), instead of in an index that every entry changes a page of."""

from __future__ import annotations

from hashlib import blake2b

from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None

_IDS = "SELECT key & 4294967295, CAST(id AS TEXT) FROM entries WHERE key >> 32 = ? AND kind <> 2"


def upgrade() -> None:
    bind = op.get_bind()
    if bind.dialect.name != "sqlite":
        return
    op.execute("""
CREATE TABLE entry_ids (conversation INTEGER NOT NULL, hash INTEGER NOT NULL, seq INTEGER NOT NULL,
    PRIMARY KEY (conversation, hash, seq)) WITHOUT ROWID""")
    op.execute("CREATE TABLE filed (conversation INTEGER PRIMARY KEY, seq INTEGER NOT NULL)")
    for (number,) in bind.exec_driver_sql("SELECT number FROM conversations WHERE entry_count > 0").fetchall():
        rows = sorted((number, _hash(id), seq) for seq, id in bind.exec_driver_sql(_IDS, (number,)))
        bind.exec_driver_sql("INSERT INTO entry_ids VALUES (?, ?, ?)", rows)
    op.execute("INSERT INTO filed SELECT number, entry_count FROM conversations WHERE entry_count > 0")
    op.execute("DROP INDEX entries_by_id")


def _hash(id: str) -> int:
    return int.from_bytes(blake2b(id.encode(), digest_size=6).digest(), "big")
