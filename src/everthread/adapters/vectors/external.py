"""Vectors outside the log's database, held to the same promise: nothing is left of what was erased.

No transaction spans both, so the order of steps must do it. After a write we look again: if the conversation or the
entry was erased meanwhile, the vector is removed. An erase that could not reach the vectors is completed by the next
process that can: once, in the background, it deletes whatever the database says was erased.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress

from everthread.core.embeddings import IndexProgress, VectorHit, VectorPart, Vectors
from everthread.core.errors import NotFound
from everthread.core.nouns import Ref
from everthread.core.ports import Store

_BATCH = 500


class ExternalVectors:
    """Vectors kept elsewhere, of a store's conversations."""

    def __init__(self, inner: Vectors, store: Store) -> None:
        self._inner = inner
        self._store = store
        self._catching_up: asyncio.Task[None] | None = None

    @property
    def about(self) -> str:
        return self._inner.about

    async def put(self, ref: Ref, model: str, parts: Sequence[VectorPart]) -> None:
        gone = await self._erased(ref, parts)
        self._start_catching_up()
        await self._inner.put(ref, model, [part for part in parts if part.seq not in gone])
        try:
            late = await self._erased(ref, parts)
        except NotFound:
            await self._inner.forget(*ref)
            raise
        if late - gone:
            await self._inner.forget(*ref, seqs=sorted(late))

    async def near(
        self, owner: str, conversation: str | None, model: str, vector: bytes, limit: int
    ) -> Sequence[VectorHit]:
        self._start_catching_up()
        return await self._inner.near(owner, conversation, model, vector, limit)

    async def forget(
        self,
        owner: str,
        conversation: str | None = None,
        *,
        seqs: Sequence[int] | None = None,
        model: str | None = None,
    ) -> int:
        return await self._inner.forget(owner, conversation, seqs=seqs, model=model)

    async def indexed(self, ref: Ref) -> Mapping[str, IndexProgress]:
        return await self._inner.indexed(ref) if await self._exists(ref) else {}

    async def models(self) -> Mapping[str, int]:
        return await self._inner.models()

    async def close(self) -> None:
        if self._catching_up is not None:
            self._catching_up.cancel()
            await asyncio.gather(self._catching_up, return_exceptions=True)
            self._catching_up = None
        await self._inner.close()

    async def _erased(self, ref: Ref, parts: Sequence[VectorPart]) -> set[int]:
        """Which of these entries were erased; NotFound if the whole conversation was."""
        await self._store.conversations.get(ref)
        seqs = sorted({part.seq for part in parts})
        found = [
            entry
            for start in range(0, len(seqs), _BATCH)
            for entry in await self._store.log.find(ref, seqs=seqs[start : start + _BATCH])
        ]
        return {entry.seq for entry in found if entry.is_erased}

    async def catch_up(self) -> None:
        """Wait until what was erased earlier is deleted here too."""
        self._start_catching_up()
        if self._catching_up is not None:
            await self._catching_up

    def _start_catching_up(self) -> None:
        """Once per process, or again if it failed: delete what was erased while these vectors were unreachable."""
        if self._catching_up is None or (self._catching_up.done() and self._catching_up.exception() is not None):
            self._catching_up = asyncio.get_running_loop().create_task(self._forget_all_erased())

    async def _forget_all_erased(self) -> None:
        gone: dict[Ref, None] = {}
        for owner, conversation, message, _ in await self._store.maintenance.erasures():
            if message is not None and conversation is not None:
                await self._forget_message(Ref(owner, conversation), message)
            elif conversation is not None:
                gone[Ref(owner, conversation)] = None
            else:
                gone.update(dict.fromkeys(await self._erased_of(owner)))
        for ref in gone:
            await self._inner.forget(*ref)

    async def _forget_message(self, ref: Ref, message: str) -> None:
        with suppress(NotFound):  # the whole conversation was erased later
            seqs = [entry.seq for entry in await self._store.log.find(ref, ids=[message])]
            await self._inner.forget(*ref, seqs=seqs)

    async def _erased_of(self, owner: str) -> list[Ref]:
        """The erased conversations of an erased owner, who may have started again since."""
        refs = [Ref(info.owner, info.id) for info in await self._store.maintenance.heads() if info.owner == owner]
        return [ref for ref in refs if not await self._exists(ref)]

    async def _exists(self, ref: Ref) -> bool:
        try:
            await self._store.conversations.get(ref)
        except NotFound:
            return False
        return True
