"""Comparing vectors with numpy, one after the other: exact, and quick up to some ten thousands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from heapq import nlargest
from itertools import chain
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from everthread.adapters.vectors.records import size_of
from everthread.core.errors import Invalid, StoreDamaged
from everthread.core.meaning import Near

_BATCH_BYTES = 8 << 20
"""Records are compared so many bytes at a time, so that memory stays small however many there are."""

Chunk = tuple[str, bytes]
"""The id of a conversation, and records of it."""


def nearest(chunks: Iterable[Chunk], vector: bytes, limit: int) -> list[Near]:
    """The best, best first; of equals those with the greater seq."""
    asked = np.frombuffer(vector, dtype="<f4")
    found = [_best_of(batch, asked, limit) for batch in _batches(chunks)]
    return found[0] if len(found) == 1 else nlargest(limit, chain(*found), key=attrgetter("score", "seq", "part"))


def steps(vectors: Sequence[bytes], most: int) -> list[tuple[float, bytes]]:
    """Vectors of one dimension, each as a scale and one byte a number that has at most so many steps of it."""
    table = np.frombuffer(b"".join(vectors), dtype="<f4").reshape(len(vectors), -1).astype(np.float64)
    scales = np.abs(table).max(axis=1) / most
    if not np.isfinite(scales).all():
        raise Invalid("has a number that is none, or has no end", field="vector")
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


def _best_of(batch: Sequence[Chunk], asked: NDArray[np.float32], limit: int) -> list[Near]:
    table = _table([body for _, body in batch], len(asked))
    # einsum, because the product of BLAS wakes a thread per core for what one does in a millisecond
    scores = np.einsum("ij,j->i", table["steps"].astype(np.float32), asked) * table["scale"]
    best = _best(scores, table["seq"], limit)
    whose = np.repeat(np.arange(len(batch)), [len(body) // table.dtype.itemsize for _, body in batch])[best]
    columns = (table["seq"][best].tolist(), table["part"][best].tolist(), scores[best].tolist())
    return list(map(Near, [batch[n][0] for n in whose], *columns))


def _table(bodies: Sequence[bytes], dimension: int) -> NDArray[np.void]:
    body = b"".join(bodies)
    if any(len(one) % size_of(dimension) for one in bodies):
        raise StoreDamaged("vectors do not have the dimension of their model: `everthread reindex` makes them anew")
    layout = np.dtype([("seq", "<u4"), ("part", "<u4"), ("scale", "<f4"), ("steps", "i1", (dimension,))])
    return np.frombuffer(body, dtype=layout)


def _best(scores: NDArray[np.float32], seqs: NDArray[np.uint32], limit: int) -> NDArray[np.intp]:
    """Where the best stand, best first; only those are put in order."""
    chosen = np.arange(len(scores)) if limit >= len(scores) else np.argpartition(-scores, limit)[:limit]
    order = np.lexsort((-seqs[chosen].astype(np.int64), -scores[chosen]))
    return np.asarray(chosen[order], dtype=np.intp)
