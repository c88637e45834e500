"""Bringing a PostgreSQL database to today's tables: each step is a transaction, under a lock, so that a migration
killed anywhere resumes and two processes that begin at once do not meet.
"""

from __future__ import annotations

import asyncpg

from everthread.adapters.stores import migrating
from everthread.adapters.stores.postgres import errors
from everthread.adapters.stores.postgres import statements as sql
from everthread.adapters.stores.postgres.address import Address
from everthread.adapters.stores.postgres.pool import Connection, Pool, connect


async def bring_up_to_date(pool: Pool) -> None:
    """Make or change the tables where that is needed; a later everthread's are refused."""
    version = await pool.read(revision)
    if version is None or version < migrating.NEWEST:
        await migrate(pool.address)
    else:
        migrating.refuse_newer(version)


async def revision(connection: Connection) -> str | None:
    """The revision of a database's tables; None when it has none yet."""
    try:
        version: str | None = await connection.fetchval(migrating.VERSION_QUERY)
    except asyncpg.UndefinedTableError:
        return None
    return version


async def migrate(address: Address) -> list[str]:
    """Run the missing steps; give the names of those that ran."""
    from sqlalchemy.exc import DBAPIError  # noqa: PLC0415 - only when there is something to do
    from sqlalchemy.ext.asyncio import create_async_engine  # noqa: PLC0415
    from sqlalchemy.pool import NullPool  # noqa: PLC0415

    engine = create_async_engine("postgresql+asyncpg://", async_creator=lambda: connect(address), poolclass=NullPool)
    try:
        async with engine.connect() as connection:
            await connection.exec_driver_sql(sql.MIGRATION_LOCK)
            await connection.commit()  # the lock is the session's: alembic begins and ends transactions of its own
            return list(await connection.run_sync(migrating.run))
    except DBAPIError as problem:
        cause = problem.orig and problem.orig.__cause__
        if isinstance(cause, errors.DRIVER):
            raise errors.translated(cause, address) from problem
        raise
    finally:
        await engine.dispose()
