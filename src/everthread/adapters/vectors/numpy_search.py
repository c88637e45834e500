"""Comparing quantised vectors with numpy, one by one: exact, and fast enough for some tens of thousands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from heapq import nlargest
from itertools import chain
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from everthread.adapters.vectors.quantised import record_bytes
from everthread.core.embeddings import VectorHit
from everthread.core.errors import Invalid, StoreDamaged

_BATCH_BYTES = 8 << 20
"""Records compared at a time, so that memory stays small however many there are."""

Chunk = tuple[str, bytes]
"""The id of a conversation, and records of it."""


def nearest(chunks: Iterable[Chunk], vector: bytes, limit: int) -> list[VectorHit]:
    """The best, best first; among equal scores the greater seq comes first."""
    query = np.frombuffer(vector, dtype="<f4")
    found = [_best_in_batch(batch, query, limit) for batch in _batches(chunks)]
    return found[0] if len(found) == 1 else nlargest(limit, chain(*found), key=attrgetter("score", "seq", "part"))


def quantise_all(vectors: Sequence[bytes], max_step: int) -> list[tuple[float, bytes]]:
    """Vectors of one dimension, each as a scale and one byte per number: how many steps of the scale it is."""
    table = np.frombuffer(b"".join(vectors), dtype="<f4").reshape(len(vectors), -1).astype(np.float64)
    scales = np.abs(table).max(axis=1) / max_step
    if not np.isfinite(scales).all():
        raise Invalid("contains NaN or infinity", field="vector")
    rounded = np.rint(table / np.where(scales, scales, 1.0)[:, None]).astype(np.int8)
    return [(scale, row.tobytes()) for scale, row in zip(scales.tolist(), rounded, strict=True)]


def _batches(chunks: Iterable[Chunk]) -> Iterator[list[Chunk]]:
    batch: list[Chunk] = []
    size = 0
    for chunk in chunks:
        batch.append(chunk)
        size += len(chunk[1])
        if size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _best_in_batch(batch: Sequence[Chunk], query: NDArray[np.float32], limit: int) -> list[VectorHit]:
    dimension = len(query)
    if any(len(records) % record_bytes(dimension) for _, records in batch):
        raise StoreDamaged("vectors do not have the dimension of their model; rebuild them with `everthread reindex`")
    layout = np.dtype([("seq", "<u4"), ("part", "<u4"), ("scale", "<f4"), ("steps", "i1", (dimension,))])
    table = np.frombuffer(b"".join(records for _, records in batch), dtype=layout)
    # einsum, because the BLAS product wakes a thread per core for what one thread does in a millisecond.
    scores = np.einsum("ij,j->i", table["steps"].astype(np.float32), query) * table["scale"]
    best = _best(scores, table["seq"], limit)
    owners = np.repeat(np.arange(len(batch)), [len(records) // layout.itemsize for _, records in batch])[best]
    columns = (table["seq"][best].tolist(), table["part"][best].tolist(), scores[best].tolist())
    return list(map(VectorHit, [batch[n][0] for n in owners], *columns))


def _best(scores: NDArray[np.float32], seqs: NDArray[np.uint32], limit: int) -> NDArray[np.intp]:
    """The indices of the best, best first. Only those are sorted."""
    chosen = np.arange(len(scores)) if limit >= len(scores) else np.argpartition(-scores, limit)[:limit]
    order = np.lexsort((-seqs[chosen].astype(np.int64), -scores[chosen]))
    return np.asarray(chosen[order], dtype=np.intp)
