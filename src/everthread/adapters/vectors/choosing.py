"""Where vectors are kept: in the log's own database, unless something else is named."""

from __future__ import annotations

from everthread.adapters.vectors.outside import OutsideVectors
from everthread.core.errors import Invalid, MissingExtra
from everthread.core.meaning import Vectors
from everthread.core.ports import Store

SCHEME = "milvus:"


def vectors_from(given: Vectors | str | None, store: Store) -> Vectors:
    """The vectors of a store; `milvus:http://host:19530` or `milvus:folder` for those kept in Milvus."""
    if given is None:
        return store.vectors
    if isinstance(given, str):
        return OutsideVectors(outside_at(given), store)
    return OutsideVectors(given, store)


def outside_at(address: str) -> Vectors:
    """The vectors at an address, whatever database they are about."""
    if not address.startswith(SCHEME):
        raise Invalid("must be such as milvus:http://host:19530 or milvus:data/vectors.db", field="vectors")
    try:
        from everthread.adapters.vectors.milvus import MilvusVectors  # noqa: PLC0415 - an extra
    except ImportError as problem:
        raise MissingExtra("vectors in Milvus need an extra: pip install 'everthread[milvus]'") from problem
    return MilvusVectors(address.removeprefix(SCHEME))
