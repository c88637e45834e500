"""Bringing a PostgreSQL database to today's tables: each step is a transaction, under a lock, so that a migration
killed anywhere resumes and two processes that begin at once do not meet.
"""

from __future__ import annotations

from collections.abc import Sequence

from everthread.adapters.jobs.postgres_statements import INDEX_ROUNDS
from everthread.adapters.jobs.postgres_statements import SCHEMA as JOBS
from everthread.adapters.stores import schema
from everthread.adapters.stores.postgres import errors
from everthread.adapters.stores.postgres import statements as sql
from everthread.adapters.stores.postgres.address import Address
from everthread.adapters.stores.postgres.pool import Connection, Pool, connect
from everthread.core.failpoints import reach
from everthread.text.words import renew_token, renewable_letters

_BIND_FUNCTIONS = f"""
DO $$
DECLARE found regprocedure;
BEGIN
    FOR found IN SELECT oid::regprocedure FROM pg_proc WHERE pronamespace = '{JOBS}'::regnamespace LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = {JOBS}, pg_temp', found);
    END LOOP;
END $$"""
"""Procrastinate's functions find their tables by the search path, which is ours when we defer a job; so each is told
where it belongs."""


async def bring_up_to_date(pool: Pool) -> None:
    """Make or change the tables where that is needed; a later everthread's are refused."""
    found = await pool.read(version)
    if found is None or found < schema.VERSION:
        await migrate(pool.address)
    else:
        schema.refuse_newer(found)


async def version(connection: Connection) -> int | None:
    """Return the version of a database's tables; None when it has no tables yet."""
    if await connection.fetchval(sql.HAS_VERSION, "schema_version"):
        found: int | None = await connection.fetchval(schema.VERSION_QUERY)
        return found
    if await connection.fetchval(sql.HAS_VERSION, "alembic_version"):
        return schema.old_version(await connection.fetchval(schema.OLD_VERSION_QUERY))
    return None


async def migrate(address: Address) -> list[int]:
    """Make all tables, or run the missing steps; give the versions it went through."""
    connection = await connect(address, command_timeout=None)  # another process may be at it, and take long
    try:
        await connection.execute(sql.MIGRATION_LOCK)
        found = await version(connection)
        if found is None:
            await _run(connection, [*schema.create("postgres"), *await _jobs(connection)], schema.VERSION)
            return [schema.VERSION]
        steps = schema.missing_steps(found)
        for step in steps:
            await _run(connection, step.upgrade("postgres"), step.version)
        return [step.version for step in steps]
    except errors.DRIVER as problem:
        raise errors.translated(problem, address) from problem
    finally:
        await connection.close()


async def _run(connection: Connection, statements: Sequence[str], to: int) -> None:
    """One step, all of it or nothing."""
    reach("migrate.begun")
    async with connection.transaction():
        for statement in statements:
            await connection.execute(statement)
            reach("migrate.step_done")
        if to == schema.RENEWS_TOKENS:  # a new database has no rows
            await _renew_tokens(connection)
        await connection.execute(sql.DELETE_VERSION)
        await connection.execute(sql.INSERT_VERSION, to)
        reach("migrate.before_commit")


async def _renew_tokens(connection: Connection) -> None:
    """Bring the indexes of words up to date: the rows with a word that is written otherwise now, page by page."""
    letters = f"[{renewable_letters()}]"
    for some, renew, start in (
        (sql.SOME_WORDS, sql.RENEW_WORDS, (0, 0, "")),
        (sql.SOME_NOTES, sql.RENEW_NOTE, ("", 0)),
    ):
        after: Sequence[object] = start
        while rows := await connection.fetch(some, *after, letters):
            renewed = [(*row[:-1], sorted(set[str]().union(*map(renew_token, row[-1])))) for row in map(tuple, rows)]
            await connection.executemany(renew, renewed)
            after = renewed[-1][:-1]


async def _jobs(connection: Connection) -> Sequence[str]:
    """Return the statements that create procrastinate's tables, in their own schema to avoid name clashes."""
    from procrastinate.schema import SchemaManager  # noqa: PLC0415 - only when there is something to do

    if await connection.fetchval(sql.HAS_SCHEMA, JOBS):  # made for tables of ours in another schema
        return ()
    return (
        f"CREATE SCHEMA {JOBS}",
        f"SET LOCAL search_path = {JOBS}, pg_temp; {SchemaManager.get_schema()}; RESET search_path",
        f"ALTER TABLE {JOBS}.procrastinate_jobs ALTER COLUMN args SET STATISTICS 0",
        INDEX_ROUNDS,
        _BIND_FUNCTIONS,
    )
