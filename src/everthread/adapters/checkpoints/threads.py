"""What a saver does to threads: each verb as steps over the store, one at a time from one step to the next."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, cast

from langchain_core.messages import BaseMessage
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    Checkpoint,
    CheckpointTuple,
    DeltaChannelHistory,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from everthread.adapters.checkpoints import pruning
from everthread.adapters.checkpoints.children import Children
from everthread.adapters.checkpoints.copying import Copy, PutAll
from everthread.adapters.checkpoints.deltas import DeltaWalk
from everthread.adapters.checkpoints.drafting import Draft
from everthread.adapters.checkpoints.elements import Blobs
from everthread.adapters.checkpoints.holding import HISTORY, Held, WriteKey, hold, settled
from everthread.adapters.checkpoints.joining import Joining
from everthread.adapters.checkpoints.lists import Snapshot
from everthread.adapters.checkpoints.putting import Awaited, Put, Unprepared, Waiting
from everthread.adapters.checkpoints.reading import Loader
from everthread.adapters.checkpoints.remembering import Memories, Memory, Remembered
from everthread.adapters.checkpoints.spots import Spot
from everthread.adapters.checkpoints.underway import Underway
from everthread.adapters.checkpoints.writing import Clear, HeldKey, KeepWrites
from everthread.core import driving
from everthread.core.checkpoints import (
    CheckpointChanges,
    CheckpointQuery,
    CheckpointsSeen,
    CheckpointState,
    Listed,
    Saved,
    StoredCheckpoint,
    StoredWrite,
)
from everthread.core.errors import Conflict, NotFound
from everthread.core.log import Intent
from everthread.core.nouns import Ref
from everthread.history import reading
from everthread.history.intents import transcribed
from everthread.instance import Everthread

_MOST_TRIES = 10
_PAGE = 100
_SUPERSTEPS = 500
"""How many ancestors are read at once to rebuild a delta channel."""


class Threads:
    """The threads of all owners in one database."""

    def __init__(self, et: Everthread, on_delete: str) -> None:
        self._et = et
        self._store = et.store
        self.can_block = et.store.can_block
        self._on_delete = on_delete
        self._memories = Memories()
        self._writes: Underway[Spot] = Underway()
        self._puts: Underway[Ref] = Underway()
        self._joining = Joining()
        self._erased: set[Ref] | None = None
        self._thread_ids: dict[Ref, str] = {}
        """Which thread a conversation is of, where that has another name."""

    # -- put -----------------------------------------------------------------------------------------------

    async def put(
        self,
        spot: Spot,
        checkpoint: Checkpoint,
        metadata: Mapping[str, Any],
        new_versions: Mapping[str, Any],
        serde: SerializerProtocol,
    ) -> None:
        """Store a checkpoint and log what is new in it, together.

        One at a time for each thread: a subgraph's first checkpoint must find in the log what its parent's, which
        came before it and may still be on its way, puts there.
        """
        ref = await self._ref(spot)
        with self._puts.on(ref) as before:
            await driving.wait(before)
            begun = self._writes.begun(spot)
            self._joining.is_worthwhile |= bool(begun)
            with self._joining.taken(spot) as writes:
                await driving.wait(begun)
                await self._put(ref, spot, checkpoint, metadata, new_versions, serde, writes)

    async def _put(
        self,
        ref: Ref,
        spot: Spot,
        checkpoint: Checkpoint,
        metadata: Mapping[str, Any],
        new_versions: Mapping[str, Any],
        serde: SerializerProtocol,
        writes: Sequence[KeepWrites],
    ) -> None:
        unknown: dict[WriteKey, Held] = {}
        is_thorough = False
        for _ in range(_MOST_TRIES):
            try:
                draft = await self._draft(ref, spot, checkpoint, new_versions, serde, is_thorough)
                if draft.parent is None:  # which may yet come: the writes await it
                    await self._write_all(ref, writes)
                    writes = ()
                intent = await self._intent(ref, draft, metadata, unknown, writes)
                draft.remember(await self._write(ref, intent))
            except Unprepared as problem:
                unknown |= {(write.task_id, write.idx): _held(write, serde) for write in problem.writes}
                is_thorough = is_thorough or not problem.writes
            else:
                draft.memory.held.pop((spot.namespace, spot.id or ""), None)
                return
        raise Conflict(f"thread {spot.thread_id!r} is being changed all the time; nothing was stored: try again")

    async def _draft(
        self,
        ref: Ref,
        spot: Spot,
        checkpoint: Checkpoint,
        new_versions: Mapping[str, Any],
        serde: SerializerProtocol,
        is_thorough: bool,
    ) -> Draft:
        memory = self._memories.of(ref)
        if is_thorough:  # what is remembered of the parent is not what the store has
            memory.checkpoints.clear()
        draft = Draft(spot, checkpoint, serde, memory, await self._parent(ref, spot, serde, memory))
        draft.is_thorough = is_thorough
        draft.counts_later = self._store.counts_later
        draft.take(new_versions)
        draft.loosen()
        return draft

    async def _parent(self, ref: Ref, spot: Spot, serde: SerializerProtocol, memory: Memory) -> Remembered | None:
        if spot.id is None:
            return None
        known = memory.checkpoints.get((spot.namespace, spot.id))
        if known is not None:
            return known
        saved = await self._store.checkpoint(ref, spot.namespace, spot.id)
        if saved is None or saved.row.state == CheckpointState.AWAITED:
            return None
        return await Loader(self._store, ref, serde, memory).remember(saved)

    async def _intent(
        self,
        ref: Ref,
        draft: Draft,
        metadata: Mapping[str, Any],
        unknown: Mapping[WriteKey, Held],
        joining: Sequence[KeepWrites],
    ) -> Put:
        held = {**unknown, **draft.memory.held.get((draft.spot.namespace, draft.spot.id or ""), {})}
        if draft.spot.namespace:
            writes = await self._held_writes(ref, draft.spot)
            held = {key: held.get(key) or _held(write, draft.serde) for key, write in writes.items()}
            return draft.intent(metadata, settled=await Children(self._et, ref, draft).follow([*writes.values()], held))
        standing, items = draft.listed()
        waiting = draft.waiting(held, standing, items)
        return draft.intent(metadata, standing=standing, items=items, waiting=waiting, joining=joining)

    async def _held_writes(self, ref: Ref, spot: Spot) -> dict[WriteKey, StoredWrite]:
        saved = None if spot.id is None else await self._store.checkpoint(ref, spot.namespace, spot.id)
        found = () if saved is None else saved.writes
        return {(write.task_id, write.idx): write for write in found if write.is_held}

    async def _write(self, ref: Ref, intent: Intent[Any]) -> Any:
        """Write to a conversation that may not exist yet."""
        try:
            return await self._store.write(ref, intent)
        except NotFound:
            await self._et.conversations.ensure(ref.id, ref.owner)
            return await self._store.write(ref, intent)

    async def _write_all(self, ref: Ref, intents: Sequence[Intent[Any]]) -> None:
        for intent in intents:
            await self._write(ref, intent)

    async def put_writes(self, spot: Spot, taken: Sequence[Taken]) -> None:
        """Keep what a task wrote, with the messages in it held until a checkpoint names them."""
        assert spot.id is not None
        ref = await self._ref(spot)
        memory = self._memories.of(ref)
        blobs: Blobs = {}
        rows = [one.row if one.held is None else _holding(one.row, one.held, spot, memory, blobs) for one in taken]
        intent = KeepWrites(namespace=spot.namespace, id=spot.id, writes=rows, blobs=blobs)
        if driving.is_driven() and not spot.namespace and self._joining.is_stored(spot, intent):
            return
        with self._writes.on(spot):
            await self._write(ref, intent)

    # -- reading -------------------------------------------------------------------------------------------

    async def get(self, spot: Spot, serde: SerializerProtocol) -> CheckpointTuple | None:
        """A checkpoint, or the newest."""
        ref = await self._ref(spot)
        saved = await self._store.checkpoint(ref, spot.namespace, spot.id)
        if saved is None or saved.row.state != CheckpointState.VISIBLE:
            return None
        return await self._tuple(ref, spot, saved, serde)

    async def _tuple(self, ref: Ref, spot: Spot, saved: Saved, serde: SerializerProtocol) -> CheckpointTuple:
        memory = self._memories.of(ref, saved.thread.erasures)
        loaded = await Loader(self._store, ref, serde, memory).load(saved)
        return CheckpointTuple(
            config=spot.config(saved.row.id),
            checkpoint=cast(Checkpoint, loaded.checkpoint),
            metadata=loaded.metadata,
            parent_config=None if saved.row.parent_id is None else spot.config(saved.row.parent_id),
            pending_writes=loaded.writes,
        )

    async def list(
        self, query: CheckpointQuery, matches: Mapping[str, Any], limit: int | None, serde: SerializerProtocol
    ) -> AsyncIterator[CheckpointTuple]:
        """Checkpoints, newest first within a namespace, whose metadata is equal to what is asked for."""
        if query.conversation is not None:
            ref = await self._ref(Spot(query.owner, query.conversation, "", None))
            query = replace(query, conversation=ref.id)
        left = limit
        while left is None or left > 0:
            size = _PAGE if left is None or matches else min(_PAGE, left)
            page = await self._store.checkpoints(replace(query, limit=size))
            for listed in page:
                if left is not None and left <= 0:
                    return
                if await self._is_meant(listed, query.owner, matches, serde):
                    left = None if left is None else left - 1
                    yield await self._listed(listed, query.owner, serde)
            if len(page) < size:
                return
            last = page[-1]
            query = replace(query, after=(last.conversation_id, last.saved.row.namespace, last.saved.row.id))

    async def _is_meant(
        self, listed: Listed, owner: str, matches: Mapping[str, Any], serde: SerializerProtocol
    ) -> bool:
        if not matches:
            return True
        ref = Ref(owner, listed.conversation_id)
        metadata = Loader(self._store, ref, serde, self._memories.of(ref)).metadata(listed.saved)
        return all(metadata.get(key) == value for key, value in matches.items())

    async def _listed(self, listed: Listed, owner: str, serde: SerializerProtocol) -> CheckpointTuple:
        ref = Ref(owner, listed.conversation_id)
        spot = Spot(owner, self._thread_ids.get(ref, ref.id), listed.saved.row.namespace, None)
        return await self._tuple(ref, spot, listed.saved, serde)

    async def delta_history(
        self, spot: Spot, channels: Sequence[str], serde: SerializerProtocol
    ) -> Mapping[str, DeltaChannelHistory]:
        """What each delta channel is rebuilt from: the writes of ancestors, back to its last snapshot."""
        ref = await self._ref(spot)
        saved = await self._store.checkpoint(ref, spot.namespace, spot.id)
        walk = DeltaWalk(channels)
        id = None if saved is None else saved.row.parent_id
        while id is not None and walk.open:
            chain = await self._store.ancestors(ref, spot.namespace, id, limit=_SUPERSTEPS)
            await self._walk(ref, [one for one in chain if one.row.state != CheckpointState.AWAITED], walk, serde)
            id = chain[-1].row.parent_id if len(chain) == _SUPERSTEPS else None
        return walk.histories()

    async def _walk(self, ref: Ref, chain: Sequence[Saved], walk: DeltaWalk, serde: SerializerProtocol) -> None:
        for ancestor in chain:
            if not walk.open:
                return
            loader = Loader(self._store, ref, serde, self._memories.of(ref, ancestor.thread.erasures))
            walk.take(await loader.load_some(ancestor, walk.open))

    async def recognise(self, spot: Spot, messages: Sequence[BaseMessage], serde: SerializerProtocol) -> None:
        """Know the objects of a checkpoint's list that another saver has handed out: while they stay as they are, the
        next checkpoint need not look into them."""
        ref = await self._ref(spot)
        memory = self._memories.of(ref)
        found = await self._parent(ref, spot, serde, memory)
        refs = () if found is None else found.lists.get(HISTORY, ())
        if refs and len(refs) == len(messages):
            memory.keep_list(spot.namespace, HISTORY, Snapshot(messages, refs))

    # -- removing ------------------------------------------------------------------------------------------

    async def delete(self, owner: str, thread_id: str, serde: SerializerProtocol) -> None:
        """Remove a thread's checkpoints, and close its epoch; the log is kept, or erased."""
        ref = await self._ref(Spot(owner, thread_id, "", None))
        if self._on_delete == "erase":
            await self._erase(ref)
        else:
            await self._clear(ref, pruning.drop_all, serde)
        self._memories.forget(ref)

    async def _erase(self, ref: Ref) -> None:
        try:
            await self._et.erase(owner=ref.owner, conversation=ref.id)
        except NotFound:  # nothing was ever put there
            return
        self._erased = None

    async def _ref(self, spot: Spot) -> Ref:
        """The conversation of a thread. An erased one is never written to again: the next epoch is another."""
        ref = Ref(spot.owner, spot.thread_id)
        if self._on_delete == "keep":
            return ref
        if self._erased is None:
            self._erased = {Ref(row[0], row[1]) for row in await self._store.erasures() if row[1] and not row[2]}
        epoch = 1
        while ref in self._erased:
            epoch += 1
            ref = Ref(spot.owner, f"{spot.thread_id}~{epoch}")
        self._thread_ids[ref] = spot.thread_id
        return ref

    async def copy(self, owner: str, source: str, target: str, serde: SerializerProtocol) -> None:
        """A thread with a log and checkpoints of its own; nothing when the source does not exist."""
        ref = await self._ref(Spot(owner, source, "", None))
        goal = await self._ref(Spot(owner, target, "", None))
        found = await self._store.all_checkpoints(ref)
        if not found.all:
            return
        moved = await self._transcribed(ref, goal)
        memory = self._memories.of(ref, found.thread.erasures)
        blobs = await Loader(self._store, ref, serde, memory).learn_all(found)
        await self._store.write(goal, PutAll(changes=Copy(moved, memory.casts, blobs, serde).changes(found)))

    async def _transcribed(self, ref: Ref, goal: Ref) -> dict[int, int]:
        """Copy the log; give where each entry went. One that a crash cut short is gone on with."""
        conversation = await self._et.conversations.get(ref.id, ref.owner)
        try:
            await conversation.copy(id=goal.id)
        except Conflict:
            if await self._store.checkpoint(goal, "", None) is not None:
                raise
        entries = [entry async for entry in reading.log(self._store, ref)]
        return {entry.seq: place for place, entry in enumerate(transcribed(entries), 1)}

    async def prune(self, owner: str, thread_id: str, strategy: str, serde: SerializerProtocol) -> None:
        """Keep the newest checkpoint of each namespace, or none."""
        ref = await self._ref(Spot(owner, thread_id, "", None))
        keep = pruning.Keep(pruning.newest_only, serde) if strategy == "keep_latest" else pruning.drop_all
        await self._clear(ref, keep, serde)
        self._memories.forget(ref)

    async def delete_runs(self, owner: str, run_ids: Sequence[str], serde: SerializerProtocol) -> None:
        """Remove the checkpoints of some runs."""
        for ref in await self._store.with_checkpoints(owner, run_ids=run_ids):
            await self._clear(ref, pruning.Keep(pruning.other_runs(run_ids), serde), serde)
            self._memories.forget(ref)

    async def settle(
        self, serde: SerializerProtocol, thread: Ref | None = None, *, besides: Collection[str | None] = ()
    ) -> None:
        """Log what a crash left waiting in writes, of one thread or of all, but for those on some checkpoints."""
        for ref in [thread] if thread is not None else await self._store.with_checkpoints(None, run_ids=None):
            await self._clear(ref, pruning.nothing, serde, besides)

    async def _clear(
        self,
        ref: Ref,
        remove: Callable[[CheckpointsSeen], CheckpointChanges],
        serde: SerializerProtocol,
        besides: Collection[str | None] = (),
    ) -> None:
        waiting: dict[HeldKey, Waiting] = {}
        for _ in range(_MOST_TRIES):
            try:
                await self._store.write(ref, Clear(waiting=waiting, remove=remove, besides=besides))
            except Unprepared as problem:
                for write in problem.writes:
                    key = (write.checkpoint, write.task_id, write.idx)
                    waiting[key] = await self._left_behind(ref, problem.rows[write.checkpoint], write, serde)
            except NotFound:  # nothing was ever put there
                return
            else:
                return
        raise Conflict(f"thread {ref.id!r} is being written to all the time; nothing was removed: try again")

    async def _left_behind(
        self, ref: Ref, row: StoredCheckpoint, write: StoredWrite, serde: SerializerProtocol
    ) -> Waiting:
        """A write whose messages no list will name. Those of a subgraph go to its own conversation first."""
        held = _held(write, serde)
        spot = Spot(ref.owner, ref.id, row.namespace, row.id)
        checkpoint = cast(Checkpoint, {"id": row.id, "channel_values": {}, "channel_versions": {}})
        parent = await self._parent(ref, spot, serde, self._memories.of(ref))
        draft = Draft(spot, checkpoint, serde, self._memories.of(ref), parent)
        key = (write.task_id, write.idx)
        if row.namespace:
            await Children(self._et, ref, draft).follow([write], {key: held})
            return Waiting(held, [Awaited(part, None, None) for part in held.parts])
        return draft.waiting({key: held}, (), [])[key]


class Taken(NamedTuple):
    """A write as it was when it came, and the messages in it."""

    row: StoredWrite
    held: Held | None


def take(writes: Sequence[tuple[str, Any]], task_id: str, task_path: str, serde: SerializerProtocol) -> list[Taken]:
    """A task's writes as bytes, at once: what they hold may be changed as soon as the caller goes on."""
    return [
        Taken(
            StoredWrite(
                0, task_id, WRITES_IDX_MAP.get(channel, place), task_path, channel, *serde.dumps_typed(value), False
            ),
            hold(value, serde) if channel == HISTORY else None,
        )
        for place, (channel, value) in enumerate(writes)
    ]


def _held(write: StoredWrite, serde: SerializerProtocol) -> Held:
    return hold(serde.loads_typed((write.kind, write.value)), serde) or Held("other", ())


def _holding(row: StoredWrite, held: Held, spot: Spot, memory: Memory, blobs: Blobs) -> StoredWrite:
    """A write of messages: by reference where all of them are known, else held."""
    refs = memory.known(spot.namespace, HISTORY, [part.message for part in held.parts])
    if None not in refs:
        return settled(row, held, refs, blobs)
    memory.hold(spot.namespace, spot.id or "", (row.task_id, row.idx), held)
    return row._replace(is_held=True)
