"""Copy a thread: its log transcribed, and its checkpoints referring to the transcript."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import ormsgpack
from langgraph.checkpoint.serde.base import SerializerProtocol

from everthread.adapters.checkpoints.get import CheckpointLoader
from everthread.adapters.checkpoints.row_format import (
    DELTA,
    Blobs,
    LogRef,
    MessageRef,
    RowBody,
    UnloggedRef,
    pack_blob,
    pack_body,
    pack_list,
    pack_refs,
    refs_in,
    unpack_body,
    unpack_refs,
)
from everthread.adapters.checkpoints.stored_message import SerdeBytes, StoredMessage
from everthread.adapters.checkpoints.threads import Threads
from everthread.core import nouns
from everthread.core.checkpoints import (
    REFERS,
    CheckpointChanges,
    CheckpointNeeds,
    CheckpointsSeen,
    StoredCheckpoint,
    StoredWrite,
)
from everthread.core.errors import Conflict
from everthread.core.log import Decision, IntentInputs, Needs
from everthread.history import read
from everthread.history.intents import renumbered


@dataclass(frozen=True, slots=True, kw_only=True)
class PutCopiedCheckpoints:
    """All checkpoints of a thread at once, into one that has none."""

    changes: CheckpointChanges

    def needs(self) -> Needs:
        return Needs(checkpoints=CheckpointNeeds(everything=True))

    def decide(self, seen: IntentInputs, now: int) -> Decision[None]:
        assert seen.checkpoints is not None
        if seen.checkpoints.all:
            raise Conflict(f"thread {seen.head.id!r} has checkpoints already; copy to a new one")
        return Decision(result=None, checkpoints=self.changes)


class ThreadCopier:
    """Copies threads."""

    def __init__(self, threads: Threads) -> None:
        self._threads = threads

    async def copy(self, owner: str, source: str, target: str, serde: SerializerProtocol) -> None:
        """A thread with a log and checkpoints of its own; nothing when the source does not exist."""
        ref = await self._threads.ref(owner, source)
        goal = await self._threads.ref(owner, target)
        found = await self._threads.store.checkpoints.all(ref)
        if not found.all:
            return
        moved = await self._transcribed(ref, goal)
        cache = self._threads.caches.get(ref, found.thread.erasures)
        blobs = await CheckpointLoader(self._threads.store, ref, serde, cache).load_all_messages(found)
        await self._threads.store.log.write(
            goal, PutCopiedCheckpoints(changes=CheckpointRewriter(moved, cache.stored, blobs, serde).changes(found))
        )

    async def _transcribed(self, ref: nouns.Ref, goal: nouns.Ref) -> dict[int, int]:
        """Copy the log; returns where each entry went. A copy that a crash interrupted is continued."""
        conversation = await self._threads.et.conversations.get(ref.id, ref.owner)
        try:
            await conversation.copy(id=goal.id)
        except Conflict:
            if await self._threads.store.checkpoints.get(goal, "", None) is not None:
                raise
        entries = [entry async for entry in read.log(self._threads.store.log, ref)]
        return {entry.seq: index for index, entry in enumerate(renumbered(entries), 1)}


class CheckpointRewriter:
    """Rewrites references: to where the transcript has an entry, or to bytes where only another log has it."""

    def __init__(
        self,
        moved: Mapping[int, int],
        stored: Mapping[MessageRef, StoredMessage],
        blobs: Mapping[bytes, bytes],
        serde: SerializerProtocol,
    ) -> None:
        self._moved = moved
        self._stored = stored
        self._serde = serde
        self._source = blobs
        self._blobs: Blobs = dict(blobs)

    def changes(self, found: CheckpointsSeen) -> CheckpointChanges:
        """The rows of the copy."""
        return CheckpointChanges(
            thread=found.thread._replace(epoch=0, erasures=0),
            put=[self._row(row) for row in found.all],
            writes=[self._write(write) for write in found.writes],
            blobs=self._blobs,
        )

    def _row(self, row: StoredCheckpoint) -> StoredCheckpoint:
        if not row.body:
            return row
        body = unpack_body(row.body, self._serde)
        lists = {
            channel: pack_list(self._refs(refs), body.values[channel][0] == DELTA, self._blobs)
            for channel, refs in refs_in(body.values, self._source).items()
        }
        packed = pack_body(RowBody(body.checkpoint, {**body.values, **lists}), self._serde)
        return row._replace(body=packed, leaf_seq=self._moved.get(row.leaf_seq, 0))

    def _write(self, write: StoredWrite) -> StoredWrite:
        if write.kind != REFERS:
            return write
        shape, elements = ormsgpack.unpackb(write.value)
        refs = self._refs(unpack_refs(elements, self._source))
        return write._replace(value=ormsgpack.packb([shape, pack_refs(refs, self._blobs)]))

    def _refs(self, refs: Sequence[MessageRef]) -> list[MessageRef]:
        found = (self._ref(ref) for ref in refs)
        return [ref for ref in found if ref is not None]

    def _ref(self, ref: MessageRef) -> MessageRef | None:
        """The reference in the copy; None for an erased message."""
        if isinstance(ref, int):
            return self._moved.get(ref)
        if isinstance(ref, UnloggedRef):
            return ref
        if ref.home is None:
            seq = self._moved.get(ref.seq)
            return None if seq is None else ref._replace(seq=seq)
        return self._loosened(ref)

    def _loosened(self, ref: LogRef) -> MessageRef | None:
        """Keep a subgraph's message as bytes: the conversation that has it belongs to the source, and may be erased
        with it."""
        stored = self._stored.get(ref)
        if stored is None:
            return None
        stored_bytes = (
            stored
            if isinstance(stored, SerdeBytes)
            else SerdeBytes(*self._serde.dumps_typed(stored.build(self._serde)))
        )
        return UnloggedRef(pack_blob(*stored_bytes, self._blobs))
