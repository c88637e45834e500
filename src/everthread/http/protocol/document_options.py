"""The `store` of a `langgraph.json`: which embedder finds documents by meaning, and how long they are kept.

    {"store": {"index": {"embed": "./embed.py:embed", "dims": 384, "fields": ["text"]}, "ttl": {"default_ttl": 1440}}}

All is read and tried when the service starts.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from langchain_core.embeddings import Embeddings
from langgraph.store.base import TTLConfig
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from everthread.adapters.checkpoints.store import VectorSearch
from everthread.core.errors import EverthreadError, Invalid
from everthread.http.protocol.graphs import DocumentOptions, import_named, read_config

_EMBED = "store.index.embed"
Minutes = Annotated[float, Field(gt=0)]


class _Index(BaseModel):
    model_config = ConfigDict(extra="forbid")

    embed: str = Field(min_length=1)
    dims: int = Field(gt=0)
    fields: list[str] | None = None


class _TimeToLive(BaseModel):
    model_config = ConfigDict(extra="ignore")  # when expired documents are removed cannot be configured here

    default_ttl: Minutes | None = None
    refresh_on_read: bool = True


class _Store(BaseModel):
    model_config = ConfigDict(extra="ignore")  # `path` names a store of one's own

    index: _Index | None = None
    ttl: _TimeToLive | None = None


def document_options(path: Path) -> DocumentOptions:
    """What a `langgraph.json` says of the store; Invalid names the part that is wrong."""
    try:
        given = _Store.model_validate(read_config(path).get("store") or {})
    except ValidationError as problem:
        error = problem.errors(include_url=False, include_input=False)[0]
        raise Invalid(error["msg"], field=".".join(["store", *map(str, error["loc"])])) from problem
    index = None if given.index is None else _search(given.index, path.resolve().parent)
    ttl: TTLConfig | None = None
    if given.ttl is not None:
        ttl = {"default_ttl": given.ttl.default_ttl, "refresh_on_read": given.ttl.refresh_on_read}
    return DocumentOptions(index=index, ttl=ttl)


def _search(index: _Index, folder: Path) -> VectorSearch:
    try:
        embed = _embedder(index.embed, folder)
        return VectorSearch({"embed": embed, "dims": index.dims, "fields": index.fields or ["$"]})
    except EverthreadError:
        raise
    except Exception as problem:  # the user's own module, or a provider's library
        raise Invalid(f"cannot use {index.embed!r}: {problem}", field=_EMBED) from problem


def _embedder(place: str, folder: Path) -> Any:
    """An embedder by where its function or object is defined, or a model by its provider and name, as in
    `openai:text-embedding-3-small`."""
    path, _, _ = place.rpartition(":")
    if not path.endswith(".py"):
        return place
    found = import_named(place, folder, _EMBED)
    if not isinstance(found, Embeddings) and not callable(found):
        raise Invalid(f"{place} must be a function or an Embeddings object", field=_EMBED)
    return found
