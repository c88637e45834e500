"""Conversations and their logs in memory."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any, TypeVar

from everthread.adapters.jobs.in_memory import InMemoryJobs
from everthread.adapters.stores.in_memory.rows import ConversationRow, InMemoryDatabase
from everthread.adapters.stores.in_memory.turns import InMemoryTurns
from everthread.core.chain import SettingsChange, genesis
from everthread.core.clock import from_micros, to_micros
from everthread.core.entries import HIDDEN_FLAGS, Entry, Flag, Kind
from everthread.core.errors import Conflict, Erased, Invalid
from everthread.core.log import BranchRow, Intent
from everthread.core.nouns import ConversationInfo, Ref
from everthread.core.paths import path_segments, within
from everthread.core.ports import ListOrder, ListPosition, NewConversation, PathQuery

R = TypeVar("R")


class InMemoryConversations:
    """`store.conversations` of core/ports.py."""

    def __init__(self, database: InMemoryDatabase) -> None:
        self._database = database

    async def create(self, new: NewConversation) -> ConversationInfo:
        ref = Ref(new.owner, new.id)
        known = self._database.rows.get(ref)
        if known is not None and known.is_erased:
            raise Erased(f"conversation {new.id!r} was erased; its id cannot be used again")
        if known is not None:
            raise Conflict(f"conversation {new.id!r} exists already; get it, or choose another id")
        off_record = new.off_record
        if new.parent_id is not None:  # they speak of the same things
            off_record |= self._database.row(Ref(new.owner, new.parent_id)).info.off_record
        now = from_micros(to_micros(new.created_at or self._database.clock()))
        info = ConversationInfo(
            owner=new.owner,
            id=new.id,
            parent_id=new.parent_id,
            title=new.title,
            metadata=json.loads(new.metadata),
            is_active=True,
            off_record=off_record,
            created_at=now,
            updated_at=now,
            deleted_at=None,
            entry_count=0,
            chain=genesis(*ref),
        )
        row = self._database.rows[ref] = ConversationRow(len(self._database.rows) + 1, info)
        row.branches[0] = BranchRow(0, None, 0, 0, 0, to_micros(now))
        row.note_change(to_micros(now))
        return copy_of(info)

    async def get(self, ref: Ref) -> ConversationInfo:
        return copy_of(self._database.row(ref).info)

    async def list(
        self,
        owner: str,
        *,
        limit: int,
        position: ListPosition | None,
        include_deleted: bool,
        parent_id: str | None,
        order: ListOrder = "created",
    ) -> tuple[Sequence[ConversationInfo], ListPosition | None]:
        rows = [
            row
            for row in self._in_order(order)
            if row.info.owner == owner
            and not row.is_erased
            and (include_deleted or row.info.deleted_at is None)
            and (parent_id is None or row.info.parent_id == parent_id)
            and (position is None or _place(row.position, order) < _place(position, order))
        ]
        shown = rows[:limit]
        following = shown[-1].position if shown and len(rows) > limit else None
        return [copy_of(row.info) for row in shown], following

    def _in_order(self, order: ListOrder) -> Sequence[ConversationRow]:
        return sorted(self._database.rows.values(), key=lambda row: _place(row.position, order), reverse=True)

    async def update(self, ref: Ref, changes: Mapping[str, Any]) -> ConversationInfo:
        row = self._database.row(ref)
        unknown = changes.keys() - {"title", "metadata", "is_active", "deleted_at"}
        if unknown:
            raise Invalid("cannot be set", field=unknown.pop())
        values = {key: json.loads(value) if key == "metadata" else value for key, value in changes.items()}
        if values:
            now = self._database.clock()
            row.info = replace(row.info, **values, updated_at=now)
            row.note_change(to_micros(now))
        return copy_of(row.info)

    async def changes(self, ref: Ref, *, after: int, limit: int) -> Sequence[SettingsChange]:
        return self._database.row_or_tombstone(ref).changes[after : after + limit]


def _place(position: ListPosition, order: ListOrder) -> tuple[int, int]:
    return (position.said_at if order == "said" else 0, position.number)


class InMemoryLog:
    """`store.log` of core/ports.py."""

    defers_token_count = False

    def __init__(self, database: InMemoryDatabase, turns: InMemoryTurns, jobs: InMemoryJobs) -> None:
        self._database = database
        self._turns = turns
        self._jobs = jobs

    async def write(self, ref: Ref, intent: Intent[R]) -> R:
        row = self._database.row_or_tombstone(ref)
        now = self._database.now()
        needs = intent.needs()
        seen = row.intent_inputs(needs)
        if needs.turns is not None:
            seen = seen._replace(turns=self._turns.look(ref, needs.turns))
        decision = intent.decide(seen, now)
        row.apply(decision, now)
        self._turns.apply(ref, decision, from_micros(now))
        self._jobs.put_all(ref, decision.jobs, now)
        return decision.result

    async def path(self, ref: Ref, query: PathQuery) -> Sequence[tuple[Entry, Entry]]:
        row = self._database.row(ref)
        named = row.by_seq([query.branch]) if isinstance(query.branch, int) else []
        hidden = Flag.ERASED if query.include_deleted else HIDDEN_FLAGS
        places = [
            entry
            for stretch in path_segments(row.branches, row.head, query.branch, named)
            for entry in row.entries[within(stretch, query).after : max(within(stretch, query).last, 0)]
            if entry.branch == stretch.branch and entry.is_place and not entry.flags & hidden
        ]
        shown = places[::-1][: query.limit] if query.newest_first else places[: query.limit]
        return [(place, row.entries[place.newest_seq - 1] if place.newest_seq else place) for place in shown]

    async def find(self, ref: Ref, *, ids: Sequence[str] = (), seqs: Sequence[int] = ()) -> Sequence[Entry]:
        row = self._database.row(ref)
        found = {entry.seq: entry for id in ids for entry in row.by_id(id)}
        found.update({entry.seq: entry for entry in row.by_seq(seqs) if entry.kind != Kind.MARK})
        return [found[seq] for seq in sorted(found)]

    async def scan(self, ref: Ref, *, after: int, limit: int, with_tokens: bool = True) -> Sequence[Entry]:
        return self._database.row_or_tombstone(ref).entries[after : after + limit]

    async def framework_entries(self, ref: Ref) -> Sequence[Entry]:
        return [entry for entry in self._database.row(ref).entries if entry.is_frameworks]

    async def origins(self, ref: Ref) -> Sequence[tuple[int, str]]:
        return sorted({(one.origin, one.role) for one in self._database.row(ref).entries if one.kind != Kind.MARK})

    async def branches(self, ref: Ref) -> tuple[Sequence[BranchRow], int]:
        row = self._database.row(ref)
        return [row.branches[number] for number in sorted(row.branches)], row.active


def copy_of(info: ConversationInfo) -> ConversationInfo:
    """A copy with its own metadata, so that callers cannot change the stored one."""
    return replace(info, metadata=deepcopy(info.metadata))
