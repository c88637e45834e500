"""Where vectors are kept: in the log's own database, unless another place is named."""

from __future__ import annotations

from everthread.adapters.vectors.external import ExternalVectors
from everthread.core.embeddings import Vectors
from everthread.core.errors import Invalid, MissingExtra
from everthread.core.ports import Store

_MILVUS = "milvus:"


def vectors_from(given: Vectors | str | None, store: Store) -> Vectors:
    """The vectors of a store; `milvus:http://host:19530` or `milvus:folder` for those kept in Milvus."""
    if given is None:
        return store.vectors
    return ExternalVectors(vectors_at(given) if isinstance(given, str) else given, store)


def vectors_at(url: str) -> Vectors:
    """The vectors outside the database that a URL names."""
    if not url.startswith(_MILVUS):
        raise Invalid("must look like milvus:http://host:19530 or milvus:data/vectors.db", field="vectors")
    try:
        from everthread.adapters.vectors.milvus import MilvusVectors  # noqa: PLC0415 - an extra
    except ImportError as problem:
        raise MissingExtra("vectors in Milvus need an extra: pip install 'everthread[milvus]'") from problem
    return MilvusVectors(url.removeprefix(_MILVUS))
