"""Store a checkpoint, or a task's writes: from LangGraph's `put` and `put_writes` to the store's answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from langchain_core.messages import BaseMessage
from langgraph.checkpoint.base import WRITES_IDX_MAP, Checkpoint
from langgraph.checkpoint.serde.base import SerializerProtocol

from everthread.adapters.checkpoints.cache import ThreadCache
from everthread.adapters.checkpoints.checkpoint_intents import PutCheckpoint, PutWrites, StaleDraft
from everthread.adapters.checkpoints.coalescer import WriteCoalescer
from everthread.adapters.checkpoints.draft import CheckpointDraft
from everthread.adapters.checkpoints.early_puts import EarlyPuts, Put, Start, start_of
from everthread.adapters.checkpoints.get import parent_of
from everthread.adapters.checkpoints.held_writes import (
    HISTORY,
    HeldMessages,
    WriteKey,
    held_in_row,
    held_messages,
    with_references,
)
from everthread.adapters.checkpoints.in_flight import InFlight
from everthread.adapters.checkpoints.message_lists import ListSnapshot
from everthread.adapters.checkpoints.row_format import Blobs
from everthread.adapters.checkpoints.serde import dump_channel
from everthread.adapters.checkpoints.subgraphs import SubgraphLog
from everthread.adapters.checkpoints.threads import CheckpointAddress, Threads
from everthread.adapters.stores import blocking
from everthread.core.checkpoints import StoredWrite
from everthread.core.errors import Conflict, NotFound
from everthread.core.log import Intent
from everthread.core.nouns import Ref

_MAX_TRIES = 10


class CheckpointWriter:
    """Stores checkpoints and writes, one checkpoint at a time for each thread."""

    def __init__(self, threads: Threads, *, keeps_turns: bool = True) -> None:
        self._threads = threads
        self._keeps_turns = keeps_turns
        self._writes: InFlight[CheckpointAddress] = InFlight()
        self._puts: InFlight[Ref] = InFlight()
        self._early = EarlyPuts()
        self._coalescer = WriteCoalescer()

    async def put(
        self,
        address: CheckpointAddress,
        checkpoint: Checkpoint,
        metadata: Mapping[str, Any],
        new_versions: Mapping[str, Any],
        serde: SerializerProtocol,
    ) -> None:
        """Store a checkpoint and log what is new in it, together.

        One at a time for each thread: a subgraph's checkpoint must find in the log what the one that it was started
        from puts there. LangGraph may hand that one over later, always with `durability="exit"`. Then the subgraph's is
        stored with its messages as bytes, and once more, with references, when the other one is there.
        """
        ref = await self._threads.ref(address.owner, address.thread_id)
        put = Put(address, checkpoint, metadata, new_versions, serde)
        with self._puts.track(ref) as before:
            await blocking.wait_for_all(before)
            if (start := await self._awaited_start(ref, put)) is not None:
                await self._put(ref, put, (), is_early=True)
                self._early.add(ref, start, put)
                return
            pending = self._writes.pending(address)
            self._coalescer.is_worthwhile |= bool(pending)
            with self._coalescer.take(address) as writes:
                await blocking.wait_for_all(pending)
                await self._put(ref, put, writes)
            await self._put_early_again(ref, put)

    async def _awaited_start(self, ref: Ref, put: Put) -> Start | None:
        """The checkpoint that a subgraph was started from, if that one is still to come."""
        start = start_of(put) if put.address.namespace else None
        if start is None or (start.namespace, start.id) in self._threads.caches.get(ref).checkpoints:
            return None
        if self._early.has(ref, start.id):
            return start
        newest = await self._threads.store.checkpoints.get(ref, start.namespace, None)
        # Ids rise with time: one that is older than the newest and not there was removed.
        return None if newest is not None and newest.row.id >= start.id else start

    async def _put_early_again(self, ref: Ref, put: Put) -> None:
        """The checkpoints of subgraphs that were started from this one, or from one that never came, unless they were
        deleted meanwhile."""
        for early in self._early.take(ref, put.address.namespace, put.checkpoint["id"]):
            if await self._threads.store.checkpoints.get(ref, early.address.namespace, early.checkpoint["id"]):
                await self._put(ref, early, ())
                await self._put_early_again(ref, early)

    async def _put(self, ref: Ref, put: Put, writes: Sequence[PutWrites], *, is_early: bool = False) -> None:
        address, checkpoint, metadata, new_versions, serde = put
        unknown: dict[WriteKey, HeldMessages] = {}
        recheck_all = False
        for _ in range(_MAX_TRIES):
            try:
                draft = await self._draft(ref, address, checkpoint, new_versions, serde, recheck_all)
                draft.keep_unlogged(is_early=is_early)
                if draft.parent is None:  # not here yet: the writes are stored by themselves
                    for waiting in writes:
                        await self._write(ref, waiting)
                    writes = ()
                intent = await self._intent(ref, draft, metadata, unknown, writes, is_early)
                result = await self._write(ref, intent)
                if is_early:
                    return
                draft.update_cache(result)
            except StaleDraft as problem:
                unknown |= {(write.task_id, write.idx): held_in_row(write, serde) for write in problem.writes}
                recheck_all = recheck_all or not problem.writes
            else:
                draft.cache.held.pop((address.namespace, address.id or ""), None)
                return
        raise Conflict(f"thread {address.thread_id!r} kept changing during the put; nothing was stored: try again")

    async def _draft(
        self,
        ref: Ref,
        address: CheckpointAddress,
        checkpoint: Checkpoint,
        new_versions: Mapping[str, Any],
        serde: SerializerProtocol,
        recheck_all: bool,
    ) -> CheckpointDraft:
        cache = self._threads.caches.get(ref)
        if recheck_all:  # what is remembered of the parent is not what the store has
            cache.checkpoints.clear()
        draft = CheckpointDraft(
            address,
            checkpoint,
            serde,
            cache,
            parent=await parent_of(self._threads, ref, address, serde, cache),
            counts_tokens_later=self._threads.store.log.defers_token_count,
            recheck_all=recheck_all,
        )
        draft.sort_channels(new_versions)
        return draft

    async def _intent(
        self,
        ref: Ref,
        draft: CheckpointDraft,
        metadata: Mapping[str, Any],
        unknown: Mapping[WriteKey, HeldMessages],
        with_writes: Sequence[PutWrites],
        is_early: bool,
    ) -> PutCheckpoint:
        address = draft.address
        held = {**unknown, **draft.cache.held.get((address.namespace, address.id or ""), {})}
        if address.namespace:  # a subgraph: what it says first is logged in a conversation of its own
            has_parent = address.id is not None
            parent = (
                await self._threads.store.checkpoints.get(ref, address.namespace, address.id) if has_parent else None
            )
            writes = [write for write in parent.writes if write.is_held] if parent is not None else []
            if is_early:
                return draft.intent(metadata, rewritten={(write.task_id, write.idx): write for write in writes})
            held = {
                (write.task_id, write.idx): held.get((write.task_id, write.idx)) or held_in_row(write, draft.serde)
                for write in writes
            }
            rewritten = await SubgraphLog(self._threads.et, ref, draft).log_new(writes, held)
            return draft.intent(metadata, rewritten=rewritten)
        known_refs, items = draft.listed_messages()
        matched = draft.match_writes(held, known_refs, items)
        return draft.intent(
            metadata,
            known_refs=known_refs,
            items=items,
            matched=matched,
            with_writes=with_writes,
            replaces_turn=not self._keeps_turns,
        )

    async def _write(self, ref: Ref, intent: Intent[Any]) -> Any:
        """Write to a conversation that may not exist yet."""
        try:
            return await self._threads.store.log.write(ref, intent)
        except NotFound:
            await self._threads.et.conversations.ensure(ref.id, ref.owner)
            return await self._threads.store.log.write(ref, intent)

    async def put_writes(self, address: CheckpointAddress, taken: Sequence[TaskWrite]) -> None:
        """Keep what a task wrote, with the messages in it held until a checkpoint names them."""
        assert address.id is not None
        ref = await self._threads.ref(address.owner, address.thread_id)
        cache = self._threads.caches.get(ref)
        blobs: Blobs = {}
        # Our own agent logs what it says itself: a window that it wrote and no checkpoint names is nothing new.
        rows = [
            _hold_or_refer(one.row, one.held, address, cache, blobs)
            if one.held is not None and self._keeps_turns
            else one.row
            for one in taken
        ]
        intent = PutWrites(namespace=address.namespace, id=address.id, writes=rows, blobs=blobs)
        if blocking.may_block() and not address.namespace and self._coalescer.is_stored(address, intent):
            return
        with self._writes.track(address):
            await self._write(ref, intent)

    async def recognise(
        self, address: CheckpointAddress, messages: Sequence[BaseMessage], serde: SerializerProtocol
    ) -> None:
        """Remember the objects of a checkpoint's list that another saver has handed out: while they are unchanged,
        the next checkpoint need not look into them."""
        ref = await self._threads.ref(address.owner, address.thread_id)
        cache = self._threads.caches.get(ref)
        found = await parent_of(self._threads, ref, address, serde, cache)
        refs = () if found is None else found.lists.get(HISTORY, ())
        if refs and len(refs) == len(messages):
            cache.keep_list(address.namespace, HISTORY, ListSnapshot(messages, refs))


class TaskWrite(NamedTuple):
    """A write as it was when it came, and the messages in it."""

    row: StoredWrite
    held: HeldMessages | None


def dump_writes(
    writes: Sequence[tuple[str, Any]], task_id: str, task_path: str, serde: SerializerProtocol
) -> list[TaskWrite]:
    """A task's writes as bytes, encoded at once because the caller may change the objects afterwards."""
    return [
        TaskWrite(
            StoredWrite(
                0,
                task_id,
                WRITES_IDX_MAP.get(channel, index),
                task_path,
                channel,
                *dump_channel(channel, value, serde),
                False,
            ),
            held_messages(value, serde) if channel == HISTORY else None,
        )
        for index, (channel, value) in enumerate(writes)
    ]


def _hold_or_refer(
    row: StoredWrite, held: HeldMessages, address: CheckpointAddress, cache: ThreadCache, blobs: Blobs
) -> StoredWrite:
    """A write of messages: by reference where all of them are known, else held."""
    refs = cache.known_refs(address.namespace, HISTORY, [part.message for part in held.parts])
    if None not in refs:
        return with_references(row, held, refs, blobs)
    cache.keep_held(address.namespace, address.id or "", (row.task_id, row.idx), held)
    return row._replace(is_held=True)
