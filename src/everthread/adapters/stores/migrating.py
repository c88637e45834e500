"""Bringing a database to today's tables, so that a migration killed anywhere resumes.

On SQLite all missing steps are one transaction that is either there or not; on PostgreSQL each step is one,
under a lock. Alembic and SQLAlchemy are imported only when there is something to do: opening a database that
is up to date costs one SELECT.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from typing import TYPE_CHECKING

from everthread.core.errors import StoreError
from everthread.core.failpoints import reach

if TYPE_CHECKING:
    from sqlalchemy import Connection

NEWEST = "0021"
"""The revision this version of everthread works with; a test holds it equal to alembic's head."""

VERSION_QUERY = "SELECT version_num FROM alembic_version"


def run(connection: Connection) -> Sequence[str]:
    """Run every step that is missing, over an open connection; give the names of those that ran."""
    from alembic import command  # noqa: PLC0415 - only when there is something to do
    from alembic.config import Config  # noqa: PLC0415
    from alembic.migration import MigrationContext  # noqa: PLC0415
    from alembic.script import ScriptDirectory  # noqa: PLC0415

    config = Config()
    config.set_main_option("script_location", str(files("everthread.adapters.stores") / "migrations"))
    config.attributes["connection"] = connection
    is_inside = connection.in_transaction()
    before = MigrationContext.configure(connection).get_current_revision()
    if not is_inside:
        connection.rollback()  # reading began a transaction; inside of one alembic would not give each step its own
    reach("migrate.begun")
    command.upgrade(config, "head")
    reach("migrate.before_commit")
    script = ScriptDirectory.from_config(config)
    return [step.revision for step in script.iterate_revisions("head", before or "base")][::-1]


def refuse_newer(version: str) -> None:
    """A database written by a later everthread is left alone."""
    if version > NEWEST:
        raise StoreError(
            f"the database has tables of revision {version}, this everthread knows {NEWEST}; nothing was changed: "
            "upgrade everthread to open it"
        )
