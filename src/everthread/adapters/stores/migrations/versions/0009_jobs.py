"""Jobs: work that is done later; and the mark at which a conversation is worth a look.

On PostgreSQL they are procrastinate's, in a schema of their own so that they meet nobody else's. Its functions find
their tables by the search path, which is ours when we defer a job; so each is told where it belongs.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

SCHEMA = "everthread_jobs"

_BIND_FUNCTIONS = f"""
DO $$
DECLARE found regprocedure;
BEGIN
    FOR found IN SELECT oid::regprocedure FROM pg_proc WHERE pronamespace = '{SCHEMA}'::regnamespace LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = {SCHEMA}, pg_temp', found);
    END LOOP;
END $$;"""


def upgrade() -> None:
    op.add_column("conversations", sa.Column("look_at", sa.Integer, nullable=False, server_default="0"))
    if op.get_bind().dialect.name == "sqlite":
        _make_table()
    else:
        _make_schema()


def _make_table() -> None:
    op.create_table(
        "jobs",
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("conversation", sa.BigInteger, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("priority", sa.Integer, nullable=False),
        sa.Column("details", sa.Text, nullable=False),
        sa.Column("state", sa.SmallInteger, nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("due_at", sa.BigInteger, nullable=False),
        sa.Column("leased_until", sa.BigInteger, nullable=False),
        sa.Column("token", sa.Text),
        sa.Column("error", sa.Text),
        sa.Column("put_at", sa.BigInteger, nullable=False),
        sqlite_autoincrement=True,
    )
    op.execute("CREATE UNIQUE INDEX jobs_waiting ON jobs (conversation, kind) WHERE state = 0")
    op.execute("CREATE UNIQUE INDEX jobs_running ON jobs (conversation) WHERE state = 1")
    op.execute("CREATE INDEX jobs_in_order ON jobs (state, priority DESC, number)")


def _make_schema() -> None:
    """A script of many statements, which the driver takes only by itself; inside our transaction all the same."""
    from procrastinate.schema import SchemaManager  # noqa: PLC0415 - part of the extra

    script = f"""
CREATE SCHEMA {SCHEMA};
SET LOCAL search_path = {SCHEMA}, pg_temp;
{SchemaManager.get_schema()}
RESET search_path;
ALTER TABLE {SCHEMA}.procrastinate_jobs ALTER COLUMN args SET STATISTICS 0;
{_BIND_FUNCTIONS}"""
    driver: Any = op.get_bind().connection.dbapi_connection
    driver.run_async(lambda connection: connection.execute(script))
