"""The PostgreSQL store: the ports of core/ports.py over the pool of the running loop."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

from everthread.adapters.jobs.postgres import PostgresJobs
from everthread.adapters.stores.layout import entry_key, info_from_row
from everthread.adapters.stores.postgres import (
    access,
    blobs,
    compactions,
    dump,
    erase,
    errors,
    items,
    log,
    notes,
    search,
    tables,
    turns,
    views,
)
from everthread.adapters.stores.postgres import checkpoints as saved
from everthread.adapters.stores.postgres import statements as sql
from everthread.adapters.stores.postgres.address import parse
from everthread.adapters.stores.postgres.pool import Connection, Pool
from everthread.adapters.vectors.postgres import PostgresVectors
from everthread.context.quotes import summary_block
from everthread.core.access import ApiKey
from everthread.core.blobs import Blobs
from everthread.core.chain import genesis
from everthread.core.checkpoints import CheckpointQuery, CheckpointsSeen, Listed, Saved
from everthread.core.clock import Clock, from_micros, system_clock, to_micros
from everthread.core.compactions import Compaction
from everthread.core.entries import Entry
from everthread.core.errors import Conflict, Erased, Invalid, NotFound, StoreError
from everthread.core.failpoints import reach
from everthread.core.items import ItemChanges, ItemKey, StoredItem
from everthread.core.jobs import NewJob
from everthread.core.log import BranchName, BranchRow, CompactionQuery, Intent
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

_LEFT_BEHIND = timedelta(days=1)
"""Off-record conversations untouched for this long were left by a crash; the next opening erases them."""
_NEWEST = 1 << 62


class PostgresStore:
    """Conversations in one PostgreSQL database."""

    counts_later = False
    can_block = False

    def __init__(self, url: str, clock: Clock = system_clock, blobs: Blobs | None = None) -> None:
        self._blobs = blobs
        self._address = parse(url)
        self._clock = clock
        self._pool: Pool | None = None
        self._off_record: set[Ref] = set()
        self.jobs = PostgresJobs(lambda: self._on)
        self.vectors = PostgresVectors(lambda: self._on)

    # -- opening and closing -------------------------------------------------------------------------------

    async def open(self) -> None:
        if self._pool is not None:
            return
        self._pool = Pool.of(self._address)
        async with AsyncExitStack() as on_failure:
            on_failure.push_async_callback(self._let_go)
            await self._pool.start()
            await tables.bring_up_to_date(self._pool)
            await self._finish_what_a_crash_left()
            on_failure.pop_all()

    async def close(self) -> None:
        if self._pool is None:
            return
        try:
            await self._erase_all(sorted(self._off_record))
        finally:
            await self._let_go()

    async def _let_go(self) -> None:
        self._off_record.clear()
        pool, self._pool = self._on, None
        await pool.release()

    async def _finish_what_a_crash_left(self) -> None:
        old = to_micros(self._clock() - _LEFT_BEHIND)
        left = await self._on.read(lambda c: c.fetch(sql.STALE_OFF_RECORD, old))
        await self._erase_all([Ref(*row) for row in left])
        if await self._on.read(lambda c: c.fetch(sql.UNFINISHED_ERASURES)):
            await self._rewrite(wait=False)
        await self._delete_doomed_blobs()

    async def _delete_doomed_blobs(self) -> Sequence[str]:
        """Give what is left. The erasure is committed: what stands in the way is no reason to call it failed, or not
        to open."""
        kept = self._blobs
        try:
            doomed = await self._on.read(lambda c: c.fetch(sql.DOOMED_BLOBS))
            if not doomed:
                return ()
            if kept is None:
                return (f"{len(doomed)} blobs: {blobs.NOT_SET}",)
            await self._on.write(lambda c: blobs.delete_doomed(c, kept))
        except StoreError as problem:
            return (f"blobs of what was erased (the next opening of the database tries again): {problem}",)
        return ()

    async def _erase_all(self, refs: Sequence[Ref]) -> None:
        for ref in refs:
            with suppress(NotFound):  # erased by hand, or by another process, before
                await self._blank(ref.owner, ref.id, None)
        if refs:
            await self._rewrite(wait=True)

    @property
    def _on(self) -> Pool:
        if self._pool is None:
            raise StoreError("the database is closed; open it with `async with everthread.open(...)`")
        return self._pool

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
        before = _NEWEST if position is None else max(0, min(position.number, _NEWEST))
        statement = sql.LIST_CONVERSATIONS if parent_id is None else sql.LIST_CHILDREN
        parent = () if parent_id is None else (parent_id,)
        values = (owner, before, include_deleted, limit + 1, *parent)
        found = await self._on.read(lambda c: _conversations(c, statement, *values))
        shown = found[:limit]
        following = ListPosition(shown[-1][0]) if shown and len(found) > limit else None
        return [info for _, info in shown], following

    async def update(self, ref: Ref, changes: Mapping[str, Any]) -> ConversationInfo:
        now = self._now()
        return await self._on.write(lambda c: _update(c, ref, changes, now))

    # -- the log -------------------------------------------------------------------------------------------

    async def errand(self, work: Callable[[], Coroutine[Any, Any, R]]) -> R:
        return await work()

    async def write(self, ref: Ref, intent: Intent[R]) -> R:
        now = self._now()
        decision = await self._on.write(lambda c: log.write(c, ref, intent, now, self._blobs))
        if decision.jobs:
            self.jobs.ring(decision.jobs)
        return decision.result

    async def path(self, ref: Ref, query: PathQuery) -> Sequence[tuple[Entry, Entry]]:
        return await self._filled_pairs(await self._on.read(lambda c: log.path(c, ref, query)))

    async def find(self, ref: Ref, *, ids: Sequence[str] = (), seqs: Sequence[int] = ()) -> Sequence[Entry]:
        return await blobs.filled(await self._on.read(lambda c: log.find(c, ref, ids, seqs)), self._blobs)

    async def scan(self, ref: Ref, *, after: int, limit: int, is_counted: bool = True) -> Sequence[Entry]:
        return await blobs.filled(await self._on.read(lambda c: log.scan(c, ref, after, limit)), self._blobs)

    async def framework_entries(self, ref: Ref) -> Sequence[Entry]:
        return await blobs.filled(await self._on.read(lambda c: log.framework_entries(c, ref)), self._blobs)

    async def _filled_pairs(self, pairs: Sequence[tuple[Entry, Entry]]) -> Sequence[tuple[Entry, Entry]]:
        """Of a revised message only the newest content is read: its place is asked for no text."""
        newest = await blobs.filled([newest for _, newest in pairs], self._blobs)
        return [(new if old is place else place, new) for (place, old), new in zip(pairs, newest, strict=True)]

    async def branches(self, ref: Ref) -> tuple[Sequence[BranchRow], int]:
        async def work(connection: Connection) -> tuple[Sequence[BranchRow], int]:
            number, head, _ = await log.living_head(connection, ref)
            return await log.all_branches(connection, number), head.active

        return await self._on.read(work)

    # -- views ---------------------------------------------------------------------------------------------

    async def outlook(self, ref: Ref, branch: BranchName) -> Outlook:
        found = await self._on.read(lambda c: views.outlook(c, ref, branch))
        return replace(found, pinned=await self._filled_pairs(found.pinned)) if found.pinned else found

    async def compactions(self, ref: Ref, query: CompactionQuery) -> Sequence[Compaction]:
        async def work(connection: Connection) -> Sequence[Compaction]:
            return await compactions.found(connection, (await log.living_head(connection, ref))[0], query)

        return await self._on.read(work)

    async def all_compactions(self, ref: Ref, *, after: CompactionPosition | None, limit: int) -> Sequence[Compaction]:
        async def work(connection: Connection) -> Sequence[Compaction]:
            return await compactions.page(connection, (await log.living_head(connection, ref))[0], after, limit)

        return await self._on.read(work)

    async def change_policy(self, ref: Ref | None, change: PolicyChange) -> None:
        await self._on.write(lambda c: views.change_policy(c, ref, change))

    async def policy(self, ref: Ref | None) -> bytes | None:
        return await self._on.read(lambda c: views.policy(c, ref))

    async def calibration(self, model: str) -> tuple[float, int] | None:
        found = await self._on.read(lambda c: c.fetchrow(sql.CALIBRATION, model))
        return None if found is None else (found[0], found[1])

    async def keep_calibration(self, model: str, factor: float, samples: int) -> None:
        await self._on.write(lambda c: c.execute(sql.KEEP_CALIBRATION, model, factor, samples))

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
        return [row[0] for row in await self._on.read(lambda c: c.fetch(notes.OWNERS))]

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
        return await self._on.read(lambda c: notes.uses(c, owner, limit))

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
        await self._on.write(lambda c: c.execute(sql.DROP_REPLY, owner, key, request))

    # -- search --------------------------------------------------------------------------------------------

    async def candidates(
        self, owner: str, conversation: str | None, query: Query, *, cap: int, any_word: bool, basis: object = None
    ) -> Candidates:
        found = await self._on.read(lambda c: search.candidates(c, owner, conversation, query, cap, any_word, basis))
        whole = await blobs.filled([one.entry for one in found.found], self._blobs)
        return found._replace(found=[one._replace(entry=entry) for one, entry in zip(found.found, whole, strict=True)])

    async def word_places(self, owner: str, conversation: str | None, terms: Sequence[Term], *, cap: int) -> WordPlaces:
        return await self._on.read(lambda c: search.word_places(c, owner, conversation, terms, cap))

    async def placed(self, owner: str, orders: Sequence[int], named: Sequence[tuple[str, int]]) -> Sequence[Placed]:
        found = await self._on.read(lambda c: search.placed(c, owner, orders, named))
        whole = await blobs.filled([one.entry for one in found], self._blobs)
        return [one._replace(entry=entry) for one, entry in zip(found, whole, strict=True)]

    # -- looking after the whole ---------------------------------------------------------------------------

    async def heads(self) -> Sequence[ConversationInfo]:
        found = await self._on.read(lambda c: _conversations(c, sql.ALL_CONVERSATIONS))
        return [info for _, info in found]

    async def erase(self, owner: str, conversation: str | None, message: str | None) -> EraseReport:
        report = await self._blank(owner, conversation, message)
        in_files = await self._rewrite(wait=True)
        return erase.with_what_is_left(report, (*await self._delete_doomed_blobs(), *in_files))

    async def _blank(self, owner: str, conversation: str | None, message: str | None) -> EraseReport:
        now = self._now()
        report = await self._on.write(lambda c: erase.blank(c, owner, conversation, message, now, self._blobs))
        summary_block.cache_clear()
        return report

    async def _rewrite(self, *, wait: bool) -> Sequence[str]:
        """The erasure is committed: a full disk or a lost connection is no reason to call it failed, or not to open."""
        try:
            async with self._on.alone() as connection:
                return await erase.rewrite(connection, self._now(), wait=wait)
        except errors.DRIVER as problem:
            return (f"{erase.NOT_REWRITTEN}: {errors.text(problem, self._address)}",)
        except StoreError as problem:
            return (f"{erase.NOT_REWRITTEN}: {problem}",)

    async def erasures(self) -> Sequence[tuple[str, str | None, str | None, datetime]]:
        rows = await self._on.read(lambda c: c.fetch(sql.ERASURES))
        return [(owner, conversation, message, from_micros(at)) for owner, conversation, message, at in rows]

    async def stats(self) -> Mapping[str, int]:
        async def work(connection: Connection) -> Mapping[str, int]:
            return {name: int(await connection.fetchval(query)) for name, query in sql.STATS.items()}

        return await self._on.read(work)

    async def payload_blobs(self) -> Mapping[str, int]:
        return {row[0]: row[1] for row in await self._on.read(lambda c: c.fetch(sql.BLOB_NAMES))}

    async def blob_at(self, ref: Ref, seq: int) -> str | None:
        async def work(connection: Connection) -> str | None:
            number, _, _ = await log.head(connection, ref)
            name: str | None = await connection.fetchval(sql.BLOB_OF, entry_key(number, seq))
            return name

        return await self._on.read(work)

    async def delete_unused_blobs(self, names: Sequence[str]) -> int:
        kept = self._blobs
        return 0 if kept is None else await self._on.write(lambda c: blobs.delete_unused(c, kept, names))

    async def backup(self, target: Path) -> None:
        await dump.backup(self._on.address, target)


async def _create(connection: Connection, new: NewConversation, now: int) -> ConversationInfo:
    await _refuse_known(connection, new)
    parent = None if new.parent_id is None else await _parent(connection, new.owner, new.parent_id)
    chain = genesis(new.owner, new.id)
    at = now if new.created_at is None else to_micros(new.created_at)
    values = (new.owner, new.id, parent, new.title, new.metadata, int(new.off_record), at, chain)
    if await connection.fetchval(sql.CREATE_CONVERSATION, *values) is None:
        await _refuse_known(connection, new)
    reach("create.written")
    return await _get(connection, Ref(new.owner, new.id))


async def _refuse_known(connection: Connection, new: NewConversation) -> None:
    known = await connection.fetchrow(sql.CONVERSATION_STATE, new.owner, new.id)
    if known is not None and known[1] is not None:
        raise Erased(f"conversation {new.id!r} was erased; its id cannot be used again")
    if known is not None:
        raise Conflict(f"conversation {new.id!r} exists already; get it, or choose another id")


async def _parent(connection: Connection, owner: str, id: str) -> int:
    row = await connection.fetchrow(sql.CONVERSATION_STATE, owner, id)
    if row is None or row[1] is not None:
        raise NotFound(f"no conversation {id!r} to be the parent")
    number: int = row[0]
    return number


async def _conversations(
    connection: Connection, statement: str, *values: object
) -> Sequence[tuple[int, ConversationInfo]]:
    """Conversations with their numbers."""
    return [(row[0], info_from_row(row)) for row in await connection.fetch(statement, *values)]


async def _get(connection: Connection, ref: Ref) -> ConversationInfo:
    row = await connection.fetchrow(sql.GET_CONVERSATION, *ref)
    if row is None:
        raise NotFound(f"no conversation {ref.id!r}")
    return info_from_row(row)


async def _update(connection: Connection, ref: Ref, changes: Mapping[str, Any], now: int) -> ConversationInfo:
    for column, value in changes.items():
        if column not in sql.UPDATE_CONVERSATION:
            raise Invalid("cannot be set", field=column)
        stored = to_micros(value) if isinstance(value, datetime) else value
        await connection.execute(sql.UPDATE_CONVERSATION[column], stored, now, *ref)
    return await _get(connection, ref)
