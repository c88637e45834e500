"""Vectors for databases that cannot compare them: records of a seq, a part, a scale and one byte per number.

That takes a quarter of the space, and changes a cosine by less than 0.005 (a test measures it). Records lie one after
the other in a BLOB, so that a search reads few rows; a single record is found by walking over its few neighbours.

numpy is an extra: `numpy_search` is imported when there is something to compare. Without it vectors can be written but
not searched.
"""

from __future__ import annotations

import struct
import sys
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from math import isfinite

from everthread.core.embeddings import VectorHit, VectorPart
from everthread.core.errors import Invalid, MissingExtra, StoreDamaged

HEADER = struct.Struct("<IIf")
MAX_STEP = 127

RecordKey = tuple[int, int]
"""Seq and part."""


def floats(vector: bytes) -> array[float]:
    """The numbers of a vector."""
    numbers = array("f", vector)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


def quantise(seq: int, part: int, vector: bytes) -> bytes:
    """The record of a vector."""
    numbers = floats(vector)
    if not isfinite(sum(numbers)):
        raise Invalid("contains NaN or infinity", field="vector")
    scale = max(map(abs, numbers)) / MAX_STEP
    steps = array("b", [round(number / scale) for number in numbers] if scale else [0] * len(numbers))
    return HEADER.pack(seq, part, scale) + steps.tobytes()


def quantise_all(parts: Sequence[VectorPart]) -> dict[RecordKey, bytes]:
    """The records of vectors of one dimension. numpy, if installed, rounds them all at once: one by one they would
    block the event loop for longer than a static model takes to embed them."""
    if not parts or find_spec("numpy") is None:
        return {(part.seq, part.part): quantise(*part) for part in parts}
    from everthread.adapters.vectors import numpy_search  # noqa: PLC0415 - an extra

    rounded = numpy_search.quantise_all([part.vector for part in parts], MAX_STEP)
    return {
        (part.seq, part.part): HEADER.pack(part.seq, part.part, scale) + steps
        for part, (scale, steps) in zip(parts, rounded, strict=True)
    }


def dequantise(record: bytes) -> list[float]:
    """The numbers of a record, nearly what they were."""
    scale: float = HEADER.unpack_from(record)[2]
    return [step * scale for step in array("b", record[HEADER.size :])]


def record_bytes(dimension: int) -> int:
    """The length of a record."""
    return HEADER.size + dimension


def split_records(blob: bytes, dimension: int) -> Iterator[tuple[RecordKey, bytes]]:
    """The records of a BLOB."""
    size = record_bytes(dimension)
    if len(blob) % size:
        raise StoreDamaged("vectors do not have the dimension of their model; rebuild them with `everthread reindex`")
    for start in range(0, len(blob), size):
        record = blob[start : start + size]
        seq, part, _ = HEADER.unpack_from(record)
        yield (seq, part), record


def merge_records(blob: bytes, dimension: int, new: Mapping[RecordKey, bytes]) -> bytes:
    """The BLOB with these records added or replaced, in order."""
    return b"".join(record for _, record in sorted({**dict(split_records(blob, dimension)), **new}.items()))


def remove_records(blob: bytes, dimension: int, seqs: Iterable[int]) -> bytes:
    """The BLOB without the records of some entries."""
    gone = frozenset(seqs)
    return b"".join(record for (seq, _), record in split_records(blob, dimension) if seq not in gone)


def nearest(chunks: Iterable[tuple[str, bytes]], vector: bytes, limit: int) -> list[VectorHit]:
    """The records nearest to a vector, best first; see `numpy_search.nearest`."""
    try:
        from everthread.adapters.vectors import numpy_search  # noqa: PLC0415 - an extra
    except ImportError as problem:
        raise MissingExtra("search by meaning needs an extra: pip install 'everthread[meaning]'") from problem
    return numpy_search.nearest(chunks, vector, limit)
