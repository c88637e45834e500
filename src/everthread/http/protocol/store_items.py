"""/store: documents that graphs keep beside their threads, of the caller's owner."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from langgraph.store.base import NOT_PROVIDED, InvalidNamespaceError
from pydantic import Field
from starlette.responses import Response

from everthread.core.errors import Invalid
from everthread.http.dependencies import RequestModel
from everthread.http.protocol.dependencies import GraphsDep, LangGraphResponse, OwnerDep

router = APIRouter(tags=["LangGraph: store"])
_RESERVED = "langgraph"
"""The first label that clients may not use; the service keeps its own documents there."""
_ALL = 2**31
"""Pages are cut after the reserved documents are left out; the store reads all of them in any case."""

_MOST_MINUTES = 100 * 366 * 24 * 60

Labels = Annotated[list[str], Field(max_length=32)]
Key = Annotated[str, Field(min_length=1, max_length=1024)]


class NewItem(RequestModel):
    """A document to store."""

    namespace: Labels
    key: Key
    value: dict[str, Any]
    index: Literal[False] | list[str] | None = None
    ttl: float | None = Field(
        default=None, gt=0, le=_MOST_MINUTES, description="Minutes since it was last read or written."
    )


class ItemRef(RequestModel):
    """The namespace and key of a document."""

    namespace: Labels = Field(default_factory=list)
    key: Key


class ItemSearch(RequestModel):
    """Which documents."""

    namespace_prefix: Labels | None = None
    filter: dict[str, Any] | None = None
    query: str | None = Field(default=None, max_length=100_000)
    limit: int = Field(default=10, ge=1, le=1000)
    offset: int = Field(default=0, ge=0)
    refresh_ttl: bool | None = None


class NamespaceSearch(RequestModel):
    """Which namespaces."""

    prefix: Labels | None = None
    suffix: Labels | None = None
    max_depth: int | None = Field(default=None, ge=1, le=32)
    limit: int = Field(default=100, ge=1, le=1000)
    offset: int = Field(default=0, ge=0)


def _labels(labels: list[str], field: str) -> tuple[str, ...]:
    if any(not label or "." in label or "\x00" in label for label in labels):
        raise Invalid("labels must not be empty or contain a dot or a NUL character", field=field)
    return tuple(labels)


def _namespace(labels: list[str]) -> tuple[str, ...]:
    if labels and labels[0] == _RESERVED:
        raise Invalid(f"the first label must not be {_RESERVED!r}", field="namespace")
    return _labels(labels, "namespace")


@router.put("/store/items", status_code=204, response_class=Response)
async def put_item(body: NewItem, graphs: GraphsDep, owner: OwnerDep) -> None:
    """Store a document; it replaces the one with the same key."""
    namespace = _namespace(body.namespace)
    ttl = NOT_PROVIDED if body.ttl is None else body.ttl
    try:
        await graphs.store(owner).aput(namespace, body.key, body.value, body.index, ttl=ttl)
    except InvalidNamespaceError as problem:
        raise Invalid(str(problem), field="namespace") from problem


@router.get("/store/items")
async def get_item(
    graphs: GraphsDep,
    owner: OwnerDep,
    key: Annotated[str, Query(min_length=1, max_length=1024)],
    namespace: Annotated[str, Query(max_length=4096, description="Labels, separated by dots.")] = "",
    refresh_ttl: Annotated[bool | None, Query()] = None,
) -> Response:
    """A document, or null."""
    labels = _namespace(namespace.split(".") if namespace else [])
    found = await graphs.store(owner).aget(labels, key, refresh_ttl=refresh_ttl)
    return LangGraphResponse(None if found is None else found.dict())


@router.delete("/store/items", status_code=204, response_class=Response)
async def delete_item(body: ItemRef, graphs: GraphsDep, owner: OwnerDep) -> None:
    """Delete a document."""
    await graphs.store(owner).adelete(_namespace(body.namespace), body.key)


@router.post("/store/items/search")
async def search_items(body: ItemSearch, graphs: GraphsDep, owner: OwnerDep) -> Response:
    """Search the documents of a namespace and those below it."""
    prefix = _namespace(body.namespace_prefix or [])
    found = await graphs.store(owner).asearch(
        prefix, query=body.query, filter=body.filter, limit=_ALL, refresh_ttl=body.refresh_ttl
    )
    visible = [item.dict() for item in found if item.namespace[:1] != (_RESERVED,)]
    return LangGraphResponse({"items": visible[body.offset : body.offset + body.limit]})


@router.post("/store/namespaces")
async def list_namespaces(body: NamespaceSearch, graphs: GraphsDep, owner: OwnerDep) -> Response:
    """List the namespaces that have documents."""
    found = await graphs.store(owner).alist_namespaces(
        prefix=_labels(body.prefix, "prefix") if body.prefix else None,
        suffix=_labels(body.suffix, "suffix") if body.suffix else None,
        max_depth=body.max_depth,
        limit=_ALL,
    )
    visible = [list(name) for name in found if name[0] != _RESERVED]
    return LangGraphResponse({"namespaces": visible[body.offset : body.offset + body.limit]})
