"""Vectors: what messages mean, by embedder. SQLite keeps records of several entries in a row; PostgreSQL one in a row,
as a record or, where pgvector is, in a column that is added when the first is kept."""

from __future__ import annotations

from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


_SQLITE = (
    "CREATE TABLE vector_models (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, dimension INTEGER NOT NULL)",
    """CREATE TABLE vectors (
        conversation INTEGER NOT NULL, model INTEGER NOT NULL, page INTEGER NOT NULL, owner TEXT NOT NULL,
        body BLOB NOT NULL, PRIMARY KEY (conversation, model, page))""",
)
_POSTGRES = (
    """CREATE TABLE vector_models (
        number integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text NOT NULL UNIQUE, dimension integer NOT NULL
    )""",
    """CREATE TABLE vectors (
        conversation bigint NOT NULL, model integer NOT NULL, seq bigint NOT NULL, part integer NOT NULL,
        owner text NOT NULL, record bytea, PRIMARY KEY (conversation, model, seq, part))""",
    "CREATE INDEX vectors_by_owner ON vectors (owner, model)",
    "ALTER TABLE vectors ALTER COLUMN record SET STATISTICS 0",  # samples would outlive an erase
)


def upgrade() -> None:
    for statement in _SQLITE if op.get_bind().dialect.name == "sqlite" else _POSTGRES:
        op.execute(statement)
