"""The log in PostgreSQL: show an intent what it needs, write what it decides, read paths.

A write is five round trips, six when messages bring their own ids: begin, lock and look, (ids), entries with
their words, head with its branch, commit. One that calls tools is one more, to count them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from everthread.adapters.jobs import postgres as jobs
from everthread.adapters.jobs.postgres import PostgresJobs
from everthread.adapters.stores.layout import (
    LARGE_BYTES,
    branches_after,
    is_indexed,
    last_said_at,
    payload_rows,
    revisions_of,
    row_payload,
    uses_in,
    words_of,
)
from everthread.adapters.stores.postgres import checkpoints, compactions, notes, turns
from everthread.adapters.stores.postgres import statements as sql
from everthread.adapters.stores.postgres.blobs import fill, fill_pairs
from everthread.adapters.stores.postgres.pool import Connection, PostgresDatabase, Row
from everthread.adapters.stores.postgres.statements import ConversationKey
from everthread.adapters.stores.postgres.turn_statements import NOTIFY
from everthread.core.blobs import Blobs
from everthread.core.entries import HIDDEN_FLAGS, SEQ_MASK, Entry, Flag, Kind, Revision
from everthread.core.errors import NotFound
from everthread.core.failpoints import reach
from everthread.core.imports import ImportLine
from everthread.core.log import (
    BranchRow,
    Decision,
    IdempotencyRecord,
    Intent,
    IntentInputs,
    LogHead,
    Needs,
    Segment,
    Touch,
)
from everthread.core.nouns import Ref
from everthread.core.paths import path_segments, within
from everthread.core.ports import MOST_PINNED, PathQuery

R = TypeVar("R")

_BATCH_ENTRIES = 1000
_BATCH_BYTES = 8 << 20
"""How much one statement carries: a value of PostgreSQL ends at 1 GB."""
_OFFLOAD_BYTES = 1 << 18
"""From this size on words are found in a thread: those of 10 MB take about a second."""
_MOST_ROWS = SEQ_MASK


class PostgresLog:
    """`store.log` of core/ports.py."""

    defers_token_count = False

    def __init__(self, database: PostgresDatabase, jobs: PostgresJobs) -> None:
        self._database = database
        self._jobs = jobs

    async def write(self, ref: Ref, intent: Intent[R]) -> R:
        now = self._database.now()
        pool = self._database.pool

        async def work(connection: Connection) -> Decision[R]:
            decision = await write(connection, ref, intent, now, self._database.blobs)
            if decision.turns:
                await connection.execute(NOTIFY, pool.signals.payloads([ref], is_state=True))
            return decision

        decision = await pool.write(work)
        if decision.jobs:
            self._jobs.ring(decision.jobs)
        if decision.turns:
            pool.signals.publish(ref, is_state=True)
        return decision.result

    async def path(self, ref: Ref, query: PathQuery) -> Sequence[tuple[Entry, Entry]]:
        return await fill_pairs(await self._database.pool.read(lambda c: path(c, ref, query)), self._database.blobs)

    async def find(self, ref: Ref, *, ids: Sequence[str] = (), seqs: Sequence[int] = ()) -> Sequence[Entry]:
        return await fill(await self._database.pool.read(lambda c: find(c, ref, ids, seqs)), self._database.blobs)

    async def scan(self, ref: Ref, *, after: int, limit: int, with_tokens: bool = True) -> Sequence[Entry]:
        return await fill(await self._database.pool.read(lambda c: scan(c, ref, after, limit)), self._database.blobs)

    async def framework_entries(self, ref: Ref) -> Sequence[Entry]:
        return await fill(await self._database.pool.read(lambda c: framework_entries(c, ref)), self._database.blobs)

    async def origins(self, ref: Ref) -> Sequence[tuple[int, str]]:
        async def work(connection: Connection) -> Sequence[tuple[int, str]]:
            key, _, _ = await living_head(connection, ref)
            return [(row[0], row[1]) for row in await connection.fetch(sql.ORIGINS, *key)]

        return await self._database.pool.read(work)

    async def branches(self, ref: Ref) -> tuple[Sequence[BranchRow], int]:
        async def work(connection: Connection) -> tuple[Sequence[BranchRow], int]:
            key, head, _ = await living_head(connection, ref)
            return await all_branches(connection, key), head.active

        return await self._database.pool.read(work)


async def write(
    connection: Connection, ref: Ref, intent: Intent[R], now: int, blobs: Blobs | None = None
) -> Decision[R]:
    """Look, decide, write: all inside one transaction that holds the conversation's row. Gives what was written."""
    key, seen = await _look(connection, ref, intent.needs(), blobs)
    reach("append.locked")
    decision = intent.decide(seen, now)
    await _apply(connection, key, seen, decision, now, blobs)
    return decision


async def _look(
    connection: Connection, ref: Ref, needs: Needs, blobs: Blobs | None
) -> tuple[ConversationKey, IntentInputs]:
    row = await connection.fetchrow(sql.LOCK_HEAD, *ref) or await connection.fetchrow(sql.LOCK_HEAD, *ref)
    key, log_head, active = _head(row, ref)
    rows = await all_branches(connection, key) if needs.every_branch else [active]
    answer = None
    if needs.idempotency_key is not None:
        answer = await connection.fetchrow(sql.ANSWER, *key, needs.idempotency_key)
    named = await fill(await by_id(connection, key, needs.ids), blobs)
    seen = IntentInputs(
        head=log_head,
        branches={branch.number: branch for branch in rows},
        by_id={entry.id: entry for entry in named if entry.change_kind != Revision.STUB},
        by_seq={entry.seq: entry for entry in await by_seq(connection, key, needs.seqs)},
        answer=None if answer is None else IdempotencyRecord(*answer),
        compactions=await compactions.find(connection, key, needs.compactions) if needs.compactions else (),
        since=await _since(connection, key, needs.since) if needs.since is not None else (),
        checkpoints=await checkpoints.look(connection, key, needs.checkpoints) if needs.checkpoints else None,
        revisions=revisions_of(named) if needs.every_revision else {},
        turns=await turns.look(connection, key, needs.turns) if needs.turns is not None else (),
    )
    return key, seen


def _head(row: Row | None, ref: Ref) -> tuple[ConversationKey, LogHead, BranchRow]:
    if row is None:
        raise NotFound(f"no conversation {ref.id!r}")
    found = tuple(row)
    return (
        ConversationKey(found[1], found[0]),
        LogHead._make((*found[1:7], bool(found[7]), found[8])),
        BranchRow(*found[9:]),
    )


async def head(connection: Connection, ref: Ref) -> tuple[ConversationKey, LogHead, BranchRow]:
    """A conversation's key, the end of its log and its active branch."""
    return _head(await connection.fetchrow(sql.LOG_HEAD, *ref), ref)


async def living_head(connection: Connection, ref: Ref) -> tuple[ConversationKey, LogHead, BranchRow]:
    """The same for readers: raises NotFound for an erased conversation too."""
    found = await head(connection, ref)
    if found[1].is_erased:
        raise NotFound(f"no conversation {ref.id!r}")
    return found


async def all_branches(connection: Connection, key: ConversationKey) -> list[BranchRow]:
    return [BranchRow(*row) for row in await connection.fetch(sql.BRANCHES, *key)]


async def by_id(connection: Connection, key: ConversationKey, ids: Sequence[str]) -> list[Entry]:
    """Every revision of these messages, in order of seq."""
    return _entries(await connection.fetch(sql.ENTRIES_BY_ID, *key, list(ids))) if ids else []


async def by_seq(connection: Connection, key: ConversationKey, seqs: Sequence[int]) -> list[Entry]:
    known = [seq for seq in seqs if seq <= SEQ_MASK]
    return _entries(await connection.fetch(sql.ENTRIES_BY_SEQ, *key, known)) if known else []


async def _since(connection: Connection, key: ConversationKey, seq: int) -> list[Entry]:
    return _entries(await connection.fetch(sql.SCAN, *key, seq, _MOST_ROWS))


def _entries(rows: Sequence[Row]) -> list[Entry]:
    return list(map(Entry._make, rows))


# -- writing ---------------------------------------------------------------------------------------------------


async def _apply(
    connection: Connection,
    key: ConversationKey,
    seen: IntentInputs,
    decision: Decision[Any],
    now: int,
    blobs: Blobs | None,
) -> None:
    branches, active = branches_after(seen, decision)
    if decision.entries:
        await _write_entries(connection, key, decision.entries, seen.head, blobs)
    if decision.touches:
        await _touch(connection, key, decision.touches)
    if decision.changed:
        places = await by_seq(connection, key, decision.changed)
        rows = {row.number: row for row in await all_branches(connection, key)}
        await compactions.invalidate(connection, key, places, rows, now)
    await compactions.keep(connection, key, decision.compactions)
    if decision.checkpoints is not None:
        await checkpoints.apply(connection, key, decision.checkpoints)
    if decision.answer is not None:
        await connection.execute(sql.INSERT_ANSWER, *key, *decision.answer, now)
    await turns.apply(connection, key, decision, now)
    await _keep_lines(connection, key, decision.lines)
    if decision.jobs:
        await jobs.put(connection, key.number, Ref(seen.head.owner, seen.head.id), decision.jobs, now)
    if decision.entries or decision.active is not None:
        head = _new_head(seen.head, decision, active)
        said_at = last_said_at(decision.entries)
        await connection.execute(sql.ADVANCE, *_branches(key, branches), *head, now, said_at)
        reach("fork.written")
        reach("append.head_written")
    elif branches:
        await connection.execute(sql.WRITE_BRANCHES, *_branches(key, branches))
        reach("fork.written")
    elif decision.compaction_check_at is not None:
        await connection.execute(sql.SET_COMPACTION_CHECK_AT, *key, decision.compaction_check_at)


async def _keep_lines(connection: Connection, key: ConversationKey, lines: Sequence[ImportLine]) -> None:
    if lines:
        await connection.execute(sql.KEEP_LINES, *key, *_columns(lines, len(ImportLine._fields)))


def _branches(key: ConversationKey, branches: Sequence[BranchRow]) -> tuple[object, ...]:
    """The values of `WRITE_BRANCHES`."""
    return (*key, *_columns(branches, len(BranchRow._fields)))


def _new_head(before: LogHead, decision: Decision[Any], active: BranchRow) -> tuple[int, bytes, int, int, int, int]:
    count = before.entry_count + len(decision.entries)
    compaction_check_at = (
        before.compaction_check_at if decision.compaction_check_at is None else decision.compaction_check_at
    )
    return count, decision.chain or before.chain, active.number, active.leaf_seq, active.leaf_depth, compaction_check_at


def _row(entry: Entry) -> tuple[Any, ...]:
    """An entry as the values of `INSERT_COLUMNS`."""
    return (*entry[:14], row_payload(entry), entry.flags, entry.origin, entry.chain_version)


async def _write_entries(
    connection: Connection, key: ConversationKey, new: Sequence[Entry], before: LogHead, blobs: Blobs | None
) -> None:
    for batch in _batches(new):
        indexed = [entry for entry in batch if is_indexed(entry, off_record=before.off_record)]
        await connection.execute(
            sql.INSERT_ENTRIES,
            *key,
            *_columns([_row(entry) for entry in batch], 18),
            [entry.seq for entry in indexed],
            await _words(indexed, before.owner),
        )
    if any(len(entry.raw or b"") > LARGE_BYTES for entry in new):
        await connection.execute(sql.SHARE_BLOBS)
        large = await asyncio.to_thread(payload_rows, key.number, Ref(before.owner, before.id), new, blobs)
        await connection.executemany(sql.INSERT_PAYLOAD, [(*key, row.key & SEQ_MASK, *row[1:]) for row in large])
    if not before.off_record and (used := uses_in(new)):
        await notes.count_uses(connection, key, used, new[-1].created_at)
    reach("append.entries_written")
    reach("append.search_written")


def _batches(entries: Sequence[Entry]) -> Iterator[Sequence[Entry]]:
    start = size = 0
    for position, entry in enumerate(entries):
        size += len(entry.raw or b"")
        if position > start and (size > _BATCH_BYTES or position - start == _BATCH_ENTRIES):
            yield entries[start:position]
            start, size = position, len(entry.raw or b"")
    yield entries[start:]


async def _words(entries: Sequence[Entry], owner: str) -> list[str]:
    def find() -> list[str]:
        return [words_of(entry, owner) for entry in entries]

    is_much = sum(len(entry.raw or b"") for entry in entries) > _OFFLOAD_BYTES
    return await asyncio.to_thread(find) if is_much else find()


async def _touch(connection: Connection, key: ConversationKey, touches: Sequence[Touch]) -> None:
    rows = [
        (
            touch.seq,
            touch.updated_at,
            touch.newest_seq,
            int(touch.set_flags),
            int(touch.clear_flags),
            touch.commitment,
        )
        for touch in touches
    ]
    await connection.execute(sql.TOUCH, *key, *_columns(rows, 6))
    reach("mark.written")


def _columns(rows: Sequence[Sequence[Any]], width: int) -> list[list[Any]]:
    """Rows as the arrays that `unnest` takes."""
    return [[row[place] for row in rows] for place in range(width)]


# -- reading ---------------------------------------------------------------------------------------------------


async def path(connection: Connection, ref: Ref, query: PathQuery) -> list[tuple[Entry, Entry]]:
    """(place, newest revision) along a path, over as many stretches as the limit needs."""
    key, log_head, active = await living_head(connection, ref)
    is_plain = query.branch is None and active.parent is None
    rows = [active] if is_plain else await all_branches(connection, key)
    named = await by_seq(connection, key, [query.branch]) if isinstance(query.branch, int) else []
    stretches = path_segments({row.number: row for row in rows}, log_head, query.branch, named)
    places: list[Entry] = []
    for stretch in reversed(stretches) if query.newest_first else stretches:
        left = query.limit - len(places)
        if left > 0:
            places += await _places(connection, key, within(stretch, query), query, left)
    return await _with_newest(connection, key, places)


async def _places(
    connection: Connection, key: ConversationKey, stretch: Segment, query: PathQuery, limit: int
) -> list[Entry]:
    if stretch.after >= stretch.last:
        return []
    hidden = Flag.ERASED if query.include_deleted else HIDDEN_FLAGS
    rows = await connection.fetch(
        sql.PATH_NEWEST_FIRST if query.newest_first else sql.PATH,
        *key,
        stretch.after,
        stretch.last,
        stretch.branch,
        int(hidden),
        min(limit, _MOST_ROWS),
    )
    return _entries(rows)


async def _with_newest(
    connection: Connection, key: ConversationKey, places: Sequence[Entry]
) -> list[tuple[Entry, Entry]]:
    revised = [place.newest_seq for place in places if place.newest_seq is not None]
    newest: Mapping[int, Entry] = {entry.seq: entry for entry in await by_seq(connection, key, revised)}
    return [(place, place if place.newest_seq is None else newest[place.newest_seq]) for place in places]


async def pinned(connection: Connection, key: ConversationKey) -> list[tuple[Entry, Entry]]:
    """(place, newest revision) of the newest pinned messages, on whichever branch."""
    rows = await connection.fetch(sql.PINNED, *key, MOST_PINNED)
    return await _with_newest(connection, key, _entries(rows[::-1]))


async def quarantined(connection: Connection, key: ConversationKey) -> list[tuple[int, int]]:
    """(branch, seq) of the newest quarantined messages, in order."""
    rows = await connection.fetch(sql.QUARANTINED, *key, MOST_PINNED)
    return [(row[0], row[1]) for row in rows[::-1]]


async def scan(connection: Connection, ref: Ref, after: int, limit: int) -> list[Entry]:
    """Return the entries after a seq, in order; also of an erased conversation, whose tombstones are still verified."""
    known = await connection.fetchrow(sql.CONVERSATION_STATE, *ref)
    if known is None:
        raise NotFound(f"no conversation {ref.id!r}")
    rows = await connection.fetch(sql.SCAN, ref.owner, known[0], min(after, SEQ_MASK), min(limit, _MOST_ROWS))
    return _entries(rows)


async def framework_entries(connection: Connection, ref: Ref) -> list[Entry]:
    """Return the entries that record what frameworks did to their own lists."""
    key, _, _ = await living_head(connection, ref)
    return _entries(await connection.fetch(sql.FRAMEWORK_ENTRIES, *key))


async def find(connection: Connection, ref: Ref, ids: Sequence[str], seqs: Sequence[int]) -> list[Entry]:
    """Entries by message id or by seq, in order of seq."""
    key, _, _ = await living_head(connection, ref)
    found = {entry.seq: entry for entry in await by_id(connection, key, ids)}
    found.update({entry.seq: entry for entry in await by_seq(connection, key, seqs) if entry.kind != Kind.MARK})
    return [found[seq] for seq in sorted(found)]
