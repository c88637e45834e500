"""/assistants: every graph has one by its own name; users add others with a config of their own, in versions.

Users' assistants are documents of their owner (`owned_documents`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal
from uuid import UUID, uuid5

from fastapi import APIRouter, Query
from pydantic import Field, TypeAdapter, create_model
from pydantic.errors import PydanticUserError
from starlette.responses import Response

from everthread.core.clock import system_clock
from everthread.core.errors import Conflict, NotFound
from everthread.core.ids import check_id, new_id
from everthread.http.dependencies import PathId, RequestModel
from everthread.http.protocol.dependencies import (
    GraphRunsDep,
    GraphsDep,
    LangGraphResponse,
    OwnerDep,
    pagination_headers,
    select_fields,
)
from everthread.http.protocol.graphs import OpenGraphs
from everthread.http.protocol.owned_documents import OwnedDocuments
from everthread.http.protocol.serialization import JsonObject, contains
from everthread.http.protocol.threads import list_threads, remove_thread

router = APIRouter(tags=["LangGraph: assistants"])

_DOCUMENTS = OwnedDocuments("langgraph.assistants", "assistant")
_GRAPH_IDS = UUID("6ba7b821-9dad-11d1-80b4-00c04fd430c8")
"""LangGraph's own server derives the ids of graphs from this namespace: the same name has the same id here."""
_STARTED_AT = system_clock()
_VERSION_FIELDS = ("graph_id", "config", "context", "metadata", "name", "description")


class NewAssistant(RequestModel):
    """An assistant to create."""

    graph_id: str = Field(min_length=1, max_length=128)
    assistant_id: str | None = Field(default=None, min_length=1, max_length=128)
    config: dict[str, Any] = Field(default_factory=dict)
    context: dict[str, Any] = Field(default_factory=dict)
    metadata: dict[str, Any] = Field(default_factory=dict)
    if_exists: Literal["raise", "do_nothing"] = "raise"
    name: str | None = Field(default=None, max_length=1000)
    description: str | None = Field(default=None, max_length=10_000)


class AssistantChanges(RequestModel):
    """What the next version changes; metadata are merged."""

    graph_id: str | None = Field(default=None, min_length=1, max_length=128)
    config: dict[str, Any] | None = None
    context: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None
    name: str | None = Field(default=None, max_length=1000)
    description: str | None = Field(default=None, max_length=10_000)


class AssistantFilter(RequestModel):
    """Which assistants."""

    metadata: dict[str, Any] = Field(default_factory=dict)
    graph_id: str | None = None
    name: str | None = None


class AssistantSearch(AssistantFilter):
    """Which assistants, in which order, how many."""

    limit: int = Field(default=10, ge=1, le=1000)
    offset: int = Field(default=0, ge=0)
    sort_by: Literal["assistant_id", "graph_id", "name", "created_at", "updated_at"] = "created_at"
    sort_order: Literal["asc", "desc"] = "desc"
    select: list[str] | None = None


class VersionSearch(RequestModel):
    """Which versions."""

    metadata: dict[str, Any] = Field(default_factory=dict)
    limit: int = Field(default=10, ge=1, le=1000)
    offset: int = Field(default=0, ge=0)


class LatestVersion(RequestModel):
    """The version to use."""

    version: int = Field(ge=1)


# -- documents -------------------------------------------------------------------------------------------------------


def default_assistant_id(graph_id: str) -> str:
    """The id of the assistant that every graph has."""
    return str(uuid5(_GRAPH_IDS, graph_id))


def _default_assistant(graph_id: str, description: str | None) -> JsonObject:
    return {
        "assistant_id": default_assistant_id(graph_id),
        "graph_id": graph_id,
        "config": {},
        "context": {},
        "metadata": {"created_by": "system"},
        "name": graph_id,
        "created_at": _STARTED_AT,
        "updated_at": _STARTED_AT,
        "version": 1,
        "description": description,
    }


async def find_assistant(graphs: OpenGraphs, owner: str, id: str) -> JsonObject:
    """An assistant by its id, or by the name of its graph; another owner's is NotFound like one that does not exist."""
    check_id(id, "assistant_id")
    for spec in graphs.catalog:
        if id in (spec.id, default_assistant_id(spec.id)):
            return _default_assistant(spec.id, spec.description)
    return _current_version(await _read(graphs, owner, id))


async def _read(graphs: OpenGraphs, owner: str, id: str) -> JsonObject:
    return await _DOCUMENTS.get(graphs.et.store.items, owner, id)


def _current_version(kept: Mapping[str, Any]) -> JsonObject:
    """An assistant in its current version."""
    version = next(one for one in kept["versions"] if one["version"] == kept["latest"])
    times = {"created_at": kept["created_at"], "updated_at": kept["updated_at"]}
    fields = {name: version[name] for name in _VERSION_FIELDS}
    return {"assistant_id": kept["assistant_id"], **fields, **times, "version": version["version"]}


async def _write(graphs: OpenGraphs, owner: str, kept: JsonObject) -> JsonObject:
    await _DOCUMENTS.put(graphs.et.store.items, owner, kept["assistant_id"], kept)
    return _current_version(await _read(graphs, owner, kept["assistant_id"]))


async def _all(graphs: OpenGraphs, owner: str) -> list[JsonObject]:
    defaults = [_default_assistant(spec.id, spec.description) for spec in graphs.catalog]
    created = [_current_version(one) for one in await _DOCUMENTS.all(graphs.et.store.items, owner)]
    return [*defaults, *created]


def _shown(assistant: JsonObject) -> JsonObject:
    """As on LangGraph's own server, what was given as context is also shown as `configurable`, and the other way
    round."""
    config, context = assistant["config"] or {}, assistant["context"] or {}
    configurable = config.get("configurable") or context
    if not configurable:
        return assistant
    return {**assistant, "config": {**config, "configurable": configurable}, "context": context or configurable}


def _matches(assistant: JsonObject, query: AssistantFilter) -> bool:
    return (
        query.graph_id in (None, assistant["graph_id"])
        and (query.name is None or query.name.lower() in str(assistant["name"]).lower())
        and contains(assistant["metadata"], query.metadata)
    )


# -- routes ----------------------------------------------------------------------------------------------------------


@router.post("/assistants")
async def create_assistant(body: NewAssistant, graphs: GraphsDep, owner: OwnerDep) -> Response:
    """Create an assistant of a graph."""
    graphs.catalog.get(body.graph_id)
    id = new_id() if body.assistant_id is None else check_id(body.assistant_id, "assistant_id")
    try:
        existing = await find_assistant(graphs, owner, id)
    except NotFound:
        version = {**body.model_dump(include=set(_VERSION_FIELDS)), "name": body.name or "Untitled", "version": 1}
        version["created_at"] = system_clock()
        kept = {"assistant_id": id, "latest": 1, "versions": [version]}
        return LangGraphResponse(_shown(await _write(graphs, owner, kept)))
    if body.if_exists == "raise":
        raise Conflict(f"assistant {id!r} already exists")
    return LangGraphResponse(_shown(existing))


@router.post("/assistants/search")
async def search_assistants(body: AssistantSearch, graphs: GraphsDep, owner: OwnerDep) -> Response:
    """Search assistants, by default newest first."""
    found = [one for one in await _all(graphs, owner) if _matches(one, body)]
    found.sort(key=lambda one: (str(one[body.sort_by]), one["assistant_id"]), reverse=body.sort_order == "desc")
    page = [_shown(one) for one in found[body.offset : body.offset + body.limit]]
    headers = pagination_headers(len(found), offset=body.offset, limit=body.limit)
    return LangGraphResponse(select_fields(page, body.select), headers=headers)


@router.post("/assistants/count")
async def count_assistants(body: AssistantFilter, graphs: GraphsDep, owner: OwnerDep) -> Response:
    """Count assistants."""
    return LangGraphResponse(sum(_matches(one, body) for one in await _all(graphs, owner)))


@router.get("/assistants/{assistant_id}")
async def get_assistant(assistant_id: PathId, graphs: GraphsDep, owner: OwnerDep) -> Response:
    """An assistant, by its id or by the name of its graph."""
    return LangGraphResponse(_shown(await find_assistant(graphs, owner, assistant_id)))


@router.patch("/assistants/{assistant_id}")
async def change_assistant(
    assistant_id: PathId, body: AssistantChanges, graphs: GraphsDep, owner: OwnerDep
) -> Response:
    """Add a version."""
    kept = await _read(graphs, owner, _check_not_default(graphs, assistant_id))
    if body.graph_id is not None:
        graphs.catalog.get(body.graph_id)
    current = _current_version(kept)
    given = {name: value for name, value in body.model_dump().items() if value is not None}
    number = max(one["version"] for one in kept["versions"]) + 1
    metadata = {**current["metadata"], **(body.metadata or {})}
    fields = {**{name: current[name] for name in _VERSION_FIELDS}, **given, "metadata": metadata}
    version = {**fields, "version": number, "created_at": system_clock()}
    written = await _write(graphs, owner, {**kept, "latest": number, "versions": [*kept["versions"], version]})
    return LangGraphResponse(_shown(written))


def _check_not_default(graphs: OpenGraphs, id: str) -> str:
    """The assistant that a graph has by its name cannot be changed."""
    check_id(id, "assistant_id")
    if any(id in (spec.id, default_assistant_id(spec.id)) for spec in graphs.catalog):
        raise Conflict(f"the default assistant {id!r} of a graph cannot be changed; create one of the graph instead")
    return id


@router.delete("/assistants/{assistant_id}", status_code=204, response_class=Response)
async def delete_assistant(
    assistant_id: PathId,
    graphs: GraphsDep,
    graph_runs: GraphRunsDep,
    owner: OwnerDep,
    delete_threads: Annotated[bool, Query(description="Also the threads it ran on last.")] = False,
) -> None:
    """Delete an assistant; its threads stay unless they are to go too."""
    await _read(graphs, owner, _check_not_default(graphs, assistant_id))
    if delete_threads:
        async for thread in list_threads(graphs, owner, None):
            if thread.metadata.get("assistant_id") == assistant_id:
                await remove_thread(graphs, graph_runs, thread)
    await _DOCUMENTS.delete(graphs.et.store.items, owner, assistant_id)


@router.post("/assistants/{assistant_id}/versions")
async def list_versions(assistant_id: PathId, body: VersionSearch, graphs: GraphsDep, owner: OwnerDep) -> Response:
    """The versions of an assistant, newest first."""
    assistant = await find_assistant(graphs, owner, assistant_id)
    if assistant["assistant_id"] in [default_assistant_id(spec.id) for spec in graphs.catalog]:
        return LangGraphResponse([assistant][body.offset :])
    kept = await _read(graphs, owner, assistant_id)
    found = [one for one in reversed(kept["versions"]) if contains(one["metadata"], body.metadata)]
    page = found[body.offset : body.offset + body.limit]
    return LangGraphResponse([_shown({"assistant_id": assistant_id, **one}) for one in page])


@router.post("/assistants/{assistant_id}/latest")
async def set_latest(assistant_id: PathId, body: LatestVersion, graphs: GraphsDep, owner: OwnerDep) -> Response:
    """Choose the version to use."""
    kept = await _read(graphs, owner, _check_not_default(graphs, assistant_id))
    if body.version not in [one["version"] for one in kept["versions"]]:
        raise NotFound(f"no version {body.version} of assistant {assistant_id!r}")
    return LangGraphResponse(_shown(await _write(graphs, owner, {**kept, "latest": body.version})))


@router.get("/assistants/{assistant_id}/graph")
async def draw_graph(
    assistant_id: PathId, graphs: GraphsDep, owner: OwnerDep, xray: Annotated[str, Query(max_length=5)] = "false"
) -> Response:
    """The nodes and edges of its graph; with `xray` those of subgraphs too, to a depth or all."""
    depth = int(xray) if xray.isdigit() else xray.lower() == "true"
    assistant = await find_assistant(graphs, owner, assistant_id)
    async with graphs.open(assistant["graph_id"], owner, assistant["config"], "assistants.read") as graph:
        drawn = (await graph.aget_graph(xray=depth)).to_json()
    for node in drawn["nodes"]:
        if isinstance(node.get("data"), dict):  # else it is the name of a schema
            node["data"].pop("id", None)  # the module it is from, which LangGraph's own server does not show either
    return LangGraphResponse(drawn)


@router.get("/assistants/{assistant_id}/schemas")
async def get_schemas(assistant_id: PathId, graphs: GraphsDep, owner: OwnerDep) -> Response:
    """The JSON schemas of its input, output, state and context."""
    assistant = await find_assistant(graphs, owner, assistant_id)
    async with graphs.open(assistant["graph_id"], owner, assistant["config"], "assistants.read") as graph:
        return LangGraphResponse({"graph_id": assistant["graph_id"], **_schemas(graph)})


@router.get("/assistants/{assistant_id}/subgraphs")
async def get_subgraphs(
    assistant_id: PathId,
    graphs: GraphsDep,
    owner: OwnerDep,
    recurse: Annotated[bool, Query(description="Also subgraphs of subgraphs.")] = False,
) -> Response:
    """The schemas of its subgraphs, by namespace."""
    return LangGraphResponse(await _subgraphs(graphs, owner, assistant_id, None, recurse=recurse))


@router.get("/assistants/{assistant_id}/subgraphs/{namespace}")
async def get_subgraph(
    assistant_id: PathId,
    namespace: str,
    graphs: GraphsDep,
    owner: OwnerDep,
    recurse: Annotated[bool, Query(description="Also subgraphs of subgraphs.")] = False,
) -> Response:
    """The schemas of one of its subgraphs."""
    return LangGraphResponse(await _subgraphs(graphs, owner, assistant_id, namespace, recurse=recurse))


async def _subgraphs(graphs: OpenGraphs, owner: str, id: str, namespace: str | None, *, recurse: bool) -> JsonObject:
    assistant = await find_assistant(graphs, owner, id)
    async with graphs.open(assistant["graph_id"], owner, assistant["config"], "assistants.read") as graph:
        inside = [pair async for pair in graph.aget_subgraphs(namespace=namespace, recurse=recurse)]
        return {place: _schemas(subgraph) for place, subgraph in inside}


def _schemas(graph: Any) -> JsonObject:
    """The schemas of a graph, as JSON schemas; None where a type has none."""
    context = _schema(graph.get_context_jsonschema)
    return {
        "input_schema": _schema(graph.get_input_jsonschema),
        "output_schema": _schema(graph.get_output_jsonschema),
        "state_schema": _schema(lambda: _state_schema(graph)),
        "config_schema": context or {},  # clients older than `context` read this
        "context_schema": context,
    }


def _state_schema(graph: Any) -> Any:
    fields: Any = {name: (_with_schema(graph.channels[name].UpdateType), None) for name in graph.stream_channels_list}
    return create_model(f"{graph.get_name()}_state", **fields).model_json_schema()


def _with_schema(kind: Any) -> Any:
    """This type, or Any for one that has no schema: the other members of the state have theirs."""
    return Any if _schema(lambda: TypeAdapter(kind).json_schema()) is None else kind


def _schema(make: Callable[[], Any]) -> Any:
    """A state may hold any type, and many have no schema."""
    try:
        return make()
    except (PydanticUserError, TypeError, ValueError, AttributeError, NameError):
        return None
