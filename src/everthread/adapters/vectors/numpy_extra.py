"""The door to `comparing`, which needs numpy: an extra, and not imported before there is something to compare."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib.util import find_spec

from everthread.core.errors import MissingExtra
from everthread.core.meaning import Near


def nearest(chunks: Iterable[tuple[str, bytes]], vector: bytes, limit: int) -> list[Near]:
    """See `comparing.nearest`."""
    try:
        from everthread.adapters.vectors import comparing  # noqa: PLC0415 - an extra
    except ImportError as problem:
        raise MissingExtra("finding by meaning needs an extra: pip install 'everthread[meaning]'") from problem
    return comparing.nearest(chunks, vector, limit)


def steps(vectors: Sequence[bytes], most: int) -> list[tuple[float, bytes]] | None:
    """See `comparing.steps`; None where numpy is not here."""
    if find_spec("numpy") is None:
        return None
    from everthread.adapters.vectors import comparing  # noqa: PLC0415 - an extra

    return comparing.steps(vectors, most)
