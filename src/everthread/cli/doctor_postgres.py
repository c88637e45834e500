"""What `doctor` looks at in a PostgreSQL database. It only reads."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from itertools import cycle, islice
from typing import TYPE_CHECKING

from everthread.adapters.jobs.postgres_statements import OLDEST_WAITING
from everthread.adapters.stores import schema
from everthread.adapters.stores.layout import words_of
from everthread.adapters.stores.postgres import errors, tables
from everthread.adapters.stores.postgres import statements as sql
from everthread.adapters.stores.postgres.address import parse
from everthread.adapters.stores.postgres.pool import Connection, connect
from everthread.adapters.vectors.postgres import UNDECIDED, WITH_PGVECTOR, WITHOUT_PGVECTOR
from everthread.adapters.vectors.postgres_statements import HAS_COLUMN, MODELS
from everthread.cli.doctor import (
    SAMPLE,
    SAMPLE_WORDS,
    Check,
    CheckState,
    check_erasures,
    check_holds,
    check_index,
    check_jobs,
    check_sample,
    check_tables,
    check_vectors,
)
from everthread.core.entries import Entry, Flag, Kind
from everthread.core.errors import EverthreadError, StoreDamaged
from everthread.history.holds import DOCUMENTS

if TYPE_CHECKING:
    from everthread.core.workspaces import Workspaces

OLDEST_SERVER = 140000
TO_BE_INDEXED = f"e.kind = {Kind.MESSAGE:d} AND e.flags & {Flag.ERASED:d} = 0 AND c.off_record = 0"
COUNTS = f"""
SELECT (SELECT count(*) FROM words),
    (SELECT count(*) FROM entries e JOIN conversations c ON c.owner = e.owner AND c.number = e.conversation
     WHERE {TO_BE_INDEXED})"""
"""How many messages the index holds, and how many it must hold."""
SOME_CONVERSATIONS = """
SELECT owner, number, entry_count FROM conversations
WHERE entry_count > 0 AND off_record = 0 AND erased_at IS NULL ORDER BY random() LIMIT $1"""
"""Conversations that a sample is drawn from."""

SOME_MESSAGE = f"""
SELECT {sql.ENTRY} FROM entries e
WHERE e.owner = $1 AND e.conversation = $2 AND e.seq >= $3 AND e.kind = {Kind.MESSAGE:d}
  AND e.flags & {Flag.ERASED:d} = 0
  AND NOT EXISTS (
    SELECT 1 FROM payloads p
    WHERE p.owner = e.owner AND p.conversation = e.conversation AND p.seq = e.seq AND p.blob IS NOT NULL)
ORDER BY e.seq LIMIT 1"""
"""The next message of a conversation, from a seq on, that the index must hold."""

IS_FOUND = """
SELECT count(*) FROM words WHERE owner = $1 AND conversation = $2 AND seq = $3 AND tokens @@ $4::text::tsquery"""
"""Whether the index has an entry under some words."""


async def check_server(url: str, workspaces: Workspaces) -> AsyncIterator[Check]:
    """Look at a database from the outside in; stop where going on makes no sense."""
    address = parse(url)
    try:
        connection = await connect(address)
    except EverthreadError as problem:
        yield Check(name="database", state=CheckState.FAIL, found=str(problem), advice="see that the server is up")
        return
    try:
        async for check in _check_connected(connection, workspaces):
            yield check
    except errors.DRIVER as problem:
        found = errors.translated(problem, address)
        state = CheckState.DAMAGED if isinstance(found, StoreDamaged) else CheckState.FAIL
        yield Check(name="database", state=state, found=str(found), advice="see the server's log")
    finally:
        await connection.close()


async def _check_connected(connection: Connection, workspaces: Workspaces) -> AsyncIterator[Check]:
    yield await _check_version(connection)
    yield await _check_durability(connection)
    if await connection.fetchval(sql.HAS_ASIDE):
        yield Check(
            name="restore",
            state=CheckState.WARN,
            found=f"a restore was cut off: the tables it was to replace are in the schema {sql.ASIDE}",
            advice="restore again, with --force",
        )
    tables_check = check_tables(await tables.version(connection), schema.VERSION)
    yield tables_check
    if tables_check.state is CheckState.OK:
        done = await connection.fetch(sql.ERASURES)
        yield check_erasures(len(await connection.fetch(sql.UNFINISHED_ERASURES)), done, workspaces)
        yield check_holds(row[0] for row in await connection.fetch(DOCUMENTS))
        counts = {name: await connection.fetchval(sql.STATS[f"jobs_{name}"]) for name in ("waiting", "dead")}
        yield check_jobs(**counts, oldest_at=await connection.fetchval(OLDEST_WAITING))
        yield await _check_vectors(connection)
        ((indexed, wanted),) = await connection.fetch(COUNTS)
        yield check_index(indexed=indexed, wanted=wanted)
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
        return Check(name="database", state=CheckState.FAIL, found=found, advice="use PostgreSQL 14 or newer")
    return Check(name="database", state=CheckState.OK, found=found)


async def _check_durability(connection: Connection) -> Check:
    fsync = await connection.fetchval("SHOW fsync")
    commit = await connection.fetchval("SHOW synchronous_commit")
    return Check(
        name="durability",
        state=CheckState.OK if fsync == "on" else CheckState.WARN,
        found=f"fsync={fsync}, synchronous_commit={commit}",
        advice="" if fsync == "on" else "set fsync=on: a power cut can damage the database",
    )


async def _check_sample(connection: Connection) -> Check:
    conversations = await connection.fetch(SOME_CONVERSATIONS, SAMPLE)
    drawn: dict[tuple[str, int, int], Entry] = {}
    for owner, number, count in islice(cycle(conversations), SAMPLE):
        row = await connection.fetchrow(SOME_MESSAGE, owner, number, random.randint(1, count))
        if row is not None:
            drawn[owner, number, row[0]] = Entry._make(row)
    found = [await _is_found(connection, *place, entry) for place, entry in drawn.items()]
    return check_sample(found=sum(found), drawn=len(drawn))


async def _is_found(connection: Connection, owner: str, number: int, seq: int, entry: Entry) -> bool:
    words = words_of(entry, owner).split(" ")[:SAMPLE_WORDS]
    return bool(await connection.fetchval(IS_FOUND, owner, number, seq, " & ".join(f"'{word}'" for word in words)))
