"""Putting a backup back on PostgreSQL, by the same steps as `restore`: the old tables are moved aside into a schema of
their own, the backup's are loaded, erased again and verified, and only then the old ones are dropped.

Anything that fails before puts the old tables back. After a kill they still lie in that schema, and the next
restore takes them for what is to be replaced. Processes that have the database open meet missing tables meanwhile.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

from everthread.adapters.jobs.postgres_statements import SCHEMA as JOBS
from everthread.adapters.stores import schema
from everthread.adapters.stores.postgres import PostgresStore, dump, erase, errors, tables
from everthread.adapters.stores.postgres import statements as sql
from everthread.adapters.stores.postgres.address import Address, parse
from everthread.adapters.stores.postgres.pool import Connection, connect
from everthread.adapters.stores.postgres.statements import ASIDE, HAS_ASIDE
from everthread.adapters.stores.restore import (
    REVOKED_KEYS,
    SHARES,
    Access,
    Erasure,
    Restored,
    access_of,
    revoke_and_verify,
)
from everthread.core.blobs import Blobs
from everthread.core.clock import from_micros, system_clock, to_micros
from everthread.core.errors import Conflict, NotFound, StoreDamaged

JOBS_ASIDE = f"{ASIDE}_jobs"

PATIENCE = "SET lock_timeout = '10s'"
"""How long the old tables are waited for, when somebody still works on them."""

HOME = """
SELECT relnamespace::regnamespace::text FROM pg_class
WHERE oid = coalesce(to_regclass('schema_version'), to_regclass('alembic_version'))"""
"""The schema our tables are in, as the address finds it; no row when there are none."""

OURS = """
SELECT relname FROM pg_class
WHERE relnamespace = to_regnamespace($1) AND relkind IN ('r', 'p') AND relname = ANY($2::text[])"""
"""Our tables in a schema."""

MOVE = 'ALTER TABLE {source}."{table}" SET SCHEMA {target}'
"""Give a table, with its indexes and sequences, another schema. The names come from the catalogue and from here."""

DROP_JOBS = f"DROP SCHEMA IF EXISTS {JOBS} CASCADE"
"""Remove the tables of jobs, with their types and functions."""

RENAME = "ALTER SCHEMA {source} RENAME TO {target}"
"""Give a schema another name; of those of jobs, whose functions know it, the first one comes back in the end."""

DROP = 'DROP TABLE {source}."{table}"'
"""Remove a table."""


async def restore_postgres(
    url: str,
    source: Path,
    *,
    erasures: Sequence[Erasure] = (),
    force: bool = False,
    keep_old: bool = False,
    blobs: Blobs | None = None,
) -> Restored:
    """Put a backup in the place of a database's tables, without what was erased since.

    When it does not verify, `Restored.report` says so and the old tables are back.
    """
    _require(source)
    address = parse(url)
    async with _session(address) as connection:
        home = await _set_aside(connection, force)
        is_done = False
        try:
            old, access = await _erasures_aside(connection), await _access_aside(connection)
            await dump.restore(url, source)
            await _bring_up_to_date(connection, address, source)
            applied = await _erase_again(connection, [*old, *erasures], blobs)
            report, revoked = await revoke_and_verify(PostgresStore(url, blobs=blobs), access)
            is_done = report.ok
        finally:
            if not is_done:
                await _put_back(connection, home)
        kept = await _let_go(connection, keep_old) if is_done else None
    return Restored(erasures=applied, is_old_list_read=True, kept=kept, report=report, revoked=revoked)


def _require(source: Path) -> None:
    if not source.is_file():
        raise NotFound(f"file not found: {source}; nothing was changed")


@asynccontextmanager
async def _session(address: Address) -> AsyncIterator[Connection]:
    connection = await connect(address, command_timeout=None)
    try:
        await connection.execute(PATIENCE)
        yield connection
    except errors.DRIVER as problem:
        raise errors.translated(problem, address) from problem
    finally:
        await connection.close()


async def _set_aside(connection: Connection, force: bool) -> str:
    """Make room for the backup's tables; give the schema they come into."""
    home: str | None = await connection.fetchval(HOME)
    is_cut_off = await connection.fetchval(HAS_ASIDE)
    if (home is not None or is_cut_off) and not force:
        raise Conflict("the database has tables already; nothing was changed: --force replaces them")
    place = home or "public"
    if is_cut_off:  # what stands in their place was never verified
        drops = [DROP.format(source=place, table=t) for t in await _ours(connection, place)]
        await _all_at_once(connection, [*drops, DROP_JOBS])
    elif home is not None:
        moves = [MOVE.format(source=home, table=t, target=ASIDE) for t in await _ours(connection, home)]
        renames = await _renames(connection, JOBS, JOBS_ASIDE)
        await _all_at_once(connection, [f"CREATE SCHEMA {ASIDE}", *moves, *renames])
    return place


async def _renames(connection: Connection, source: str, target: str) -> list[str]:
    """What renames a schema, if it is there: tables from before there were jobs have none."""
    is_there = await connection.fetchval(sql.HAS_SCHEMA, source)
    return [RENAME.format(source=source, target=target)] if is_there else []


async def _put_back(connection: Connection, home: str) -> None:
    drops = [DROP.format(source=home, table=t) for t in await _ours(connection, home)]
    moves = [MOVE.format(source=ASIDE, table=t, target=home) for t in await _ours(connection, ASIDE)]
    renames = await _renames(connection, JOBS_ASIDE, JOBS)
    await _all_at_once(connection, [*drops, DROP_JOBS, *moves, *renames, f"DROP SCHEMA IF EXISTS {ASIDE}"])


async def _let_go(connection: Connection, keep_old: bool) -> str | None:
    if not await connection.fetchval(HAS_ASIDE):
        return None
    if not keep_old:
        await connection.execute(f"DROP SCHEMA {ASIDE} CASCADE; DROP SCHEMA IF EXISTS {JOBS_ASIDE} CASCADE")
        return None
    name = f"everthread_replaced_{datetime.now(UTC).strftime('%Y%m%dt%H%M%S')}"
    renames = await _renames(connection, JOBS_ASIDE, f"{name}_jobs")
    await _all_at_once(connection, [RENAME.format(source=ASIDE, target=name), *renames])
    return f"schema {name}"


async def _ours(connection: Connection, place: str) -> list[str]:
    return [row[0] for row in await connection.fetch(OURS, place, [*schema.tables("postgres"), "alembic_version"])]


async def _all_at_once(connection: Connection, statements: Sequence[str]) -> None:
    """Several statements in one message are one transaction."""
    if statements:
        await connection.execute("; ".join(statements))


async def _erasures_aside(connection: Connection) -> list[Erasure]:
    if "erasures" not in await _ours(connection, ASIDE):
        return []
    return await _read(connection, sql.ERASURES.replace("FROM erasures", f"FROM {ASIDE}.erasures"))


async def _access_aside(connection: Connection) -> Access:
    names, place = await _ours(connection, ASIDE), f"{ASIDE}."
    keys = await connection.fetch(REVOKED_KEYS.format(place=place)) if "api_keys" in names else []
    shares = await connection.fetch(SHARES.format(place=place)) if "conversations" in names else []
    return access_of(keys, shares)


async def _read(connection: Connection, statement: str) -> list[Erasure]:
    rows = await connection.fetch(statement)
    return [Erasure(owner, conversation, message, from_micros(at)) for owner, conversation, message, at in rows]


async def _bring_up_to_date(connection: Connection, address: Address, source: Path) -> None:
    version = await tables.version(connection)
    if version is None:
        raise StoreDamaged(f"{source} is not an everthread backup; the database is unchanged")
    schema.refuse_newer(version)
    await tables.migrate(address)


async def _erase_again(connection: Connection, erasures: Sequence[Erasure], blobs: Blobs | None) -> list[Erasure]:
    """Apply, under their first date, the erasures that the backup does not know (see `restoring`)."""
    known = set(await _read(connection, sql.ERASURES))
    unknown = [erasure for erasure in dict.fromkeys(erasures) if erasure not in known]
    await connection.execute("BEGIN")
    for erasure in unknown:
        await _erase_one(connection, erasure, blobs)
    await connection.execute("COMMIT")
    await erase.rewrite(connection, to_micros(system_clock()), wait=True)
    return unknown


async def _erase_one(connection: Connection, erasure: Erasure, blobs: Blobs | None) -> None:
    at = to_micros(erasure.erased_at)
    await connection.execute("SAVEPOINT one")
    try:
        await erase.blank(connection, *erasure[:3], at, blobs)
    except NotFound:
        await connection.execute("ROLLBACK TO one")
        await connection.execute(sql.INSERT_ERASURE, *erasure[:3], at)
    await connection.execute("RELEASE one")
