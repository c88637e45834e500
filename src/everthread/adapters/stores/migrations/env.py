"""Alembic's way into a database: over the connection that `migrating` hands it, one transaction per step."""

from __future__ import annotations

from typing import Any

from alembic import context

from everthread.adapters.stores.schema import metadata
from everthread.core.failpoints import reach


def _step_done(*_: object, **__: Any) -> None:
    reach("migrate.step_done")


context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    transaction_per_migration=True,
    on_version_apply=_step_done,
)
with context.begin_transaction():
    context.run_migrations()
