"""The log in SQLite: show an intent what it needs, write what it decides, read paths.

`SqliteLog` is the port. The functions below it run over an open connection, in the writer's thread (`write`) or a
reader's; other modules of the store use some of them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar, get_type_hints

from everthread.adapters.jobs import sqlite as jobs
from everthread.adapters.jobs.sqlite import SqliteJobs
from everthread.adapters.stores.layout import branches_after, last_said_at, payload_rows, revisions_of, row_payload
from everthread.adapters.stores.sqlite import checkpoints, compactions, id_index, turns
from everthread.adapters.stores.sqlite import statements as sql
from everthread.adapters.stores.sqlite.engine import SqliteDatabase
from everthread.adapters.stores.sqlite.id_index import IdIndex
from everthread.adapters.stores.sqlite.indexing import index_weight
from everthread.adapters.stores.sqlite.unindexed import counted
from everthread.core.blobs import Blobs
from everthread.core.entries import HIDDEN_FLAGS, SEQ_MASK, Entry, Flag, Kind, Revision, entry_key
from everthread.core.errors import NotFound, StoreDamaged
from everthread.core.failpoints import reach
from everthread.core.log import BranchRow, Decision, IdempotencyRecord, Intent, IntentInputs, LogHead, Needs, Segment
from everthread.core.nouns import Ref
from everthread.core.paths import path_segments, within
from everthread.core.ports import MOST_PINNED, PathQuery

R = TypeVar("R")

_TYPES = tuple(get_type_hints(Entry).values())


class SqliteLog:
    """`store.log` of core/ports.py."""

    defers_token_count = True

    def __init__(self, database: SqliteDatabase, jobs: SqliteJobs) -> None:
        self._database = database
        self._jobs = jobs

    async def write(self, ref: Ref, intent: Intent[R]) -> R:
        now = self._database.now()
        engine = self._database.engine

        def work(connection: sqlite3.Connection) -> Decision[R]:
            decision = write(connection, ref, intent, now, engine.id_index, engine.blobs)
            engine.unindexed_count += sum(index_weight(len(entry.raw or b"")) for entry in decision.entries)
            engine.unindexed_texts.note(decision.entries, decision.texts)
            return decision

        decision = await engine.write(work)
        if decision.jobs:
            self._jobs.ring(decision.jobs)
        if decision.turns:
            engine.signals.publish(ref, is_state=True)
        return decision.result

    async def path(self, ref: Ref, query: PathQuery) -> Sequence[tuple[Entry, Entry]]:
        def work(connection: sqlite3.Connection) -> Sequence[tuple[Entry, Entry]]:
            number, log_head, active = living_head(connection, ref)
            rows = [active] if query.branch is None and active.parent is None else all_branches(connection, number)
            named = by_seq(connection, number, [query.branch]) if isinstance(query.branch, int) else []
            stretches = path_segments({row.number: row for row in rows}, log_head, query.branch, named)
            places: list[Entry] = []
            for stretch in reversed(stretches) if query.newest_first else stretches:
                if len(places) >= query.limit:
                    break
                places += _places(connection, number, within(stretch, query), query, query.limit - len(places))
            return [(place, _newest(connection, number, place)) for place in map(counted, places)]

        return await self._database.engine.read(work)

    async def find(self, ref: Ref, *, ids: Sequence[str] = (), seqs: Sequence[int] = ()) -> Sequence[Entry]:
        def work(connection: sqlite3.Connection) -> Sequence[Entry]:
            number, _, _ = living_head(connection, ref)
            named = _named(connection, number, ids, id_index.find(connection, number, ids))
            found = {entry.seq: entry for entry in named}
            found.update({entry.seq: entry for entry in by_seq(connection, number, seqs) if entry.kind != Kind.MARK})
            return [counted(found[seq]) for seq in sorted(found)]

        return await self._database.engine.read(work)

    async def scan(self, ref: Ref, *, after: int, limit: int, with_tokens: bool = True) -> Sequence[Entry]:
        def work(connection: sqlite3.Connection) -> Sequence[Entry]:
            number, _, _ = head(connection, ref)  # an erased conversation too: its tombstones are still proved
            rows = connection.execute(sql.SCAN, (entry_key(number, after), entry_key(number, SEQ_MASK), limit))
            found = map(_sound, rows)
            return list(map(counted, found) if with_tokens else found)

        return await self._database.engine.read(work)

    async def framework_entries(self, ref: Ref) -> Sequence[Entry]:
        def work(connection: sqlite3.Connection) -> Sequence[Entry]:
            number, _, _ = living_head(connection, ref)
            rows = connection.execute(sql.FRAMEWORK_ENTRIES, (entry_key(number, 0), entry_key(number, SEQ_MASK)))
            return [counted(_sound(row)) for row in rows]

        return await self._database.engine.read(work)

    async def origins(self, ref: Ref) -> Sequence[tuple[int, str]]:
        def work(connection: sqlite3.Connection) -> Sequence[tuple[int, str]]:
            number, _, _ = living_head(connection, ref)
            return connection.execute(sql.ORIGINS, (entry_key(number, 0), entry_key(number, SEQ_MASK))).fetchall()

        return await self._database.engine.read(work)

    async def branches(self, ref: Ref) -> tuple[Sequence[BranchRow], int]:
        def work(connection: sqlite3.Connection) -> tuple[Sequence[BranchRow], int]:
            number, log_head, _ = living_head(connection, ref)
            return all_branches(connection, number), log_head.active

        return await self._database.engine.read(work)


def write(
    connection: sqlite3.Connection, ref: Ref, intent: Intent[R], now: int, id_index: IdIndex, blobs: Blobs | None = None
) -> Decision[R]:
    """Look, decide, write: all inside the writer's transaction. Gives what was written."""
    number, seen = _look(connection, ref, intent.needs(), id_index)
    reach("append.locked")
    decision = intent.decide(seen, now)
    _apply(connection, number, seen, decision, now, blobs)
    if decision.entries:
        id_index.add(connection, number, seen.head, decision.entries)
    return decision


def head(connection: sqlite3.Connection, ref: Ref) -> tuple[int, LogHead, BranchRow]:
    """A conversation's number, the end of its log and its active branch."""
    row = connection.execute(sql.LOG_HEAD, ref).fetchone()
    if row is None:
        raise NotFound(f"no conversation {ref.id!r}")
    return row[0], LogHead._make((*row[1:6], bool(row[6]), bool(row[7]), row[8])), BranchRow(*row[9:])


def living_head(connection: sqlite3.Connection, ref: Ref) -> tuple[int, LogHead, BranchRow]:
    """The same for readers: raises NotFound for an erased conversation too."""
    found = head(connection, ref)
    if found[1].is_erased:
        raise NotFound(f"no conversation {ref.id!r}")
    return found


def _look(connection: sqlite3.Connection, ref: Ref, needs: Needs, id_index: IdIndex) -> tuple[int, IntentInputs]:
    number, log_head, active = head(connection, ref)
    rows = all_branches(connection, number) if needs.every_branch else [active]
    answer = None
    if needs.idempotency_key is not None:
        answer = connection.execute(sql.ANSWER, (number, needs.idempotency_key)).fetchone()
    named = []
    if needs.ids:
        named = _named(connection, number, needs.ids, id_index.seqs(connection, number, log_head, needs.ids))
    seen = IntentInputs(
        head=log_head,
        branches={row.number: row for row in rows},
        by_id={entry.id: entry for entry in named if entry.change_kind != Revision.STUB},
        by_seq={entry.seq: entry for entry in by_seq(connection, number, needs.seqs)},
        answer=None if answer is None else IdempotencyRecord(*answer),
        compactions=compactions.find(connection, number, needs.compactions) if needs.compactions else (),
        since=_since(connection, number, needs.since) if needs.since is not None else (),
        checkpoints=None if needs.checkpoints is None else checkpoints.look(connection, number, needs.checkpoints),
        revisions=revisions_of(named) if needs.every_revision else {},
        turns=turns.look(connection, number, needs.turns) if needs.turns is not None else (),
    )
    return number, seen


def all_branches(connection: sqlite3.Connection, number: int) -> list[BranchRow]:
    return [BranchRow(*row) for row in connection.execute(sql.BRANCHES, (number,))]


def _named(connection: sqlite3.Connection, number: int, ids: Sequence[str], seqs: Iterable[int]) -> list[Entry]:
    """Every revision of these messages, in order, among the entries at these places."""
    wanted = set(ids)
    found = id_index.entries_at(connection, number, seqs)
    return [entry for entry in found if entry.id in wanted and entry.kind != Kind.MARK]


def by_seq(connection: sqlite3.Connection, number: int, seqs: Iterable[int]) -> list[Entry]:
    rows = (
        connection.execute(sql.ENTRY_BY_KEY, (entry_key(number, seq),)).fetchone() for seq in seqs if seq <= SEQ_MASK
    )
    return [Entry._make(row) for row in rows if row is not None]


def _since(connection: sqlite3.Connection, number: int, seq: int) -> list[Entry]:
    rows = connection.execute(sql.SCAN, (entry_key(number, seq), entry_key(number, SEQ_MASK), -1))
    return list(map(Entry._make, rows))


def _apply(
    connection: sqlite3.Connection,
    number: int,
    seen: IntentInputs,
    decision: Decision[R],
    now: int,
    blobs: Blobs | None,
) -> None:
    branches, active = branches_after(seen, decision)
    if decision.entries:
        _write_entries(connection, number, decision.entries, seen.head, blobs)
    for touch in decision.touches:
        key = entry_key(number, touch.seq)
        connection.execute(
            sql.TOUCH,
            (touch.newest_seq, int(touch.set_flags), int(touch.clear_flags), touch.updated_at, touch.commitment, key),
        )
        reach("mark.written")
    for branch in branches:
        connection.execute(sql.INSERT_BRANCH, (number, *branch))
        reach("fork.written")
    if decision.changed:
        places = by_seq(connection, number, decision.changed)
        rows = {row.number: row for row in all_branches(connection, number)}
        compactions.invalidate(connection, number, places, rows, now)
    compactions.keep(connection, number, decision.compactions)
    if decision.checkpoints is not None:
        checkpoints.apply(connection, number, decision.checkpoints)
    if decision.answer is not None:
        connection.execute(sql.INSERT_ANSWER, (number, *decision.answer, now))
    turns.apply(connection, number, decision, now)
    connection.executemany(sql.KEEP_LINE, [(number, *line) for line in decision.lines])
    if decision.jobs:
        jobs.put(connection, number, seen.head.owner, decision.jobs, now)
    compaction_check_at = (
        seen.head.compaction_check_at if decision.compaction_check_at is None else decision.compaction_check_at
    )
    if decision.entries or decision.active is not None:
        count = seen.head.entry_count + len(decision.entries)
        chain = decision.chain or seen.head.chain
        leaf = (active.number, active.leaf_seq, active.leaf_depth)
        said_at = last_said_at(decision.entries)
        connection.execute(sql.ADVANCE, (count, chain, *leaf, compaction_check_at, now, said_at, said_at, number))
        reach("append.head_written")
    elif compaction_check_at != seen.head.compaction_check_at:
        connection.execute(sql.SET_COMPACTION_CHECK_AT, (compaction_check_at, number))


def _write_entries(
    connection: sqlite3.Connection, number: int, new: Sequence[Entry], before: LogHead, blobs: Blobs | None
) -> None:
    connection.executemany(sql.INSERT_ENTRY, [_row(number, entry) for entry in new])
    large = payload_rows(number, Ref(before.owner, before.id), new, blobs)
    if large:
        connection.executemany(sql.INSERT_PAYLOAD, [(key, body, key, *rest) for key, body, *rest in large])
    reach("append.entries_written")
    if not before.off_record:
        connection.execute(sql.NOTE_UNINDEXED, (number, new[0].seq - 1))
    reach("append.search_written")


def _row(number: int, entry: Entry) -> tuple[Any, ...]:
    """An entry as `INSERT_ENTRY` takes it.

    Of None and of bytes Python's sqlite3 asks each time whether it was taught to write them in another way, which takes
    longer than to write them; of a number and of a bytearray it does not ask.
    """
    raw = row_payload(entry)
    return (
        entry_key(number, entry.seq),
        *entry[1:4],
        -1 if entry.revises is None else entry.revises,
        -1 if entry.change_kind is None else entry.change_kind,
        *entry[6:12],
        None if entry.salt is None else bytearray(entry.salt),
        bytearray(entry.chain),
        None if raw is None else bytearray(raw),
        entry.id,
        entry.flags,
        entry.origin,
        entry.chain_version,
    )


def _places(connection: sqlite3.Connection, number: int, stretch: Segment, query: PathQuery, limit: int) -> list[Entry]:
    hidden = Flag.ERASED if query.include_deleted else HIDDEN_FLAGS
    rows = connection.execute(
        sql.PATH_NEWEST_FIRST if query.newest_first else sql.PATH,
        (
            entry_key(number, stretch.after),
            entry_key(number, stretch.last + 1),
            stretch.branch,
            int(hidden),
            limit,
        ),
    )
    return list(map(Entry._make, rows))


def _newest(connection: sqlite3.Connection, number: int, place: Entry) -> Entry:
    return counted(by_seq(connection, number, [place.newest_seq])[0]) if place.newest_seq is not None else place


def pinned(connection: sqlite3.Connection, number: int) -> list[tuple[Entry, Entry]]:
    """(place, newest revision) of the newest pinned messages, on whichever branch."""
    rows = connection.execute(sql.PINNED, (entry_key(number, 0), entry_key(number, SEQ_MASK), MOST_PINNED)).fetchall()
    places = [counted(Entry._make(row)) for row in reversed(rows)]
    return [(place, _newest(connection, number, place)) for place in places]


def quarantined(connection: sqlite3.Connection, number: int) -> list[tuple[int, int]]:
    """(branch, seq) of the newest quarantined messages, in order."""
    span = (entry_key(number, 0), entry_key(number, SEQ_MASK))
    return connection.execute(sql.QUARANTINED, (*span, MOST_PINNED)).fetchall()[::-1]


def _sound(row: tuple[Any, ...]) -> Entry:
    """An entry whose columns have their types: SQLite keeps any type in any column, so damage can change it."""
    if not all(map(isinstance, row, _TYPES)):
        raise StoreDamaged(f"entry {row[0]} of a conversation does not hold what was written: restore a backup")
    return Entry._make(row)
