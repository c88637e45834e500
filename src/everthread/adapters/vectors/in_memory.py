"""Vectors in memory, beside the store in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from everthread.adapters.vectors import quantised
from everthread.adapters.vectors.quantised import RecordKey, nearest
from everthread.core.embeddings import (
    IndexProgress,
    VectorHit,
    VectorPart,
    check_dimension,
    dimension_of,
    same_dimension,
)
from everthread.core.nouns import Ref

Records = dict[tuple[Ref, str], dict[RecordKey, bytes]]


class InMemoryVectors:
    """The vectors of one store; `gone` tells which entries were erased, and raises NotFound for what is not there."""

    about = "in memory, compared by numpy"

    def __init__(self, gone: Callable[[Ref], frozenset[int]]) -> None:
        self._gone = gone
        self._kept: Records = {}
        self._dimensions: dict[str, int] = {}

    async def put(self, ref: Ref, model: str, parts: Sequence[VectorPart]) -> None:
        dimension = same_dimension(part.vector for part in parts)
        if dimension is None:
            return
        gone = self._gone(ref)
        check_dimension(dimension, self._dimensions.setdefault(model, dimension), model)
        new = quantised.quantise_all([part for part in parts if part.seq not in gone])
        self._kept.setdefault((ref, model), {}).update(new)

    async def near(
        self, owner: str, conversation: str | None, model: str, vector: bytes, limit: int
    ) -> Sequence[VectorHit]:
        if model not in self._dimensions or limit < 1:
            return []
        check_dimension(dimension_of(vector), self._dimensions[model], model)
        meant = self._records_of(owner, conversation, model)
        return nearest([(ref.id, b"".join(kept.values())) for (ref, _), kept in meant.items()], vector, limit)

    async def forget(
        self,
        owner: str,
        conversation: str | None = None,
        *,
        seqs: Sequence[int] | None = None,
        model: str | None = None,
    ) -> int:
        return self.forget_now(owner, conversation, seqs=seqs, model=model)

    def forget_now(
        self, owner: str, conversation: str | None, *, seqs: Sequence[int] | None = None, model: str | None = None
    ) -> int:
        """The same without waiting, for an erase."""
        gone = 0
        for key, kept in self._records_of(owner, conversation, model).items():
            left = {} if seqs is None else {key: row for key, row in kept.items() if key[0] not in seqs}
            gone += len(kept) - len(left)
            if left:
                self._kept[key] = left
            else:
                del self._kept[key]
        return gone

    async def indexed(self, ref: Ref) -> Mapping[str, IndexProgress]:
        return {
            model: IndexProgress(len(kept), max(seq for seq, _ in kept))
            for (_, model), kept in self._records_of(ref.owner, ref.id, None).items()
            if kept
        }

    async def models(self) -> Mapping[str, int]:
        counts = {model: 0 for _, model in self._kept}
        for (_, model), kept in self._kept.items():
            counts[model] += len(kept)
        return counts

    async def close(self) -> None:
        """There is nothing to let go of."""

    def _records_of(self, owner: str, conversation: str | None, model: str | None) -> Records:
        return {
            (ref, name): kept
            for (ref, name), kept in self._kept.items()
            if ref.owner == owner and conversation in (None, ref.id) and model in (None, name)
        }
