"""Vectors outside of the log's database, held to the same promise: nothing is left of what was erased.

There is no transaction over both, so it is a matter of order. What is put is looked at again afterwards: was its
conversation or its entry erased meanwhile, it is taken back. An erase that cannot reach them is made good by the next
process that can: in the background it forgets, once, whatever the database says was erased.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress

from everthread.core.errors import NotFound
from everthread.core.meaning import Indexed, Near, Part, Vectors
from everthread.core.nouns import Ref
from everthread.core.ports import Store

_ALL_AT_ONCE = 500


class OutsideVectors:
    """Vectors kept elsewhere, about a store's conversations."""

    def __init__(self, inner: Vectors, store: Store) -> None:
        self._inner = inner
        self._store = store
        self._settling: asyncio.Task[None] | None = None

    @property
    def about(self) -> str:
        return self._inner.about

    async def put(self, ref: Ref, model: str, parts: Sequence[Part]) -> None:
        gone = await self._erased(ref, parts)
        self._settle()
        await self._inner.put(ref, model, [part for part in parts if part.seq not in gone])
        try:
            late = await self._erased(ref, parts)
        except NotFound:
            await self._inner.forget(*ref)
            raise
        if late - gone:
            await self._inner.forget(*ref, seqs=sorted(late))

    async def near(self, owner: str, conversation: str | None, model: str, vector: bytes, limit: int) -> Sequence[Near]:
        self._settle()
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

    async def indexed(self, ref: Ref) -> Mapping[str, Indexed]:
        return await self._inner.indexed(ref) if await self._is_living(ref) else {}

    async def models(self) -> Mapping[str, int]:
        return await self._inner.models()

    async def close(self) -> None:
        if self._settling is not None:
            self._settling.cancel()
            await asyncio.gather(self._settling, return_exceptions=True)
            self._settling = None
        await self._inner.close()

    async def _erased(self, ref: Ref, parts: Sequence[Part]) -> set[int]:
        """Which of these entries were erased; NotFound when the whole conversation was."""
        await self._store.get(ref)
        seqs = sorted({part.seq for part in parts})
        found = [
            entry
            for start in range(0, len(seqs), _ALL_AT_ONCE)
            for entry in await self._store.find(ref, seqs=seqs[start : start + _ALL_AT_ONCE])
        ]
        return {entry.seq for entry in found if entry.is_erased}

    async def settled(self) -> None:
        """Wait until what was erased earlier is forgotten here too."""
        self._settle()
        if self._settling is not None:
            await self._settling

    def _settle(self) -> None:
        """Once a process, or again where it failed: forget what was erased while these could not be reached."""
        if self._settling is None or (self._settling.done() and self._settling.exception() is not None):
            self._settling = asyncio.get_running_loop().create_task(self._forget_all_erased())

    async def _forget_all_erased(self) -> None:
        gone: dict[Ref, None] = {}
        for owner, conversation, message, _ in await self._store.erasures():
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
            seqs = [entry.seq for entry in await self._store.find(ref, ids=[message])]
            await self._inner.forget(*ref, seqs=seqs)

    async def _erased_of(self, owner: str) -> list[Ref]:
        """An owner of whom everything was erased may have begun anew: only what is gone is forgotten."""
        refs = [Ref(info.owner, info.id) for info in await self._store.heads() if info.owner == owner]
        return [ref for ref in refs if not await self._is_living(ref)]

    async def _is_living(self, ref: Ref) -> bool:
        try:
            await self._store.get(ref)
        except NotFound:
            return False
        return True
