"""The nearest of some vectors, by their dot product: with numpy where it is installed, else slowly."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Sequence
from heapq import nlargest
from operator import itemgetter, mul


def nearest(rows: Sequence[tuple[int, bytes]], vector: bytes, limit: int) -> list[tuple[int, float]]:
    """Return (number, score) of the nearest vectors, best first; vectors of another dimension are left out."""
    alike = [row for row in rows if len(row[1]) == len(vector)]
    if not alike:
        return []
    scores = _scores([kept for _, kept in alike], vector)
    numbers = [number for number, _ in alike]
    return nlargest(limit, zip(numbers, scores, strict=True), key=itemgetter(1))


def _scores(kept: Sequence[bytes], vector: bytes) -> list[float]:
    try:
        import numpy as np  # noqa: PLC0415 - an extra
    except ImportError:
        asked = _numbers(vector)
        return [sum(map(mul, _numbers(one), asked)) for one in kept]
    matrix = np.frombuffer(b"".join(kept), dtype="<f4").reshape(len(kept), -1)
    scores: list[float] = (matrix @ np.frombuffer(vector, dtype="<f4")).tolist()
    return scores


def _numbers(vector: bytes) -> array[float]:
    numbers = array("f", vector)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers
