"""The SQLite store: the ports of core/ports.py over the engine's writer and readers."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

from everthread.adapters.jobs.sqlite import SqliteJobs
from everthread.adapters.stores.layout import entry_key, info_from_row
from everthread.adapters.stores.sqlite import (
    access,
    blobs,
    compactions,
    erase,
    indexing,
    items,
    log,
    notes,
    search,
    turns,
    views,
)
from everthread.adapters.stores.sqlite import checkpoints as saved
from everthread.adapters.stores.sqlite import statements as sql
from everthread.adapters.stores.sqlite.engine import Engine, Work
from everthread.adapters.vectors.sqlite import SqliteVectors
from everthread.core.access import ApiKey
from everthread.core.blobs import Blobs
from everthread.core.chain import genesis
from everthread.core.checkpoints import CheckpointQuery, CheckpointsSeen, Listed, Saved
from everthread.core.clock import Clock, from_micros, system_clock, to_micros
from everthread.core.compactions import Compaction
from everthread.core.entries import Entry
from everthread.core.errors import Conflict, Erased, Invalid, NotFound, StoreDamaged, StoreError
from everthread.core.failpoints import reach
from everthread.core.items import ItemChanges, ItemKey, StoredItem
from everthread.core.jobs import NewJob
from everthread.core.log import BranchName, BranchRow, CompactionQuery, Decision, Intent
from everthread.core.notes import Note, NoteChange, NoteQuery, NotesFound, UseCount
from everthread.core.nouns import ConversationInfo, EraseReport, Ref
from everthread.core.ports import (
    Candidates,
    CompactionPosition,
    ListPosition,
    NewConversation,
    Outlook,
    PathQuery,
    Placed,
    PolicyChange,
    WordPlaces,
)
from everthread.core.queries import Query, Term
from everthread.core.replies import Reply
from everthread.core.turns import EventBatch, StoredEvent, Turn, TurnQuery

R = TypeVar("R")

_COLUMNS = ("title", "metadata", "is_active", "deleted_at")
_LEFT_BEHIND = timedelta(days=1)
"""Off-record conversations untouched for this long were left by a crash; the next opening erases them."""
_NEWEST = 1 << 62


class SqliteStore:
    """Conversations in one SQLite file."""

    counts_later = True
    can_block = True

    def __init__(self, path: Path, clock: Clock = system_clock, blobs: Blobs | None = None) -> None:
        self._path = path
        self._blobs = blobs
        self._clock = clock
        self._engine: Engine | None = None
        self._off_record: set[Ref] = set()
        self.jobs = SqliteJobs(lambda: self._on)
        self.vectors = SqliteVectors(lambda: self._on)

    # -- opening and closing -------------------------------------------------------------------------------

    async def open(self) -> None:
        if self._engine is None:
            self._engine = await asyncio.to_thread(Engine.of, self._path, self._blobs)
            await self._finish_what_a_crash_left()

    async def close(self) -> None:
        if self._engine is None:
            return
        try:
            for ref in sorted(self._off_record):
                await self._erase_if_there(ref)
        finally:
            self._off_record.clear()
            engine, self._engine = self._on, None
            await asyncio.sleep(0)  # what this turn of the loop gathered reaches the writer before the word to stop
            await asyncio.to_thread(engine.release)

    async def _finish_what_a_crash_left(self) -> None:
        old = to_micros(self._clock() - _LEFT_BEHIND)
        left = await self._on.read(lambda c: c.execute(sql.STALE_OFF_RECORD, (old,)).fetchall())
        for row in left:
            await self._erase_if_there(Ref(*row))
        if await self._on.read(lambda c: c.execute(sql.UNFINISHED_ERASURES).fetchone()[0]):
            await self._rewrite()
        await self._delete_doomed_blobs()

    async def _delete_doomed_blobs(self) -> Sequence[str]:
        """Give what is left. The erasure is committed: what stands in the way is no reason to call it failed, or not
        to open."""
        kept = self._on.blobs
        try:
            doomed = await self._on.read(lambda c: c.execute(sql.DOOMED_BLOBS).fetchall())
            if not doomed:
                return ()
            if kept is None:
                return (f"{len(doomed)} blobs: {blobs.NOT_SET}",)
            await self._on.write(lambda c: blobs.delete_doomed(c, kept))
        except StoreError as problem:
            return (f"blobs of what was erased (the next opening of the database tries again): {problem}",)
        return ()

    async def _erase_if_there(self, ref: Ref) -> None:
        with suppress(NotFound):  # erased by hand, or by another process, before
            await self.erase(ref.owner, ref.id, None)

    @property
    def _on(self) -> Engine:
        if self._engine is None:
            raise StoreError("the database is closed; open it with `async with everthread.open(...)`")
        return self._engine

    def _now(self) -> int:
        return to_micros(self._clock())

    # -- conversations -------------------------------------------------------------------------------------

    async def create(self, new: NewConversation) -> ConversationInfo:
        now = self._now()
        info = await self._on.write(lambda c: _create(c, new, now))
        if new.off_record:
            self._off_record.add(Ref(new.owner, new.id))
        return info

    async def get(self, ref: Ref) -> ConversationInfo:
        return await self._on.read(lambda c: _get(c, ref))

    async def list(
        self,
        owner: str,
        *,
        limit: int,
        position: ListPosition | None,
        include_deleted: bool,
        parent_id: str | None,
    ) -> tuple[Sequence[ConversationInfo], ListPosition | None]:
        statement = sql.LIST_CONVERSATIONS if parent_id is None else sql.LIST_CHILDREN
        values = {
            "owner": owner,
            "before": _NEWEST if position is None else min(position.number, _NEWEST),
            "include_deleted": include_deleted,
            "parent": parent_id,
            "limit": limit + 1,
        }
        rows = await self._on.read(lambda c: c.execute(statement, values).fetchall())
        shown = rows[:limit]
        following = ListPosition(shown[-1][0]) if shown and len(rows) > limit else None
        return _infos(shown), following

    async def update(self, ref: Ref, changes: Mapping[str, Any]) -> ConversationInfo:
        now = self._now()
        return await self._on.write(lambda c: _update(c, ref, changes, now))

    # -- the log -------------------------------------------------------------------------------------------

    async def errand(self, work: Callable[[], Coroutine[Any, Any, R]]) -> R:
        return await self._on.errand(work)

    async def write(self, ref: Ref, intent: Intent[R]) -> R:
        now = self._now()
        engine = self._on

        def work(connection: sqlite3.Connection) -> Decision[R]:
            decision = log.write(connection, ref, intent, now, engine.tails, engine.blobs)
            engine.unindexed += len(decision.entries)
            engine.fresh.note(decision.entries, decision.texts)
            return decision

        decision = await engine.write(work)
        if decision.jobs:
            self.jobs.ring(decision.jobs)
        return decision.result

    async def path(self, ref: Ref, query: PathQuery) -> Sequence[tuple[Entry, Entry]]:
        return await self._on.read(lambda c: log.path(c, ref, query))

    async def find(self, ref: Ref, *, ids: Sequence[str] = (), seqs: Sequence[int] = ()) -> Sequence[Entry]:
        return await self._on.read(lambda c: log.find(c, ref, ids, seqs))

    async def scan(self, ref: Ref, *, after: int, limit: int, is_counted: bool = True) -> Sequence[Entry]:
        return await self._on.read(lambda c: log.scan(c, ref, after, limit, is_counted))

    async def framework_entries(self, ref: Ref) -> Sequence[Entry]:
        return await self._on.read(lambda c: log.framework_entries(c, ref))

    async def branches(self, ref: Ref) -> tuple[Sequence[BranchRow], int]:
        def work(connection: sqlite3.Connection) -> tuple[Sequence[BranchRow], int]:
            number, head, _ = log.living_head(connection, ref)
            return log.all_branches(connection, number), head.active

        return await self._on.read(work)

    # -- views ---------------------------------------------------------------------------------------------

    async def outlook(self, ref: Ref, branch: BranchName) -> Outlook:
        return await self._on.read(lambda c: views.outlook(c, ref, branch))

    async def compactions(self, ref: Ref, query: CompactionQuery) -> Sequence[Compaction]:
        return await self._on.read(lambda c: compactions.found(c, log.living_head(c, ref)[0], query))

    async def all_compactions(self, ref: Ref, *, after: CompactionPosition | None, limit: int) -> Sequence[Compaction]:
        return await self._on.read(lambda c: compactions.page(c, log.living_head(c, ref)[0], after, limit))

    async def change_policy(self, ref: Ref | None, change: PolicyChange) -> None:
        await self._on.write(lambda c: views.change_policy(c, ref, change))

    async def policy(self, ref: Ref | None) -> bytes | None:
        return await self._on.read(lambda c: views.policy(c, ref))

    async def calibration(self, model: str) -> tuple[float, int] | None:
        found = await self._on.read(lambda c: c.execute(sql.CALIBRATION, (model,)).fetchone())
        return None if found is None else (found[0], found[1])

    async def keep_calibration(self, model: str, factor: float, samples: int) -> None:
        await self._on.write(lambda c: c.execute(sql.KEEP_CALIBRATION, (model, factor, samples)))

    async def keep_manifest(
        self, ref: Ref, id: str, manifest: bytes, shared: Mapping[str, bytes], jobs: Sequence[NewJob] = ()
    ) -> None:
        now = self._now()
        await self._on.write(lambda c: views.keep_manifest(c, ref, id, manifest, shared, jobs, now))
        if jobs:
            self.jobs.ring(jobs)

    async def prompts(self, ref: Ref, digests: Sequence[str]) -> Mapping[str, bytes]:
        return await self._on.read(lambda c: views.prompts(c, ref, digests))

    async def manifest(self, ref: Ref, id: str) -> bytes:
        return await self._on.read(lambda c: views.manifest(c, ref, id))

    # -- checkpoints ---------------------------------------------------------------------------------------

    async def checkpoint(self, ref: Ref, namespace: str, id: str | None) -> Saved | None:
        return await self._on.read(lambda c: saved.read(c, ref, namespace, id))

    async def checkpoints(self, query: CheckpointQuery) -> Sequence[Listed]:
        return await self._on.read(lambda c: saved.list_some(c, query))

    async def all_checkpoints(self, ref: Ref) -> CheckpointsSeen:
        return await self._on.read(lambda c: saved.read_all(c, ref))

    async def ancestors(self, ref: Ref, namespace: str, id: str, *, limit: int) -> Sequence[Saved]:
        return await self._on.read(lambda c: saved.ancestors(c, ref, namespace, id, limit))

    async def blobs(self, ref: Ref, digests: Sequence[bytes]) -> Mapping[bytes, bytes]:
        return await self._on.read(lambda c: saved.blobs(c, ref, digests))

    async def with_checkpoints(self, owner: str | None, *, run_ids: Sequence[str] | None) -> Sequence[Ref]:
        return await self._on.read(lambda c: saved.with_checkpoints(c, owner, run_ids))

    # -- items ---------------------------------------------------------------------------------------------

    async def change_items(self, owner: str, changes: ItemChanges) -> None:
        now = self._now()
        await self._on.write(lambda c: items.change(c, owner, changes, now))

    async def items(self, owner: str, keys: Sequence[ItemKey]) -> Sequence[StoredItem]:
        now = self._now()
        return await self._on.read(lambda c: items.read(c, owner, keys, now))

    async def items_under(self, owner: str, prefix: str) -> Sequence[StoredItem]:
        now = self._now()
        return await self._on.read(lambda c: items.under(c, owner, prefix, now))

    async def item_namespaces(self, owner: str) -> Sequence[str]:
        now = self._now()
        return await self._on.read(lambda c: items.namespaces(c, owner, now))

    # -- notes ---------------------------------------------------------------------------------------------

    async def change_notes(self, owner: str, change: NoteChange[R]) -> R:
        now = self._now()
        return await self._on.write(lambda c: notes.change(c, owner, change, now))

    async def notes(self, owner: str, query: NoteQuery) -> Sequence[Note]:
        return await self._on.read(lambda c: notes.listed(c, owner, query))

    async def note_owners(self) -> Sequence[str]:
        return [row[0] for row in await self._on.read(lambda c: c.execute(notes.OWNERS).fetchall())]

    async def shelves(self, owner: str, kind: int) -> Mapping[str, int]:
        return await self._on.read(lambda c: notes.shelves(c, owner, kind))

    async def find_notes(
        self, owner: str, shelves: Sequence[str], query: Query, *, cap: int, any_word: bool
    ) -> NotesFound:
        return await self._on.read(lambda c: notes.find(c, owner, shelves, query, cap, any_word))

    async def near_notes(
        self, owner: str, shelves: Sequence[str], model: str, vector: bytes, *, limit: int
    ) -> Sequence[tuple[Note, float]]:
        return await self._on.read(lambda c: notes.near(c, owner, shelves, model, vector, limit))

    async def uses(self, owner: str, *, limit: int) -> Sequence[UseCount]:
        return await self._read_indexed(lambda c: notes.uses(c, owner, limit))

    # -- turns ---------------------------------------------------------------------------------------------

    async def turn(self, ref: Ref, id: str) -> Turn:
        return await self._on.read(lambda c: turns.read(c, ref, id))

    async def turns(self, query: TurnQuery) -> Sequence[Turn]:
        return await self._on.read(lambda c: turns.listed(c, query))

    async def unfinished_turns(self) -> Sequence[tuple[Ref, Turn]]:
        return await self._on.read(turns.unfinished)

    async def renew_turns(self, holder: str, until: datetime) -> Sequence[str]:
        return await self._on.write(lambda c: turns.renew(c, holder, until))

    async def add_events(self, ref: Ref, holder: str, batch: EventBatch) -> None:
        now = self._now()
        await self._on.write(lambda c: turns.add_events(c, ref, holder, batch, now))

    async def turn_events(self, ref: Ref, id: str, *, after: int, limit: int) -> Sequence[StoredEvent]:
        return await self._on.read(lambda c: turns.events(c, ref, id, after, limit))

    async def prune_events(self, before: datetime) -> int:
        return await self._on.write(lambda c: turns.prune(c, before))

    # -- keys and replies ----------------------------------------------------------------------------------

    async def add_key(self, key: ApiKey) -> None:
        await self._on.write(lambda c: access.add(c, key))

    async def api_key(self, id: str) -> ApiKey | None:
        return await self._on.read(lambda c: access.read(c, id))

    async def api_keys(self, owner: str | None) -> Sequence[ApiKey]:
        return await self._on.read(lambda c: access.every(c, owner))

    async def revoke_key(self, id: str) -> ApiKey:
        now = self._now()
        return await self._on.write(lambda c: access.revoke(c, id, now))

    async def begin_reply(self, owner: str, key: str, request: bytes, *, lease_seconds: float) -> Reply | None:
        now, lease = self._now(), int(lease_seconds * 1_000_000)
        return await self._on.write(lambda c: access.begin_reply(c, owner, key, request, lease, now))

    async def keep_reply(self, owner: str, key: str, reply: Reply) -> None:
        await self._on.write(lambda c: access.keep_reply(c, owner, key, reply))

    async def drop_reply(self, owner: str, key: str, request: bytes) -> None:
        await self._on.write(lambda c: c.execute(sql.DROP_REPLY, (owner, key, request)))

    # -- search --------------------------------------------------------------------------------------------

    async def candidates(
        self, owner: str, conversation: str | None, query: Query, *, cap: int, any_word: bool, basis: object = None
    ) -> Candidates:
        return await self._read_indexed(lambda c: search.candidates(c, owner, conversation, query, cap, any_word))

    async def word_places(self, owner: str, conversation: str | None, terms: Sequence[Term], *, cap: int) -> WordPlaces:
        def work(connection: sqlite3.Connection) -> WordPlaces:
            return search.word_places(connection, owner, conversation, terms, cap)

        if conversation is None:
            return await self._read_indexed(work)
        ref = Ref(owner, conversation)
        return await self._read_indexed(work, lambda c: indexing.is_far_behind(c, ref))

    async def placed(self, owner: str, orders: Sequence[int], named: Sequence[tuple[str, int]]) -> Sequence[Placed]:
        return await self._on.read(lambda c: search.placed(c, owner, orders, named))

    async def _read_indexed(self, work: Work[R], is_behind: Work[bool] = indexing.is_behind) -> R:
        """Nobody sees the index behind, or not by more than they make up for."""
        engine = self._on
        while not (read := await engine.read(lambda c: () if is_behind(c) else (work(c),))):
            await engine.write(lambda c: indexing.index_some(c, engine.fresh))
        return read[0]

    # -- looking after the whole ---------------------------------------------------------------------------

    async def heads(self) -> Sequence[ConversationInfo]:
        rows = await self._on.read(lambda c: c.execute(sql.ALL_CONVERSATIONS).fetchall())
        return _infos(rows)

    async def erase(self, owner: str, conversation: str | None, message: str | None) -> EraseReport:
        now = self._now()
        engine = self._on

        def work(connection: sqlite3.Connection) -> EraseReport:
            engine.fresh.forget()
            return erase.blank(connection, owner, conversation, message, now)

        report = await engine.write(work)
        compactions.forget_known()
        left = (*await self._rewrite(), *await self._delete_doomed_blobs())
        return replace(report, cannot_reach=(*report.cannot_reach, *left))

    async def _rewrite(self) -> Sequence[str]:
        now = self._now()
        return await self._on.alone(lambda c: erase.rewrite(c, now))

    async def erasures(self) -> Sequence[tuple[str, str | None, str | None, datetime]]:
        rows = await self._on.read(lambda c: c.execute(sql.ERASURES).fetchall())
        return [(owner, conversation, message, from_micros(at)) for owner, conversation, message, at in rows]

    async def stats(self) -> Mapping[str, int]:
        def work(connection: sqlite3.Connection) -> Mapping[str, int]:
            return {name: connection.execute(query).fetchone()[0] for name, query in sql.STATS.items()}

        return await self._on.read(work)

    async def payload_blobs(self) -> Mapping[str, int]:
        return await self._on.read(blobs.referred)

    async def blob_at(self, ref: Ref, seq: int) -> str | None:
        def work(connection: sqlite3.Connection) -> str | None:
            row = connection.execute(sql.BLOB_OF, (entry_key(log.head(connection, ref)[0], seq),)).fetchone()
            return None if row is None else row[0]

        return await self._on.read(work)

    async def delete_unused_blobs(self, names: Sequence[str]) -> int:
        kept = self._on.blobs
        return 0 if kept is None else await self._on.write(lambda c: blobs.delete_unused(c, kept, names))

    async def backup(self, target: Path) -> None:
        await self._on.read(lambda c: _backup(c, target))


def _create(connection: sqlite3.Connection, new: NewConversation, now: int) -> ConversationInfo:
    known = connection.execute(sql.CONVERSATION_STATE, (new.owner, new.id)).fetchone()
    if known is not None and known[1] is not None:
        raise Erased(f"conversation {new.id!r} was erased; its id cannot be used again")
    if known is not None:
        raise Conflict(f"conversation {new.id!r} exists already; get it, or choose another id")
    parent = None
    if new.parent_id is not None:
        row = connection.execute(sql.CONVERSATION_STATE, (new.owner, new.parent_id)).fetchone()
        if row is None or row[1] is not None:
            raise NotFound(f"no conversation {new.parent_id!r} to be the parent")
        parent = row[0]
    chain = genesis(new.owner, new.id)
    at = now if new.created_at is None else to_micros(new.created_at)
    number = connection.execute(
        sql.CREATE_CONVERSATION,
        (new.owner, new.id, parent, new.title, new.metadata, int(new.off_record), at, at, chain),
    ).lastrowid
    connection.execute(sql.INSERT_BRANCH, (number, 0, None, 0, 0, 0, at))
    reach("create.written")
    return _get(connection, Ref(new.owner, new.id))


def _get(connection: sqlite3.Connection, ref: Ref) -> ConversationInfo:
    row = connection.execute(sql.GET_CONVERSATION, ref).fetchone()
    if row is None:
        raise NotFound(f"no conversation {ref.id!r}")
    return _infos([row])[0]


def _infos(rows: Sequence[Any]) -> Sequence[ConversationInfo]:
    """Conversations from their rows, which damage can have given any type and any value."""
    try:
        return [info_from_row(row) for row in rows]
    except (ValueError, TypeError, OverflowError) as problem:
        raise StoreDamaged(f"the row of a conversation cannot be read ({problem}): restore a backup") from problem


def _update(connection: sqlite3.Connection, ref: Ref, changes: Mapping[str, Any], now: int) -> ConversationInfo:
    for column, value in changes.items():
        if column not in _COLUMNS:
            raise Invalid("cannot be set", field=column)
        stored = to_micros(value) if isinstance(value, datetime) else value
        connection.execute(sql.UPDATE_CONVERSATION.format(column=column), (stored, now, *ref))
    return _get(connection, ref)


def _backup(connection: sqlite3.Connection, target: Path) -> None:
    if target.exists():
        raise Conflict(f"{target} exists already; nothing was written: choose another name")
    copy = sqlite3.connect(target)
    try:
        connection.backup(copy)
    finally:
        copy.close()
