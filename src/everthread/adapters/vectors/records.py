"""Vectors as databases keep them that cannot compare them: records, each a seq, a part, a scale and one byte a number.

That is a quarter of the room, and moves a cosine by less than 0.005 (a test measures it). Records lie one after the
other in a BLOB, so that a search reads few rows, and one is found by walking over the few beside it.
"""

from __future__ import annotations

import struct
import sys
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import isfinite

from everthread.adapters.vectors import numpy_extra
from everthread.core.errors import Invalid, StoreDamaged
from everthread.core.meaning import Part

HEAD = struct.Struct("<IIf")
STEPS = 127

Place = tuple[int, int]
"""Seq and part."""


def floats(vector: bytes) -> array[float]:
    """The numbers of a vector."""
    numbers = array("f", vector)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


def records_of(parts: Sequence[Part]) -> dict[Place, bytes]:
    """The records of vectors of one dimension. Where numpy is here, it rounds them all at once: one after the other
    they would keep the event loop for longer than it takes to embed them by a static model."""
    found = numpy_extra.steps([part.vector for part in parts], STEPS) if parts else ()
    if found is None:
        return {(part.seq, part.part): record(*part) for part in parts}
    both = zip(parts, found, strict=True)
    return {(part.seq, part.part): HEAD.pack(part.seq, part.part, scale) + steps for part, (scale, steps) in both}


def record(seq: int, part: int, vector: bytes) -> bytes:
    """A vector, rounded."""
    numbers = floats(vector)
    if not isfinite(sum(numbers)):
        raise Invalid("has a number that is none, or has no end", field="vector")
    scale = max(map(abs, numbers)) / STEPS
    steps = array("b", [round(number / scale) for number in numbers] if scale else [0] * len(numbers))
    return HEAD.pack(seq, part, scale) + steps.tobytes()


def numbers(record: bytes) -> list[float]:
    """The numbers of a record, nearly what they were."""
    scale: float = HEAD.unpack_from(record)[2]
    return [step * scale for step in array("b", record[HEAD.size :])]


def size_of(dimension: int) -> int:
    """How long a record is."""
    return HEAD.size + dimension


def split(body: bytes, dimension: int) -> Iterator[tuple[Place, bytes]]:
    """The records of a BLOB."""
    size = size_of(dimension)
    if len(body) % size:
        raise StoreDamaged("vectors do not have the dimension of their model: `everthread reindex` makes them anew")
    for start in range(0, len(body), size):
        one = body[start : start + size]
        seq, part, _ = HEAD.unpack_from(one)
        yield (seq, part), one


def merged(body: bytes, dimension: int, new: Mapping[Place, bytes]) -> bytes:
    """A BLOB with these in it, each in the place of the one that was there, in order."""
    return b"".join(one for _, one in sorted({**dict(split(body, dimension)), **new}.items()))


def without(body: bytes, dimension: int, seqs: Iterable[int]) -> bytes:
    """A BLOB without the records of some entries."""
    gone = frozenset(seqs)
    return b"".join(one for (seq, _), one in split(body, dimension) if seq not in gone)
