"""The way out: checkpoints as LangGraph reads them, one, many, or what a delta channel is rebuilt from."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from langgraph.checkpoint.base import Checkpoint, CheckpointTuple, DeltaChannelHistory
from langgraph.checkpoint.serde.base import SerializerProtocol

from everthread.adapters.checkpoints.deltas import DeltaWalk
from everthread.adapters.checkpoints.reading import Loader
from everthread.adapters.checkpoints.spots import Spot
from everthread.adapters.checkpoints.threads import Threads
from everthread.core.checkpoints import CheckpointQuery, CheckpointState, Listed, Saved
from everthread.core.nouns import Ref

_PAGE = 100
_SUPERSTEPS = 500
"""How many ancestors are read at once to rebuild a delta channel."""


class Showing:
    """Reads threads."""

    def __init__(self, threads: Threads) -> None:
        self._threads = threads

    async def get(self, spot: Spot, serde: SerializerProtocol) -> CheckpointTuple | None:
        """A checkpoint, or the newest."""
        ref = await self._threads.ref(spot.owner, spot.thread_id)
        saved = await self._threads.store.checkpoints.get(ref, spot.namespace, spot.id)
        if saved is None or saved.row.state != CheckpointState.VISIBLE:
            return None
        return await self._tuple(ref, spot, saved, serde)

    async def _tuple(self, ref: Ref, spot: Spot, saved: Saved, serde: SerializerProtocol) -> CheckpointTuple:
        memory = self._threads.memories.of(ref, saved.thread.erasures)
        loaded = await Loader(self._threads.store, ref, serde, memory).load(saved)
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
            ref = await self._threads.ref(query.owner, query.conversation)
            query = replace(query, conversation=ref.id)
        left = limit
        while left is None or left > 0:
            size = _PAGE if left is None or matches else min(_PAGE, left)
            page = await self._threads.store.checkpoints.list(replace(query, limit=size))
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
        metadata = Loader(self._threads.store, ref, serde, self._threads.memories.of(ref)).metadata(listed.saved)
        return all(metadata.get(key) == value for key, value in matches.items())

    async def _listed(self, listed: Listed, owner: str, serde: SerializerProtocol) -> CheckpointTuple:
        ref = Ref(owner, listed.conversation_id)
        spot = Spot(owner, self._threads.thread_id(ref), listed.saved.row.namespace, None)
        return await self._tuple(ref, spot, listed.saved, serde)

    async def delta_history(
        self, spot: Spot, channels: Sequence[str], serde: SerializerProtocol
    ) -> Mapping[str, DeltaChannelHistory]:
        """What each delta channel is rebuilt from: the writes of ancestors, back to its last snapshot."""
        ref = await self._threads.ref(spot.owner, spot.thread_id)
        saved = await self._threads.store.checkpoints.get(ref, spot.namespace, spot.id)
        walk = DeltaWalk(channels)
        id = None if saved is None else saved.row.parent_id
        while id is not None and walk.open:
            chain = await self._threads.store.checkpoints.ancestors(ref, spot.namespace, id, limit=_SUPERSTEPS)
            await self._walk(ref, [one for one in chain if one.row.state != CheckpointState.AWAITED], walk, serde)
            id = chain[-1].row.parent_id if len(chain) == _SUPERSTEPS else None
        return walk.histories()

    async def _walk(self, ref: Ref, chain: Sequence[Saved], walk: DeltaWalk, serde: SerializerProtocol) -> None:
        for ancestor in chain:
            if not walk.open:
                return
            loader = Loader(self._threads.store, ref, serde, self._threads.memories.of(ref, ancestor.thread.erasures))
            walk.take(await loader.load_some(ancestor, walk.open))
