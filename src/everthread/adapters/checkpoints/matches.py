"""Which items a search means: by the values in them, by namespace, and by meaning."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from langgraph.store.base import MatchCondition

from everthread.core.errors import Invalid

_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "$eq": operator.eq,
    "$ne": operator.ne,
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}
Namespace = tuple[str, ...]


def matches(value: Any, wanted: Any) -> bool:
    """Whether a value is what a filter asks for; an operator that is not known is refused."""
    if not isinstance(wanted, Mapping):
        return bool(value == wanted)
    if any(str(key).startswith("$") for key in wanted):
        return all(_compares(value, name, bound) for name, bound in wanted.items())
    return isinstance(value, Mapping) and all(matches(value.get(key), inner) for key, inner in wanted.items())


def _compares(value: Any, name: str, bound: Any) -> bool:
    if name not in _OPERATORS:
        raise Invalid(f"{name!r} is no operator; use one of {', '.join(_OPERATORS)}", field="filter")
    try:
        return bool(_OPERATORS[name](value, bound))
    except TypeError:  # a text is neither less nor more than a number
        return False


def is_in(namespace: Namespace, condition: MatchCondition) -> bool:
    """Whether a namespace begins, or ends, with a path in which `*` stands for any label."""
    path = condition.path
    if len(namespace) < len(path):
        return False
    labels = namespace[: len(path)] if condition.match_type == "prefix" else namespace[-len(path) :]
    return all(wanted in ("*", label) for label, wanted in zip(labels, path, strict=True))


def pack_vectors(vectors: Sequence[Sequence[float]]) -> bytes:
    """Vectors of one item, as the database keeps them."""
    return np.asarray(vectors, dtype=np.float32).tobytes()


def similarity(packed: bytes, query: Sequence[float]) -> float:
    """How near the nearest of an item's vectors is to a question, by the cosine between them."""
    asked = np.asarray(query, dtype=np.float32)
    vectors = np.frombuffer(packed, dtype=np.float32).reshape(-1, len(asked))
    norms = np.linalg.norm(vectors, axis=1) * np.linalg.norm(asked)
    return float(np.max(vectors @ asked / np.where(norms == 0, 1, norms)))
