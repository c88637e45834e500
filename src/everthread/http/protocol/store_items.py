"""/store: the documents that graphs keep beside their threads, of the owner who asks."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from langgraph.store.base import InvalidNamespaceError, Item
from pydantic import Field
from starlette.responses import Response

from everthread.core.errors import Invalid
from everthread.http.dependencies import RequestModel
from everthread.http.protocol.dependencies import GraphsDep, LangGraphResponse, OwnerDep
from everthread.http.protocol.serialization import JsonObject

router = APIRouter(tags=["LangGraph: store"])
_RESERVED = "langgraph"
"""The first label that graphs may not use; the service keeps its own documents there."""
_ALL = 2**31
"""A page is cut here, when what is reserved has been left out; the store reads all in any case."""

Labels = Annotated[list[str], Field(max_length=32)]
Key = Annotated[str, Field(min_length=1, max_length=1024)]


class NewItem(RequestModel):
    """A document to be kept."""

    namespace: Labels
    key: Key
    value: dict[str, Any]
    index: Literal[False] | list[str] | None = None
    ttl: float | None = Field(default=None, gt=0, description="Minutes from when it was last read or written.")


class ItemRef(RequestModel):
    """A document by its place."""

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


def _place(labels: list[str]) -> tuple[str, ...]:
    for label in labels:
        if not label or "." in label:
            raise Invalid("has labels that are not empty and have no dot in them", field="namespace")
    if labels and labels[0] == _RESERVED:
        raise Invalid(f"must not begin with {_RESERVED!r}", field="namespace")
    return tuple(labels)


def _shown(item: Item) -> JsonObject:
    return item.dict()


@router.put("/store/items", status_code=204, response_class=Response)
async def put_item(body: NewItem, graphs: GraphsDep, owner: OwnerDep) -> None:
    """Keep a document, in the place of the one that was there."""
    place = _place(body.namespace)
    try:
        await graphs.store(owner).aput(place, body.key, body.value, body.index, ttl=body.ttl)
    except InvalidNamespaceError as problem:
        raise Invalid(str(problem), field="namespace") from problem


@router.get("/store/items")
async def get_item(
    graphs: GraphsDep,
    owner: OwnerDep,
    key: Annotated[str, Query(min_length=1, max_length=1024)],
    namespace: Annotated[str, Query(max_length=4096, description="Labels with dots between them.")] = "",
    refresh_ttl: Annotated[bool | None, Query()] = None,
) -> Response:
    """A document; null when there is none."""
    place = _place(namespace.split(".") if namespace else [])
    found = await graphs.store(owner).aget(place, key, refresh_ttl=refresh_ttl)
    return LangGraphResponse(None if found is None else _shown(found))


@router.delete("/store/items", status_code=204, response_class=Response)
async def delete_item(body: ItemRef, graphs: GraphsDep, owner: OwnerDep) -> None:
    """Remove a document."""
    await graphs.store(owner).adelete(_place(body.namespace), body.key)


@router.post("/store/items/search")
async def search_items(body: ItemSearch, graphs: GraphsDep, owner: OwnerDep) -> Response:
    """Documents of a namespace and those below it."""
    place = _place(body.namespace_prefix or [])
    found = await graphs.store(owner).asearch(
        place, query=body.query, filter=body.filter, limit=_ALL, refresh_ttl=body.refresh_ttl
    )
    visible = [_shown(item) for item in found if item.namespace[:1] != (_RESERVED,)]
    return LangGraphResponse({"items": visible[body.offset : body.offset + body.limit]})


@router.post("/store/namespaces")
async def list_namespaces(body: NamespaceSearch, graphs: GraphsDep, owner: OwnerDep) -> Response:
    """The namespaces that have documents."""
    found = await graphs.store(owner).alist_namespaces(
        prefix=tuple(body.prefix) if body.prefix else None,
        suffix=tuple(body.suffix) if body.suffix else None,
        max_depth=body.max_depth,
        limit=_ALL,
    )
    visible = [list(name) for name in found if name[0] != _RESERVED]
    return LangGraphResponse({"namespaces": visible[body.offset : body.offset + body.limit]})
