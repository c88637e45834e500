"""A saver's threads: which conversation each of them is, and what is remembered of it.

What a saver does to them is in `saving`, `showing`, `ending` and `copying`.
"""

from __future__ import annotations

from langgraph.checkpoint.serde.base import SerializerProtocol

from everthread.adapters.checkpoints.reading import Loader
from everthread.adapters.checkpoints.remembering import Memories, Memory, Remembered
from everthread.adapters.checkpoints.spots import Spot
from everthread.core.checkpoints import CheckpointState
from everthread.core.errors import NotFound
from everthread.core.nouns import Ref
from everthread.instance import Everthread


class Threads:
    """The threads of all owners in one database, as the verbs of one saver share them."""

    def __init__(self, et: Everthread, on_delete: str) -> None:
        self.et = et
        self.store = et.store
        self.memories = Memories()
        self.erases = on_delete == "erase"
        """Whether a thread that is deleted takes its log along."""
        self._erased: set[Ref] | None = None
        self._thread_ids: dict[Ref, str] = {}
        """Which thread a conversation is of, where that has another name."""

    async def ref(self, owner: str, thread_id: str) -> Ref:
        """The conversation of a thread. An erased one is never written to again: the next epoch is another."""
        ref = Ref(owner, thread_id)
        if not self.erases:
            return ref
        if self._erased is None:
            self._erased = {
                Ref(row[0], row[1]) for row in await self.store.maintenance.erasures() if row[1] and not row[2]
            }
        epoch = 1
        while ref in self._erased:
            epoch += 1
            ref = Ref(owner, f"{thread_id}~{epoch}")
        self._thread_ids[ref] = thread_id
        return ref

    def thread_id(self, ref: Ref) -> str:
        """The thread that a conversation is of."""
        return self._thread_ids.get(ref, ref.id)

    async def erase(self, ref: Ref) -> None:
        """Erase a thread's conversation, if it has one."""
        try:
            await self.et.erase(owner=ref.owner, conversation=ref.id)
        except NotFound:  # nothing was ever put there
            return
        self._erased = None

    async def parent(self, ref: Ref, spot: Spot, serde: SerializerProtocol, memory: Memory) -> Remembered | None:
        """What a checkpoint carries over from the one that it is put upon."""
        if spot.id is None:
            return None
        known = memory.checkpoints.get((spot.namespace, spot.id))
        if known is not None:
            return known
        saved = await self.store.checkpoints.get(ref, spot.namespace, spot.id)
        if saved is None or saved.row.state == CheckpointState.AWAITED:
            return None
        return await Loader(self.store, ref, serde, memory).remember(saved)
