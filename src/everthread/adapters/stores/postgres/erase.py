"""Erasing on PostgreSQL: the one way text leaves the log.

In one transaction the tokens leave the index, payloads and salts are blanked, and the erasure is noted. PostgreSQL
keeps the old rows in the tables' files until those are rewritten, which follows at once. When a crash comes in
between, or somebody still reads the old rows, the note is unfinished and the next opening ends the work.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import asyncpg

from everthread.adapters.jobs import postgres_statements as jobs
from everthread.adapters.stores.layout import (
    CANNOT_REACH,
    erase_report,
    memory_erased,
    texts_of,
    title_quotes,
    traces_of,
)
from everthread.adapters.stores.postgres import access, compactions, log, notes, turns
from everthread.adapters.stores.postgres import statements as sql
from everthread.adapters.stores.postgres.blobs import fill
from everthread.adapters.stores.postgres.conversations import note_change
from everthread.adapters.stores.postgres.pool import Connection
from everthread.adapters.vectors import postgres_statements as vectors
from everthread.core.blobs import Blobs
from everthread.core.entries import Entry
from everthread.core.errors import NotFound
from everthread.core.failpoints import reach
from everthread.core.log import IdempotencyRecord
from everthread.core.nouns import EraseReport, Ref

BEYOND_REACH = (
    *CANNOT_REACH,
    "replicas, until they have followed",
    "the server's write-ahead log until its files are written over or removed (recycled ones keep their bytes until "
    "then), and archives of it",
    "the server's own log, where it is set to log the values of statements",
)
STILL_SEEN = "old rows that another transaction still reads (the next opening of the database removes them)"
NOT_OWNED = "old rows of tables that this user does not own (the next opening by their owner removes them)"
NOT_REWRITTEN = "old rows of tables that could not be rewritten (the next opening of the database tries again)"
LEFT_BY_RESTORE = f"tables in the schema {sql.ASIDE}, which a killed restore left (restore again, or drop the schema)"

_ABOUT = {
    "agent_checkpoints": sql.DELETE_CHECKPOINTS_ABOUT,
    "agent_writes": sql.DELETE_WRITES_ABOUT,
    "blobs": sql.DELETE_BLOBS_ABOUT,
}
_WAIT_SECONDS = 10.0
_POLL_SECONDS = 0.05


async def blank(
    connection: Connection,
    owner: str,
    conversation: str | None,
    message: str | None,
    now: int,
    blobs: Blobs | None = None,
) -> EraseReport:
    """Destroy text and salts, in a transaction."""
    if conversation is None and message is not None:
        return await _erase_memory(connection, owner, message, now)
    found = await connection.fetch(sql.LOCK_ERASE_TARGETS, owner, conversation, message is None)
    if not found and conversation is not None:
        raise NotFound(f"no conversation {conversation!r}")
    numbers = [row[0] for row in found]
    # Those of an owner as a whole; else one after the other, a conversation and those of its subagents.
    named = [None] if conversation is None else [conversation] if message is not None else [row[1] for row in found]
    seqs = None if message is None else [row[0] for row in await connection.fetch(sql.SEQS_OF, owner, numbers, message)]
    reached = Counter({"notes": 0})
    for id in named:
        reached["notes"] += _count(await notes.erase(connection, owner, id, seqs))
    reached.update(await _blank_all(connection, owner, numbers, message, now, blobs))
    if conversation is None:
        reached["items"] = _count(await connection.execute(sql.DELETE_ITEMS_OF, owner))
        reached["import_sources"] = _count(await connection.execute(sql.DELETE_SOURCES_OF, owner))
    for id in named:
        reached.update(await access.forget(connection, owner, id))
    if message is not None and not reached["entries"]:
        raise NotFound(f"no message {message!r} in conversation {conversation!r}")
    reach("erase.payloads_blanked")
    await connection.executemany(sql.INSERT_ERASURE, [(owner, id, message, now) for id in named])
    reach("erase.recorded")
    return erase_report(owner, conversation, message, reached, BEYOND_REACH, now)


async def _erase_memory(connection: Connection, owner: str, id: str, now: int) -> EraseReport:
    if not _count(await notes.erase_memory(connection, owner, id)):
        raise NotFound(f"no memory {id!r}")
    await access.blank_replies(connection, owner, None)
    await connection.execute(sql.INSERT_ERASURE, owner, None, id, now)
    reach("erase.recorded")
    return memory_erased(owner, id, BEYOND_REACH, now)


async def _blank_all(
    connection: Connection, owner: str, numbers: Sequence[int], message: str | None, now: int, blobs: Blobs | None
) -> dict[str, int]:
    targets = [] if message is None else await _targets(connection, owner, numbers, message, blobs)
    traces: list[bytes | None] = [None] if message is None else [*traces_of(targets)]
    reached = {"words": _count(await connection.execute(sql.DELETE_WORDS, owner, numbers, message))}
    reached["vectors"] = _count(await connection.execute(vectors.FORGET_ERASED, owner, numbers, message))
    reach("erase.words_removed")
    reached["entries"] = _count(await connection.execute(sql.BLANK_ENTRIES, owner, numbers, message, now))
    await connection.execute(sql.DOOM_BLOBS, owner, numbers, message, now)
    reached["payloads"] = _count(await connection.execute(sql.DELETE_PAYLOADS, owner, numbers, message))
    reached["message_facts"] = _count(await connection.execute(sql.DELETE_FACTS, owner, numbers, message))
    reached["import_lines"] = _count(await connection.execute(sql.DELETE_LINES, owner, numbers, message))
    for trace in traces:
        await _forget_checkpoints(connection, owner, numbers, trace, reached)
    await connection.execute(sql.NOTE_ERASURE, owner, numbers)
    await connection.execute(jobs.FORGET_ERRORS, numbers)
    if message is not None:
        reached["compactions"] = await _destroy_summaries(connection, owner, numbers, message)
        reached["answers"] = await _blank_answers(connection, owner, numbers, message)
        await turns.forget_message(connection, owner, numbers, message, texts_of(targets), reached)
        reached["titles"] = 0
        for number, id, title in await connection.fetch(sql.TITLES, owner, numbers):
            if title_quotes(title, targets):
                reached["titles"] += _count(await connection.execute(sql.BLANK_TITLE, owner, number))
                await note_change(connection, Ref(owner, id), now)
    else:
        reached["answers"] = _count(await connection.execute(sql.DELETE_ANSWERS, owner, numbers))
        reached["compactions"] = _count(await connection.execute(sql.DELETE_COMPACTIONS, owner, numbers))
        await connection.execute(sql.RELEASE_PROMPTS, owner, numbers)
        reached["prompts"] = _count(await connection.execute(sql.DELETE_UNUSED_PROMPTS, owner))
        reached["model_usage"] = _count(await connection.execute(sql.DELETE_USAGE, owner, numbers))
        reached["manifests"] = _count(await connection.execute(sql.DELETE_MANIFESTS, owner, numbers))
        reached["policies"] = _count(await connection.execute(sql.DELETE_POLICY, owner, numbers))
        await turns.forget(connection, owner, numbers, reached)
        reached["jobs"] = _count(await connection.execute(jobs.FORGET, numbers))
        reached["uses"] = _count(await connection.execute(notes.FORGET_USES, owner, numbers))
        reached["conversations"] = _count(await connection.execute(sql.BLANK_CONVERSATIONS, owner, numbers, now))
        await connection.execute(sql.BLANK_CHANGES, owner, numbers)
    return reached


async def _destroy_summaries(connection: Connection, owner: str, numbers: Sequence[int], message: str) -> int:
    destroyed = 0
    for number in numbers:
        key = sql.ConversationKey(owner, number)
        branches = {row.number: row for row in await log.all_branches(connection, key)}
        for entry in await log.by_id(connection, key, [message]):
            if entry.is_place:
                destroyed += await compactions.destroy(connection, key, entry, branches)
    return destroyed


async def _targets(
    connection: Connection, owner: str, numbers: Sequence[int], message: str, blobs: Blobs | None
) -> Sequence[Entry]:
    rows = await connection.fetch(sql.ENTRIES_TO_ERASE, owner, numbers, message)
    return await fill(map(Entry._make, rows), blobs)


async def _forget_checkpoints(
    connection: Connection, owner: str, numbers: Sequence[int], trace: bytes | None, reached: dict[str, int]
) -> None:
    """Destroy all checkpoints of conversations, or what they hold of a message."""
    for table, statement in _ABOUT.items():
        found = _count(await connection.execute(statement, owner, numbers, trace))
        reached[table] = reached.get(table, 0) + found


async def _blank_answers(connection: Connection, owner: str, numbers: Sequence[int], message: str) -> int:
    answers = [(row[0], IdempotencyRecord(*row[1:])) for row in await connection.fetch(sql.ANSWERS, owner, numbers)]
    blanked = [(number, answer.blanked()) for number, answer in answers if answer.tells_of(message)]
    for number, answer in blanked:
        await connection.execute(sql.BLANK_ANSWER, owner, number, answer.key, answer.body, answer.receipts)
    return len(blanked)


def _count(status: str) -> int:
    """How many rows, by the server's answer such as `DELETE 5`."""
    return int(status.rpartition(" ")[2])


def with_what_is_left(report: EraseReport, left: Sequence[str]) -> EraseReport:
    """The report after the rewrite."""
    return replace(report, cannot_reach=(*report.cannot_reach, *left))


async def rewrite(connection: Connection, now: int, *, wait: bool) -> Sequence[str]:
    """Leave no old row in the tables' files; give what could not be removed. Needs a connection of its own.

    Without `wait` nothing is done while another process is at it.
    """
    reach("erase.committed")
    while not await connection.fetchval(sql.TRY_ERASE_LOCK):
        if not wait:
            return ()
        await asyncio.sleep(_POLL_SECONDS)
    unfinished = [row[0] for row in await connection.fetch(sql.UNFINISHED_ERASURES)]
    if not unfinished:
        return ()
    left = await _rewrite_tables(connection)
    if not left:
        reach("erase.compacted")
        await connection.execute(sql.FINISH_ERASURES, unfinished, now)
    if await connection.fetchval(sql.HAS_ASIDE):
        return (*left, LEFT_BY_RESTORE)
    return left


async def _rewrite_tables(connection: Connection) -> Sequence[str]:
    if not await _nobody_sees_old_rows(connection):
        return (STILL_SEEN,)
    before = await _files(connection)
    await connection.execute(sql.REWRITE_PATIENCE)
    try:
        for table in sql.REWRITTEN_TABLES:
            await connection.execute(sql.REWRITE.format(table=table))
    except asyncpg.LockNotAvailableError:
        return (STILL_SEEN,)
    if before & await _files(connection):  # PostgreSQL only warns when the user may not rewrite a table
        return (NOT_OWNED,)
    with suppress(asyncpg.InsufficientPrivilegeError):  # the server's own next checkpoint does the same
        await connection.execute("CHECKPOINT")
    return ()


async def _nobody_sees_old_rows(connection: Connection) -> bool:
    """Wait a little for transactions that began before: most last no longer than a statement."""
    barrier = await connection.fetchval(sql.NEXT_TRANSACTION)
    waited = 0.0
    while await connection.fetchval(sql.OLDER_TRANSACTIONS, barrier):
        if waited >= _WAIT_SECONDS:
            return False
        await asyncio.sleep(_POLL_SECONDS)
        waited += _POLL_SECONDS
    return True


async def _files(connection: Connection) -> set[int]:
    return {row[0] for row in await connection.fetch(sql.FILES, sql.REWRITTEN_TABLES)}
