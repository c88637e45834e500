"""Delete and prune checkpoints: of a thread, of a run, or all but the newest. What still waits in their writes is
logged first, and the log keeps it.

A delta channel is rebuilt from the writes of ancestors back to its last snapshot. An ancestor that a visible
checkpoint needs for that is hidden instead of removed, and removed as soon as nothing needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, cast

import ormsgpack
from langgraph.checkpoint.base import Checkpoint
from langgraph.checkpoint.serde.base import SerializerProtocol

from everthread.adapters.checkpoints.checkpoint_intents import (
    ClearCheckpoints,
    HeldKey,
    MatchedMessage,
    MatchedWrite,
    StaleDraft,
)
from everthread.adapters.checkpoints.draft import CheckpointDraft
from everthread.adapters.checkpoints.get import parent_of
from everthread.adapters.checkpoints.held_writes import held_in_row
from everthread.adapters.checkpoints.row_format import (
    DELTA_COUNTERS,
    RowBody,
    chunks_in,
    digests_in,
    refs_in,
    serde_digests_in,
    unpack_body,
    unpack_refs,
)
from everthread.adapters.checkpoints.subgraphs import SubgraphLog
from everthread.adapters.checkpoints.threads import CheckpointAddress, Threads
from everthread.core.checkpoints import (
    REFERS,
    CheckpointChanges,
    CheckpointsSeen,
    CheckpointState,
    StoredCheckpoint,
    StoredWrite,
)
from everthread.core.errors import Conflict, NotFound
from everthread.core.nouns import Ref

Key = tuple[str, str]


def drop_all(found: CheckpointsSeen) -> CheckpointChanges:
    """Remove every checkpoint, and close the epoch."""
    thread = found.thread._replace(epoch=found.thread.epoch + 1, is_closed=True, tip=0)
    return CheckpointChanges(
        thread=thread if found.all else found.thread,
        drop=[row.number for row in found.all],
        drop_blobs=found.digests,
    )


def keep_all(found: CheckpointsSeen) -> CheckpointChanges:
    """Remove none."""
    return CheckpointChanges()


def newest_only(rows: Sequence[StoredCheckpoint]) -> set[int]:
    """Keep the newest visible checkpoint of each namespace."""
    newest: dict[str, StoredCheckpoint] = {}
    for row in rows:
        kept = newest.get(row.namespace)
        if row.state == CheckpointState.VISIBLE and (kept is None or row.id > kept.id):
            newest[row.namespace] = row
    return {row.number for row in newest.values()}


def other_runs(run_ids: Sequence[str]) -> Callable[[Sequence[StoredCheckpoint]], set[int]]:
    """Keep the checkpoints that were not made by these runs."""

    def chosen(rows: Sequence[StoredCheckpoint]) -> set[int]:
        return {row.number for row in rows if row.state == CheckpointState.VISIBLE and row.run_id not in run_ids}

    return chosen


class KeepOnly:
    """Keep some checkpoints, hide what they need, remove the rest."""

    def __init__(self, chosen: Callable[[Sequence[StoredCheckpoint]], set[int]], serde: SerializerProtocol) -> None:
        self._chosen = chosen
        self._serde = serde

    def __call__(self, found: CheckpointsSeen) -> CheckpointChanges:
        chosen = self._chosen(found.all)
        by_key = {(row.namespace, row.id): row for row in found.all}
        awaited = {row.number for row in found.all if row.state == CheckpointState.AWAITED}
        needed = {row.number for row in found.all if row.number in chosen for row in self._needed(row, by_key)}
        kept = [row for row in found.all if row.number in chosen | needed | awaited]
        used = set(self._digests(kept, found))
        return CheckpointChanges(
            put=[
                row._replace(state=int(CheckpointState.HIDDEN))
                for row in kept
                if row.number not in chosen | awaited and not row.state
            ],
            drop=[row.number for row in found.all if row.number not in chosen | needed | awaited],
            drop_blobs=[digest for digest in found.digests if digest not in used],
        )

    def _needed(self, row: StoredCheckpoint, by_key: Mapping[Key, StoredCheckpoint]) -> Iterator[StoredCheckpoint]:
        """The ancestors down to those that have a value for each of its delta channels."""
        kind, packed = ormsgpack.unpackb(row.metadata) if row.metadata else ("null", b"")
        metadata: Mapping[str, Any] = self._serde.loads_typed((kind, packed)) or {}
        open_channels = set(metadata.get(DELTA_COUNTERS) or ()) - self._body(row).values.keys()
        parent = by_key.get((row.namespace, row.parent_id or ""))
        while open_channels and parent is not None:
            yield parent
            open_channels -= self._body(parent).values.keys()
            parent = by_key.get((parent.namespace, parent.parent_id or ""))

    def _body(self, row: StoredCheckpoint) -> RowBody:
        return unpack_body(row.body, self._serde) if row.body else RowBody({}, {})

    def _digests(self, rows: Sequence[StoredCheckpoint], found: CheckpointsSeen) -> Iterator[bytes]:
        """The names of all bytes that checkpoints and their writes are made of."""
        for row in rows:
            values = self._body(row).values
            yield from digests_in(values.values())
            for refs in refs_in(values, found.chunks).values():
                yield from serde_digests_in(refs)
        kept = {row.number for row in rows}
        for write in found.writes:
            if write.checkpoint in kept and write.kind == REFERS:
                elements = ormsgpack.unpackb(write.value)[1]
                yield from chunks_in(elements)
                yield from serde_digests_in(unpack_refs(elements, found.chunks))
        yield from (inner for body in found.chunks.values() for inner in chunks_in(ormsgpack.unpackb(body)))


_MAX_TRIES = 10


class CheckpointRemover:
    """Removes checkpoints from threads."""

    def __init__(self, threads: Threads) -> None:
        self._threads = threads

    async def delete(self, owner: str, thread_id: str, serde: SerializerProtocol) -> None:
        """Remove a thread's checkpoints, and close its epoch; the log is kept, or erased."""
        ref = await self._threads.ref(owner, thread_id)
        if self._threads.erases:
            await self._threads.erase(ref)
        else:
            await self._clear(ref, drop_all, serde)
        self._threads.caches.drop(ref)

    async def prune(self, owner: str, thread_id: str, strategy: str, serde: SerializerProtocol) -> None:
        """Keep the newest checkpoint of each namespace, or none."""
        ref = await self._threads.ref(owner, thread_id)
        keep = KeepOnly(newest_only, serde) if strategy == "keep_latest" else drop_all
        await self._clear(ref, keep, serde)
        self._threads.caches.drop(ref)

    async def delete_runs(self, owner: str, run_ids: Sequence[str], serde: SerializerProtocol) -> None:
        """Remove the checkpoints of some runs."""
        for ref in await self._threads.store.checkpoints.conversations(owner, run_ids=run_ids):
            await self._clear(ref, KeepOnly(other_runs(run_ids), serde), serde)
            self._threads.caches.drop(ref)

    async def log_held(
        self, serde: SerializerProtocol, thread: Ref | None = None, *, besides: Collection[str | None] = ()
    ) -> None:
        """Log what a crash left held in writes, of one thread or of all, except those on some checkpoints."""
        for ref in (
            [thread] if thread is not None else await self._threads.store.checkpoints.conversations(None, run_ids=None)
        ):
            await self._clear(ref, keep_all, serde, besides)

    async def _clear(
        self,
        ref: Ref,
        remove: Callable[[CheckpointsSeen], CheckpointChanges],
        serde: SerializerProtocol,
        besides: Collection[str | None] = (),
    ) -> None:
        matched: dict[HeldKey, MatchedWrite] = {}
        for _ in range(_MAX_TRIES):
            try:
                await self._threads.store.log.write(
                    ref, ClearCheckpoints(matched=matched, remove=remove, besides=besides)
                )
            except StaleDraft as problem:
                for write in problem.writes:
                    key = (write.checkpoint, write.task_id, write.idx)
                    matched[key] = await self._match_unlisted(ref, problem.rows[write.checkpoint], write, serde)
            except NotFound:  # nothing was ever put there
                return
            else:
                return
        raise Conflict(f"thread {ref.id!r} kept changing meanwhile; nothing was removed: try again")

    async def _match_unlisted(
        self, ref: Ref, row: StoredCheckpoint, write: StoredWrite, serde: SerializerProtocol
    ) -> MatchedWrite:
        """Match a write whose messages no list will name. Those of a subgraph are logged in its own conversation
        first."""
        held = held_in_row(write, serde)
        address = CheckpointAddress(ref.owner, ref.id, row.namespace, row.id)
        checkpoint = cast(Checkpoint, {"id": row.id, "channel_values": {}, "channel_versions": {}})
        parent = await parent_of(self._threads, ref, address, serde, self._threads.caches.get(ref))
        draft = CheckpointDraft(address, checkpoint, serde, self._threads.caches.get(ref), parent)
        key = (write.task_id, write.idx)
        if row.namespace:
            await SubgraphLog(self._threads.et, ref, draft).log_new([write], {key: held})
            return MatchedWrite(held, [MatchedMessage(part, None, None) for part in held.parts])
        return draft.match_writes({key: held}, (), [])[key]
