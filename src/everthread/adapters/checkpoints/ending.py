"""The end of checkpoints: of a thread, of a run, or of all but the newest. What still waits in their writes is logged
first, and the log keeps it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import cast

from langgraph.checkpoint.base import Checkpoint
from langgraph.checkpoint.serde.base import SerializerProtocol

from everthread.adapters.checkpoints import pruning
from everthread.adapters.checkpoints.children import Children
from everthread.adapters.checkpoints.drafting import Draft
from everthread.adapters.checkpoints.holding import held_in
from everthread.adapters.checkpoints.putting import Awaited, Unprepared, Waiting
from everthread.adapters.checkpoints.spots import Spot
from everthread.adapters.checkpoints.threads import Threads
from everthread.adapters.checkpoints.writing import Clear, HeldKey
from everthread.core.checkpoints import CheckpointChanges, CheckpointsSeen, StoredCheckpoint, StoredWrite
from everthread.core.errors import Conflict, NotFound
from everthread.core.nouns import Ref

_MOST_TRIES = 10


class Ending:
    """Removes checkpoints from threads."""

    def __init__(self, threads: Threads) -> None:
        self._threads = threads

    async def delete(self, owner: str, thread_id: str, serde: SerializerProtocol) -> None:
        """Remove a thread's checkpoints, and close its epoch; the log is kept, or erased."""
        ref = await self._threads.ref(owner, thread_id)
        if self._threads.erases:
            await self._threads.erase(ref)
        else:
            await self._clear(ref, pruning.drop_all, serde)
        self._threads.memories.forget(ref)

    async def prune(self, owner: str, thread_id: str, strategy: str, serde: SerializerProtocol) -> None:
        """Keep the newest checkpoint of each namespace, or none."""
        ref = await self._threads.ref(owner, thread_id)
        keep = pruning.Keep(pruning.newest_only, serde) if strategy == "keep_latest" else pruning.drop_all
        await self._clear(ref, keep, serde)
        self._threads.memories.forget(ref)

    async def delete_runs(self, owner: str, run_ids: Sequence[str], serde: SerializerProtocol) -> None:
        """Remove the checkpoints of some runs."""
        for ref in await self._threads.store.checkpoints.conversations(owner, run_ids=run_ids):
            await self._clear(ref, pruning.Keep(pruning.other_runs(run_ids), serde), serde)
            self._threads.memories.forget(ref)

    async def settle(
        self, serde: SerializerProtocol, thread: Ref | None = None, *, besides: Collection[str | None] = ()
    ) -> None:
        """Log what a crash left waiting in writes, of one thread or of all, but for those on some checkpoints."""
        for ref in (
            [thread] if thread is not None else await self._threads.store.checkpoints.conversations(None, run_ids=None)
        ):
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
                await self._threads.store.log.write(ref, Clear(waiting=waiting, remove=remove, besides=besides))
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
        held = held_in(write, serde)
        spot = Spot(ref.owner, ref.id, row.namespace, row.id)
        checkpoint = cast(Checkpoint, {"id": row.id, "channel_values": {}, "channel_versions": {}})
        parent = await self._threads.parent(ref, spot, serde, self._threads.memories.of(ref))
        draft = Draft(spot, checkpoint, serde, self._threads.memories.of(ref), parent)
        key = (write.task_id, write.idx)
        if row.namespace:
            await Children(self._threads.et, ref, draft).follow([write], {key: held})
            return Waiting(held, [Awaited(part, None, None) for part in held.parts])
        return draft.waiting({key: held}, (), [])[key]
