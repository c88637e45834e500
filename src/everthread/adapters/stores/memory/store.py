"""The store in memory: the reference that the databases are compared with, and a quick one for tests.

Plain dicts and lists, scanned where a database would have an index. Nothing survives the process.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from everthread.adapters.jobs.memory import MemoryJobs
from everthread.adapters.stores.layout import (
    CANNOT_REACH,
    erase_report,
    memory_erased,
    texts_of,
)
from everthread.adapters.stores.memory import search
from everthread.adapters.stores.memory.access import Porter
from everthread.adapters.stores.memory.checkpoints import Shelf
from everthread.adapters.stores.memory.erase import blank, to_erase
from everthread.adapters.stores.memory.items import Drawer
from everthread.adapters.stores.memory.notes import Noticeboard
from everthread.adapters.stores.memory.rows import Kept, age
from everthread.adapters.stores.memory.turns import Diary
from everthread.adapters.vectors.memory import MemoryVectors
from everthread.compaction.view import shown
from everthread.context.quotes import summary_block
from everthread.core.access import ApiKey
from everthread.core.chain import genesis
from everthread.core.checkpoints import CheckpointNeeds, CheckpointQuery, CheckpointsSeen, Listed, Saved
from everthread.core.clock import Clock, from_micros, system_clock, to_micros
from everthread.core.compactions import Compaction
from everthread.core.entries import Entry, Flag, Kind
from everthread.core.errors import Conflict, Erased, Invalid, NotFound, StoreError
from everthread.core.items import ItemChanges, ItemKey, StoredItem
from everthread.core.jobs import NewJob
from everthread.core.log import BranchName, BranchRow, CompactionQuery, Intent
from everthread.core.notes import Note, NoteChange, NoteQuery, NotesFound, Place, UseCount
from everthread.core.nouns import ConversationInfo, EraseReport, Ref
from everthread.core.paths import is_on, path_segments, within
from everthread.core.ports import (
    MOST_PINNED,
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


class MemoryStore:
    """Conversations in memory. Everything runs between two awaits, so each call is a transaction."""

    counts_later = False
    can_block = False

    def __init__(self, clock: Clock = system_clock) -> None:
        self._clock = clock
        self._kept: dict[Ref, Kept] = {}
        self._erasures: list[tuple[str, str | None, str | None, datetime]] = []
        self._is_open = False
        self._policy: bytes | None = None
        self._calibrations: dict[str, tuple[float, int]] = {}
        self._items = Drawer()
        self._notes = Noticeboard()
        self._turns = Diary()
        self._porter = Porter()
        self.jobs = MemoryJobs()
        self.vectors = MemoryVectors(self._erased_seqs)

    async def open(self) -> None:
        self._is_open = True

    async def close(self) -> None:
        for ref, row in list(self._kept.items()):
            if row.info.off_record and not row.is_erased:
                await self.erase(ref.owner, ref.id, None)
        self._is_open = False

    @property
    def _rows(self) -> dict[Ref, Kept]:
        if not self._is_open:
            raise StoreError("the database is closed; open it with `async with everthread.open(...)`")
        return self._kept

    def _row(self, ref: Ref, *, living: bool = True) -> Kept:
        row = self._rows.get(ref)
        if row is None or (living and row.is_erased):
            raise NotFound(f"no conversation {ref.id!r}")
        return row

    def _living(self, owner: str, conversation: str | None) -> Sequence[Kept]:
        """An owner's conversations, or one of them, oldest first."""
        return [
            row
            for ref, row in self._rows.items()
            if ref.owner == owner and not row.is_erased and conversation in (None, ref.id)
        ]

    def _erased_seqs(self, ref: Ref) -> frozenset[int]:
        return frozenset(entry.seq for entry in self._row(ref).entries if entry.is_erased)

    # -- conversations -------------------------------------------------------------------------------------

    async def create(self, new: NewConversation) -> ConversationInfo:
        ref = Ref(new.owner, new.id)
        known = self._rows.get(ref)
        if known is not None and known.is_erased:
            raise Erased(f"conversation {new.id!r} was erased; its id cannot be used again")
        if known is not None:
            raise Conflict(f"conversation {new.id!r} exists already; get it, or choose another id")
        if new.parent_id is not None:
            self._row(Ref(new.owner, new.parent_id))
        now = from_micros(to_micros(new.created_at or self._clock()))
        info = ConversationInfo(
            owner=new.owner,
            id=new.id,
            parent_id=new.parent_id,
            title=new.title,
            metadata=json.loads(new.metadata),
            is_active=True,
            off_record=new.off_record,
            created_at=now,
            updated_at=now,
            deleted_at=None,
            entry_count=0,
            chain=genesis(*ref),
        )
        row = self._rows[ref] = Kept(len(self._rows) + 1, info)
        row.branches[0] = BranchRow(0, None, 0, 0, 0, to_micros(now))
        return _handed_out(info)

    async def get(self, ref: Ref) -> ConversationInfo:
        return _handed_out(self._row(ref).info)

    async def list(
        self,
        owner: str,
        *,
        limit: int,
        position: ListPosition | None,
        include_deleted: bool,
        parent_id: str | None,
    ) -> tuple[Sequence[ConversationInfo], ListPosition | None]:
        rows = [
            row
            for row in reversed(self._rows.values())
            if row.info.owner == owner
            and not row.is_erased
            and (include_deleted or row.info.deleted_at is None)
            and (parent_id is None or row.info.parent_id == parent_id)
            and (position is None or row.number < position.number)
        ]
        shown = rows[:limit]
        following = ListPosition(shown[-1].number) if shown and len(rows) > limit else None
        return [_handed_out(row.info) for row in shown], following

    async def update(self, ref: Ref, changes: Mapping[str, Any]) -> ConversationInfo:
        row = self._row(ref)
        unknown = changes.keys() - {"title", "metadata", "is_active", "deleted_at"}
        if unknown:
            raise Invalid("cannot be set", field=unknown.pop())
        values = {key: json.loads(value) if key == "metadata" else value for key, value in changes.items()}
        row.info = replace(row.info, **values, updated_at=self._clock()) if values else row.info
        return _handed_out(row.info)

    # -- the log -------------------------------------------------------------------------------------------

    async def errand(self, work: Callable[[], Coroutine[Any, Any, R]]) -> R:
        return await work()

    async def write(self, ref: Ref, intent: Intent[R]) -> R:
        row = self._row(ref, living=False)
        now = to_micros(self._clock())
        needs = intent.needs()
        seen = row.seen(needs)
        if needs.turns is not None:
            seen = seen._replace(turns=self._turns.look(ref, needs.turns))
        decision = intent.decide(seen, now)
        row.apply(decision, now)
        self._turns.apply(ref, decision, from_micros(now))
        self._put(ref, decision.jobs, now)
        return decision.result

    def _put(self, ref: Ref, jobs: Sequence[NewJob], now: int) -> None:
        for job in jobs:
            self.jobs.put(ref, job, now)
        if jobs:
            self.jobs.ring(jobs)

    async def path(self, ref: Ref, query: PathQuery) -> Sequence[tuple[Entry, Entry]]:
        row = self._row(ref)
        named = row.by_seq([query.branch]) if isinstance(query.branch, int) else []
        hidden = Flag.ERASED if query.include_deleted else Flag.ERASED | Flag.DELETED
        places = [
            entry
            for stretch in path_segments(row.branches, row.head, query.branch, named)
            for entry in row.entries[within(stretch, query).after : max(within(stretch, query).last, 0)]
            if entry.branch == stretch.branch and entry.is_place and not entry.flags & hidden
        ]
        shown = places[::-1][: query.limit] if query.newest_first else places[: query.limit]
        return [(place, row.entries[place.newest_seq - 1] if place.newest_seq else place) for place in shown]

    async def find(self, ref: Ref, *, ids: Sequence[str] = (), seqs: Sequence[int] = ()) -> Sequence[Entry]:
        row = self._row(ref)
        found = {entry.seq: entry for id in ids for entry in row.by_id(id)}
        found.update({entry.seq: entry for entry in row.by_seq(seqs) if entry.kind != Kind.MARK})
        return [found[seq] for seq in sorted(found)]

    async def scan(self, ref: Ref, *, after: int, limit: int, is_counted: bool = True) -> Sequence[Entry]:
        return self._row(ref, living=False).entries[after : after + limit]

    async def framework_entries(self, ref: Ref) -> Sequence[Entry]:
        return [entry for entry in self._row(ref).entries if entry.is_frameworks]

    async def branches(self, ref: Ref) -> tuple[Sequence[BranchRow], int]:
        row = self._row(ref)
        return [row.branches[number] for number in sorted(row.branches)], row.active

    # -- views ---------------------------------------------------------------------------------------------

    async def outlook(self, ref: Ref, branch: BranchName) -> Outlook:
        row = self._row(ref)
        named = row.by_seq([branch]) if isinstance(branch, int) else []
        found = path_segments(row.branches, row.head, branch, named)
        told = shown(row.compactions.values(), found)
        covered = told[-1].last_seq if told else 0
        return Outlook(
            entry_count=len(row.entries),
            segments=found,
            leaf_depth=row.entries[found[-1].last - 1].depth if found else 0,
            row=told,
            covered_depth=row.entries[covered - 1].depth if covered else 0,
            is_asked_back=any(
                one.undone_at is not None and one.last_seq > covered and is_on(found, one.branch, one.last_seq)
                for one in row.compactions.values()
                if one.invalid_at is None
            ),
            pinned=[
                (place, row.entries[place.newest_seq - 1] if place.newest_seq else place)
                for place in row.entries
                if place.is_place and place.flags & Flag.PINNED and not place.flags & (Flag.DELETED | Flag.ERASED)
            ][-MOST_PINNED:],
            policies=(self._policy, row.policy),
        )

    async def compactions(self, ref: Ref, query: CompactionQuery) -> Sequence[Compaction]:
        return self._row(ref).compactions_for(query)

    async def all_compactions(self, ref: Ref, *, after: CompactionPosition | None, limit: int) -> Sequence[Compaction]:
        known = sorted(self._row(ref).compactions.values(), key=age)
        return [one for one in known if after is None or age(one) > after][:limit]

    async def change_policy(self, ref: Ref | None, change: PolicyChange) -> None:
        if ref is None:
            self._policy = change(self._policy, self._policy)
        else:
            row = self._row(ref)
            row.policy, row.look_at = change(self._policy, row.policy), 1

    async def policy(self, ref: Ref | None) -> bytes | None:
        return self._policy if ref is None else self._row(ref).policy

    async def calibration(self, model: str) -> tuple[float, int] | None:
        return self._calibrations.get(model)

    async def keep_calibration(self, model: str, factor: float, samples: int) -> None:
        self._calibrations[model] = factor, samples

    async def keep_manifest(
        self, ref: Ref, id: str, manifest: bytes, shared: Mapping[str, bytes], jobs: Sequence[NewJob] = ()
    ) -> None:
        row = self._row(ref)
        row.manifests[id] = manifest
        row.prompts.update(shared)
        self._put(ref, jobs, to_micros(self._clock()))

    async def prompts(self, ref: Ref, digests: Sequence[str]) -> Mapping[str, bytes]:
        kept = self._row(ref).prompts
        return {digest: kept[digest] for digest in digests if digest in kept}

    async def manifest(self, ref: Ref, id: str) -> bytes:
        try:
            return self._row(ref).manifests[id]
        except KeyError:
            raise NotFound(f"no context {id!r} was kept for conversation {ref.id!r}") from None

    # -- checkpoints ---------------------------------------------------------------------------------------

    def _shelf(self, ref: Ref) -> Shelf:
        row = self._rows.get(ref)
        return Shelf() if row is None or row.is_erased else row.shelf

    async def checkpoint(self, ref: Ref, namespace: str, id: str | None) -> Saved | None:
        return self._shelf(ref).read(namespace, id)

    async def checkpoints(self, query: CheckpointQuery) -> Sequence[Listed]:
        found = [
            Listed(ref.id, saved)
            for ref in sorted(self._rows)
            if ref.owner == query.owner and query.conversation in (None, ref.id)
            for saved in self._shelf(ref).listed(query, ref.id)
        ]
        return found[: query.limit]

    async def all_checkpoints(self, ref: Ref) -> CheckpointsSeen:
        return self._shelf(ref).look(CheckpointNeeds(everything=True))

    async def ancestors(self, ref: Ref, namespace: str, id: str, *, limit: int) -> Sequence[Saved]:
        return self._shelf(ref).ancestors(namespace, id, limit)

    async def blobs(self, ref: Ref, digests: Sequence[bytes]) -> Mapping[bytes, bytes]:
        kept = self._shelf(ref).blobs
        return {digest: kept[digest] for digest in digests if digest in kept}

    async def with_checkpoints(self, owner: str | None, *, run_ids: Sequence[str] | None) -> Sequence[Ref]:
        mine = [ref for ref in sorted(self._rows) if owner in (None, ref.owner)]
        return [ref for ref in mine if self._shelf(ref).is_of(run_ids)]

    # -- items ---------------------------------------------------------------------------------------------

    async def change_items(self, owner: str, changes: ItemChanges) -> None:
        self._items.change(owner, changes, to_micros(self._clock()))

    async def items(self, owner: str, keys: Sequence[ItemKey]) -> Sequence[StoredItem]:
        return self._items.read(owner, keys, to_micros(self._clock()))

    async def items_under(self, owner: str, prefix: str) -> Sequence[StoredItem]:
        return self._items.under(owner, prefix, to_micros(self._clock()))

    async def item_namespaces(self, owner: str) -> Sequence[str]:
        found = self._items.under(owner, "", to_micros(self._clock()))
        return sorted({item.namespace for item in found})

    # -- notes ---------------------------------------------------------------------------------------------

    async def change_notes(self, owner: str, change: NoteChange[R]) -> R:
        needs = change.needs()
        living = {ref.id: row for ref, row in self._rows.items() if ref.owner == owner and not row.is_erased}
        places = [
            Place(id, living[id].info.parent_id, living[id].info.off_record, len(living[id].entries))
            for id in needs.conversations
            if id in living
        ]
        stands = [
            source
            for source in needs.sources
            for entry in (living[source.conversation].by_seq([source.seq]) if source.conversation in living else ())
            if not entry.is_erased
        ]
        return self._notes.change(owner, change, places, stands, to_micros(self._clock()))

    async def notes(self, owner: str, query: NoteQuery) -> Sequence[Note]:
        return self._notes.listed(owner, query)

    async def note_owners(self) -> Sequence[str]:
        return self._notes.owners()

    async def shelves(self, owner: str, kind: int) -> Mapping[str, int]:
        return self._notes.shelves(owner, kind)

    async def find_notes(
        self, owner: str, shelves: Sequence[str], query: Query, *, cap: int, any_word: bool
    ) -> NotesFound:
        return self._notes.find(owner, shelves, query, cap, any_word)

    async def near_notes(
        self, owner: str, shelves: Sequence[str], model: str, vector: bytes, *, limit: int
    ) -> Sequence[tuple[Note, float]]:
        return self._notes.near(owner, shelves, model, vector, limit)

    async def uses(self, owner: str, *, limit: int) -> Sequence[UseCount]:
        mine = [row.uses for ref, row in self._rows.items() if ref.owner == owner]
        found = [
            UseCount(*use, sum(one[use][0] for one in having), len(having), max(one[use][1] for one in having))
            for use in {use for one in mine for use in one}
            for having in [[one for one in mine if use in one]]
        ]
        return sorted(found, key=lambda one: (-one.uses, -one.last_at, one.name))[:limit]

    # -- turns ---------------------------------------------------------------------------------------------

    async def turn(self, ref: Ref, id: str) -> Turn:
        return self._turns.read(ref, id)

    async def turns(self, query: TurnQuery) -> Sequence[Turn]:
        return self._turns.listed(query)

    async def unfinished_turns(self) -> Sequence[tuple[Ref, Turn]]:
        return self._turns.unfinished()

    async def renew_turns(self, holder: str, until: datetime) -> Sequence[str]:
        return self._turns.renew(holder, until)

    async def add_events(self, ref: Ref, holder: str, batch: EventBatch) -> None:
        self._turns.add_events(ref, holder, batch, self._clock())

    async def turn_events(self, ref: Ref, id: str, *, after: int, limit: int) -> Sequence[StoredEvent]:
        return self._turns.events(ref, id, after, limit)

    async def prune_events(self, before: datetime) -> int:
        return self._turns.prune(before)

    # -- keys and replies ----------------------------------------------------------------------------------

    async def add_key(self, key: ApiKey) -> None:
        self._porter.add(key)

    async def api_key(self, id: str) -> ApiKey | None:
        return self._porter.read(id)

    async def api_keys(self, owner: str | None) -> Sequence[ApiKey]:
        return self._porter.every(owner)

    async def revoke_key(self, id: str) -> ApiKey:
        return self._porter.revoke(id, self._clock())

    async def begin_reply(self, owner: str, key: str, request: bytes, *, lease_seconds: float) -> Reply | None:
        now, lease = to_micros(self._clock()), int(lease_seconds * 1_000_000)
        return self._porter.begin_reply(owner, key, request, lease, now)

    async def keep_reply(self, owner: str, key: str, reply: Reply) -> None:
        self._porter.keep_reply(owner, key, reply)

    async def drop_reply(self, owner: str, key: str, request: bytes) -> None:
        self._porter.drop_reply(owner, key, request)

    # -- search --------------------------------------------------------------------------------------------

    async def candidates(
        self, owner: str, conversation: str | None, query: Query, *, cap: int, any_word: bool, basis: object = None
    ) -> Candidates:
        rows = self._living(owner, conversation)
        return search.candidates(rows[::-1], owner, query, cap, any_word)

    async def word_places(self, owner: str, conversation: str | None, terms: Sequence[Term], *, cap: int) -> WordPlaces:
        if conversation is not None:
            self._row(Ref(owner, conversation))
        return search.word_places(self._living(owner, conversation), terms, cap)

    async def placed(self, owner: str, orders: Sequence[int], named: Sequence[tuple[str, int]]) -> Sequence[Placed]:
        return search.placed(self._living(owner, None), orders, named)

    # -- looking after the whole ---------------------------------------------------------------------------

    async def heads(self) -> Sequence[ConversationInfo]:
        return [_handed_out(row.info) for row in self._rows.values()]

    async def erase(self, owner: str, conversation: str | None, message: str | None) -> EraseReport:
        summary_block.cache_clear()
        if conversation is None and message is not None:
            return self._erase_memory(owner, message)
        rows = self._living(owner, conversation)
        if not rows and conversation is not None:
            raise NotFound(f"no conversation {conversation!r}")
        if message is not None and not any(to_erase(row, message) for row in rows):
            raise NotFound(f"no message {message!r} in conversation {conversation!r}")
        now = self._clock()
        reached: Counter[str] = Counter()
        for row in rows:
            seqs = None if message is None else [entry.seq for entry in row.by_id(message)]
            reached["notes"] += self._notes.erase(owner, row.info.id, seqs)
            said = texts_of(to_erase(row, message)) if message is not None else []
            self._turns.forget(Ref(owner, row.info.id), message, said, reached)
            seqs = None if message is None else [entry.seq for entry in to_erase(row, message)]
            reached["vectors"] += self.vectors.forget_now(owner, row.info.id, seqs=seqs)
            blank(row, message, now, reached)
            forgotten = self.jobs.forget(Ref(owner, row.info.id), only_errors=message is not None)
            reached["jobs"] += forgotten
        if conversation is None:
            reached["items"] += self._items.forget(owner)
            reached["notes"] += self._notes.erase(owner, None, None)
        reached.update(self._porter.forget(owner, conversation))
        self._erasures.append((owner, conversation, message, now))
        return erase_report(owner, conversation, message, reached, CANNOT_REACH, to_micros(now))

    def _erase_memory(self, owner: str, id: str) -> EraseReport:
        if not self._notes.erase_memory(owner, id):
            raise NotFound(f"no memory {id!r}")
        now = self._clock()
        self._erasures.append((owner, None, id, now))
        return memory_erased(owner, id, CANNOT_REACH, to_micros(now))

    async def erasures(self) -> Sequence[tuple[str, str | None, str | None, datetime]]:
        return list(self._erasures)

    async def stats(self) -> Mapping[str, int]:
        entries = [entry for row in self._rows.values() for entry in row.entries]
        return {
            "conversations": sum(not row.is_erased for row in self._rows.values()),
            "messages": sum(entry.is_place and not entry.is_erased for entry in entries),
            "entries": len(entries),
            "erased_entries": sum(entry.is_erased for entry in entries),
            "flagged_secrets": sum(bool(entry.flags & Flag.SECRET) for entry in entries),
            "owners": len({ref.owner for ref in self._rows}),
            "jobs_waiting": (await self.jobs.report(0)).waiting,
            "jobs_dead": (await self.jobs.report(0)).dead,
            "payload_bytes": sum(len(entry.raw or b"") for entry in entries),
            "database_bytes": 0,
        }

    async def payload_blobs(self) -> Mapping[str, int]:
        return {}

    async def blob_at(self, ref: Ref, seq: int) -> str | None:
        return None

    async def delete_unused_blobs(self, names: Sequence[str]) -> int:
        return 0

    async def backup(self, target: Path) -> None:
        raise StoreError("a database in memory cannot be backed up; open a file with sqlite:///…")


def _handed_out(info: ConversationInfo) -> ConversationInfo:
    """With metadata of its own, so that callers cannot change what is kept."""
    return replace(info, metadata=deepcopy(info.metadata))
