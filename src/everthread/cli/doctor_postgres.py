"""What `doctor` looks at in a PostgreSQL database. It only reads."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator

from everthread.adapters.stores import migrating
from everthread.adapters.stores.layout import words_of
from everthread.adapters.stores.postgres import errors, tables
from everthread.adapters.stores.postgres import statements as sql
from everthread.adapters.stores.postgres.address import parse
from everthread.adapters.stores.postgres.pool import Connection, connect
from everthread.adapters.stores.restoring_postgres import ASIDE, HAS_ASIDE
from everthread.adapters.vectors.postgres import UNDECIDED, WITH_PGVECTOR, WITHOUT_PGVECTOR
from everthread.adapters.vectors.postgres_statements import HAS_COLUMN, MODELS
from everthread.cli.doctor import (
    SAMPLE,
    SAMPLE_WORDS,
    Check,
    State,
    check_erasures,
    check_index,
    check_jobs,
    check_revision,
    check_sample,
    check_vectors,
)
from everthread.core.entries import Entry
from everthread.core.errors import EverthreadError, StoreDamaged

OLDEST_SERVER = 140000
TO_BE_INDEXED = "e.kind = 0 AND e.flags & 4 = 0 AND c.off_record = 0"
COUNTS = f"""
SELECT (SELECT count(*) FROM words),
    (SELECT count(*) FROM entries e JOIN conversations c ON c.number = e.key >> 32 WHERE {TO_BE_INDEXED})"""
"""How many messages the index holds, and how many it must hold."""
KEYS = "SELECT coalesce(min(key), 0), coalesce(max(key), 0) FROM entries"
"""Between which keys a sample is drawn."""
SOME_MESSAGE = f"""
SELECT e.key, c.owner, {sql.ENTRY}
FROM entries e JOIN conversations c ON c.number = e.key >> 32
WHERE e.key >= $1 AND {TO_BE_INDEXED}
  AND NOT EXISTS (SELECT 1 FROM payloads p WHERE p.key = e.key AND p.blob IS NOT NULL)
ORDER BY e.key LIMIT 1"""
"""The next message, from a key on, that the index must hold."""
IS_FOUND = "SELECT count(*) FROM words WHERE key = $1 AND tokens @@ $2::text::tsquery"
"""Whether the index has an entry under some words."""


async def check_server(url: str) -> AsyncIterator[Check]:
    """Look at a database from the outside in; stop where going on makes no sense."""
    address = parse(url)
    try:
        connection = await connect(address)
    except EverthreadError as problem:
        yield Check(name="database", state=State.FAIL, found=str(problem), advice="see that the server is up")
        return
    try:
        async for check in _check_connected(connection):
            yield check
    except errors.DRIVER as problem:
        found = errors.translated(problem, address)
        state = State.DAMAGED if isinstance(found, StoreDamaged) else State.FAIL
        yield Check(name="database", state=state, found=str(found), advice="see the server's log")
    finally:
        await connection.close()


async def _check_connected(connection: Connection) -> AsyncIterator[Check]:
    yield await _check_version(connection)
    yield await _check_durability(connection)
    if await connection.fetchval(HAS_ASIDE):
        yield Check(
            name="restore",
            state=State.WARN,
            found=f"a restore was cut off: the tables it was to replace are in the schema {ASIDE}",
            advice="restore again, with --force",
        )
    revision = check_revision(await tables.revision(connection), migrating.NEWEST)
    yield revision
    if revision.state is State.OK:
        yield check_erasures(len(await connection.fetch(sql.UNFINISHED_ERASURES)))
        counts = {name: await connection.fetchval(sql.STATS[f"jobs_{name}"]) for name in ("waiting", "dead")}
        yield check_jobs(**counts)
        yield await _check_vectors(connection)
        yield await _check_count(connection)
        yield await _check_sample(connection)


async def _check_vectors(connection: Connection) -> Check:
    parts = {name: count for name, count in await connection.fetch(MODELS)}
    if await connection.fetchval(HAS_COLUMN):
        return check_vectors(WITH_PGVECTOR, parts)
    return check_vectors(WITHOUT_PGVECTOR if parts else UNDECIDED, parts)


async def _check_version(connection: Connection) -> Check:
    number = int(await connection.fetchval("SHOW server_version_num"))
    found = f"PostgreSQL {await connection.fetchval('SHOW server_version')}"
    if number < OLDEST_SERVER:
        return Check(name="database", state=State.FAIL, found=found, advice="use PostgreSQL 14 or newer")
    return Check(name="database", state=State.OK, found=found)


async def _check_durability(connection: Connection) -> Check:
    fsync = await connection.fetchval("SHOW fsync")
    commit = await connection.fetchval("SHOW synchronous_commit")
    return Check(
        name="durability",
        state=State.OK if fsync == "on" else State.WARN,
        found=f"fsync={fsync}, synchronous_commit={commit}",
        advice="" if fsync == "on" else "set fsync=on: a power cut can damage the database",
    )


async def _check_count(connection: Connection) -> Check:
    ((indexed, wanted),) = await connection.fetch(COUNTS)
    return check_index(indexed=indexed, wanted=wanted)


async def _check_sample(connection: Connection) -> Check:
    ((first, last),) = await connection.fetch(KEYS)
    drawn = [await connection.fetchrow(SOME_MESSAGE, random.randint(first, last)) for _ in range(SAMPLE)]
    rows = {row[0]: row for row in drawn if row is not None}
    found = [await _is_found(connection, row[0], row[1], Entry._make(row[2:])) for row in rows.values()]
    return check_sample(found=sum(found), drawn=len(rows))


async def _is_found(connection: Connection, key: int, owner: str, entry: Entry) -> bool:
    words = words_of(entry, owner).split(" ")[:SAMPLE_WORDS]
    return bool(await connection.fetchval(IS_FOUND, key, " & ".join(f"'{word}'" for word in words)))
