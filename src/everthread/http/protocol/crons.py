"""/runs/crons: runs that are started again and again, on one thread or each on a thread of its own.

A cron is a document of its owner (`owned_documents`); a second document says which owners have any. When it is due is
worked out from its schedule (`cron_schedule`) and written nowhere, so what starts runs (`cron_runner`) never writes
over what a user changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from everthread.core.access import ApiKeys
from everthread.core.clock import from_micros, system_clock
from everthread.core.errors import Conflict, Invalid
from everthread.core.ids import new_id
from everthread.core.ports import Items
from everthread.http.auth import Caller
from everthread.http.dependencies import CallerDep, PathId, RequestModel
from everthread.http.protocol import assistants
from everthread.http.protocol.cron_schedule import check_schedule, next_tick
from everthread.http.protocol.dependencies import (
    GraphsDep,
    LangGraphResponse,
    OwnerDep,
    ThreadDep,
    pagination_headers,
    select_fields,
)
from everthread.http.protocol.graphs import OpenGraphs
from everthread.http.protocol.owned_documents import OwnedDocuments
from everthread.http.protocol.run_request import Durability, Mode, Nodes, RunBody, parse_run_request
from everthread.http.protocol.serialization import JsonObject, contains
from everthread.http.protocol.server_state import ProtocolState

router = APIRouter(tags=["LangGraph: crons"])

DOCUMENTS = OwnedDocuments("langgraph.crons", "cron")
_OWNERS = OwnedDocuments("langgraph.cron_owners", "owner")
SERVER = ""
"""The owner of the document that says which owners have crons. Nobody can have this name, so no erase of an owner's
data removes the list."""
MAX_CRONS = 1000
"""How many crons one owner may have."""
KEY = "key_id"
"""A field of the document, which is not shown: the API key that the cron was made or last changed with. Its runs
start only while that key is valid."""
OnRunCompleted = Literal["delete", "keep"]
CronField = Literal[
    "cron_id", "assistant_id", "thread_id", "on_run_completed", "end_time", "schedule", "timezone", "created_at",
    "updated_at", "user_id", "payload", "next_run_date", "metadata", "enabled",
]  # fmt: skip
_OWN_KEYS = frozenset({"schedule", "timezone", "end_time", "enabled", "on_run_completed"})
"""The fields of a body that are about the cron; all others are about its runs."""


class NewCron(RunBody):
    """A run to start again and again."""

    schedule: str = Field(max_length=200, description='As in cron: "0 9 * * 1-5". Due to the minute.')
    timezone: str | None = Field(default=None, max_length=100, description="Of the schedule; UTC if there is none.")
    end_time: datetime | None = Field(default=None, description="Nothing is started after it.")
    on_run_completed: OnRunCompleted = Field(
        default="delete", description="What to do with the thread of each run, where each has one of its own."
    )
    enabled: bool = True


class CronChanges(BaseModel):
    """What to change; what is left out stays. Unknown keys are ignored: clients send new ones with each release."""

    model_config = ConfigDict(extra="ignore")

    schedule: str | None = Field(default=None, max_length=200)
    timezone: str | None = Field(default=None, max_length=100)
    end_time: datetime | None = Field(default=None, description="null removes it.")
    enabled: bool | None = None
    on_run_completed: OnRunCompleted | None = None
    input: Any = None
    metadata: dict[str, Any] | None = Field(default=None, description="Merged into the cron's.")
    config: dict[str, Any] | None = None
    context: dict[str, Any] | None = None
    webhook: str | None = None
    interrupt_before: Nodes | None = None
    interrupt_after: Nodes | None = None
    stream_mode: list[Mode] | Mode | None = None
    stream_subgraphs: bool | None = None
    stream_resumable: bool | None = None
    durability: Durability | None = None


class CronFilter(RequestModel):
    """Which crons."""

    assistant_id: str | None = Field(default=None, max_length=128, description="Also the name of a graph.")
    thread_id: str | None = Field(default=None, max_length=128)
    enabled: bool | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)


class CronSearch(CronFilter):
    """Which crons, in which order, how many, and which fields."""

    limit: int = Field(default=10, ge=1, le=1000)
    offset: int = Field(default=0, ge=0)
    sort_by: Literal[
        "cron_id", "assistant_id", "thread_id", "next_run_date", "end_time", "created_at", "updated_at"
    ] = "created_at"
    sort_order: Literal["asc", "desc"] = "desc"
    select: list[CronField] | None = None


async def _crons_changed(request: Request) -> Any:
    state: ProtocolState = request.app.state.langgraph
    return state.crons_changed


CronsChangedDep = Annotated[Any, Depends(_crons_changed)]
"""An `asyncio.Event`, which FastAPI cannot make a schema of."""


# -- documents -------------------------------------------------------------------------------------------------------


async def owners(items: Items) -> dict[str, datetime]:
    """The owners that have crons, or had, and when the last one was written."""
    listed = await items.under(SERVER, _OWNERS.namespace)
    return {item.key: from_micros(item.updated_at) for item in listed}


async def forget_owner(items: Items, owner: str) -> None:
    """Take an owner without crons off the list."""
    await _OWNERS.delete(items, SERVER, owner)


async def all_crons(items: Items, owner: str) -> list[JsonObject]:
    """The crons of an owner."""
    return [_with_end(cron) for cron in await DOCUMENTS.all(items, owner)]


def _with_end(cron: JsonObject) -> JsonObject:
    end = cron["end_time"]
    return {**cron, "end_time": None if end is None else datetime.fromisoformat(end)}


def is_over(cron: Mapping[str, Any], at: datetime) -> bool:
    """Whether it is disabled, or ended before a moment."""
    return not cron["enabled"] or (cron["end_time"] is not None and at > cron["end_time"])


async def has_valid_key(keys: ApiKeys, cron: Mapping[str, Any]) -> bool:
    """Whether the API key that it was made with is still valid; true for one that was made without a key."""
    id = cron.get(KEY)
    if id is None:
        return True
    key = await keys.get(id)
    return key is not None and key.revoked_at is None


def cron_run(cron: Mapping[str, Any]) -> RunBody:
    """The run that a cron starts."""
    given = {name: value for name, value in cron["payload"].items() if name not in _OWN_KEYS}
    return RunBody.model_validate({**given, "on_completion": cron["on_run_completed"] or "delete"})


def _cron_out(cron: Mapping[str, Any], owner: str) -> JsonObject:
    due = next_tick(cron["schedule"], cron["timezone"], system_clock())
    shown = {name: value for name, value in cron.items() if name != KEY}
    return {**shown, "user_id": owner, "next_run_date": None if due is None or is_over(cron, due) else due}


async def _find(graphs: OpenGraphs, owner: str, id: str) -> JsonObject:
    return _with_end(await DOCUMENTS.get(graphs.et.store.items, owner, id))


async def _write(graphs: OpenGraphs, owner: str, cron: JsonObject) -> JsonObject:
    items = graphs.et.store.items
    await _OWNERS.put(items, SERVER, owner, {})  # before the cron, which would never run without it
    await DOCUMENTS.put(items, owner, cron["cron_id"], cron)
    return await _find(graphs, owner, cron["cron_id"])


# -- routes ----------------------------------------------------------------------------------------------------------


@router.post("/runs/crons")
async def create_cron(body: NewCron, graphs: GraphsDep, caller: CallerDep, changed: CronsChangedDep) -> Response:
    """Start a run again and again, each time on a new thread."""
    cron = await _create(graphs, caller, body, None)
    changed.set()
    return LangGraphResponse(_cron_out(cron, caller.owner))


@router.post("/threads/{thread_id}/runs/crons")
async def create_thread_cron(
    thread: ThreadDep, body: NewCron, graphs: GraphsDep, caller: CallerDep, changed: CronsChangedDep
) -> Response:
    """Start a run again and again on one thread."""
    cron = await _create(graphs, caller, body, thread.id)
    changed.set()
    return LangGraphResponse(_cron_out(cron, caller.owner))


async def _create(graphs: OpenGraphs, caller: Caller, body: NewCron, thread_id: str | None) -> JsonObject:
    owner = caller.owner
    check_schedule(body.schedule, body.timezone)
    assistant = await assistants.find_assistant(graphs, owner, body.assistant_id)
    id = new_id()
    payload = body.model_dump(mode="json", exclude_unset=True)
    payload["assistant_id"] = assistant["assistant_id"]
    config = payload.setdefault("config", {})
    config["configurable"] = {**(config.get("configurable") or {}), "cron_id": id}
    cron = {
        "cron_id": id,
        "assistant_id": assistant["assistant_id"],
        "thread_id": thread_id,
        "end_time": _aware(body.end_time),
        "schedule": body.schedule,
        "timezone": body.timezone,
        "payload": payload,
        "metadata": body.metadata,
        "on_run_completed": body.on_run_completed if thread_id is None else None,
        "enabled": body.enabled,
        KEY: caller.key_id,
    }
    parse_run_request(cron_run(cron), assistant)  # refused now, not each time
    if len(await all_crons(graphs.et.store.items, owner)) >= MAX_CRONS:
        raise Conflict(f"there are {MAX_CRONS} crons already; delete one first")
    return await _write(graphs, owner, cron)


def _aware(end: datetime | None) -> datetime | None:
    return end.replace(tzinfo=UTC) if end is not None and end.tzinfo is None else end


@router.post("/runs/crons/search")
async def search_crons(body: CronSearch, graphs: GraphsDep, owner: OwnerDep) -> Response:
    """Search crons, by default newest first."""
    found = await _matching(graphs, owner, body)
    found.sort(key=lambda cron: (str(cron[body.sort_by] or ""), cron["cron_id"]), reverse=body.sort_order == "desc")
    headers = pagination_headers(len(found), offset=body.offset, limit=body.limit)
    page = found[body.offset : body.offset + body.limit]
    return LangGraphResponse(select_fields(page, body.select), headers=headers)


@router.post("/runs/crons/count")
async def count_crons(body: CronFilter, graphs: GraphsDep, owner: OwnerDep) -> Response:
    """Count crons."""
    return LangGraphResponse(len(await _matching(graphs, owner, body)))


async def _matching(graphs: OpenGraphs, owner: str, query: CronFilter) -> list[JsonObject]:
    wanted = query.assistant_id
    ids = (None,) if wanted is None else (wanted, assistants.default_assistant_id(wanted))
    return [
        _cron_out(cron, owner)
        for cron in await all_crons(graphs.et.store.items, owner)
        if (wanted is None or cron["assistant_id"] in ids)
        and query.thread_id in (None, cron["thread_id"])
        and query.enabled in (None, cron["enabled"])
        and contains(cron["metadata"], query.metadata)
    ]


@router.get("/runs/crons/{cron_id}")
async def get_cron(cron_id: PathId, graphs: GraphsDep, owner: OwnerDep) -> Response:
    """A cron, and when it is due next."""
    return LangGraphResponse(_cron_out(await _find(graphs, owner, cron_id), owner))


@router.patch("/runs/crons/{cron_id}")
async def change_cron(
    cron_id: PathId, body: CronChanges, graphs: GraphsDep, caller: CallerDep, changed: CronsChangedDep
) -> Response:
    """Change a cron. What was due before is not made up for."""
    owner = caller.owner
    cron = await _find(graphs, owner, cron_id)
    given = body.model_dump(mode="json", exclude_unset=True)
    for name in given.keys() - {"end_time", "timezone", "input"}:
        if given[name] is None:
            raise Invalid("must not be null", field=name)
    check_schedule(body.schedule or cron["schedule"], given.get("timezone", cron["timezone"]))
    own = {name: value for name, value in given.items() if name in _OWN_KEYS}
    if "end_time" in own:
        own["end_time"] = _aware(body.end_time)
    if cron["thread_id"] is not None:
        own.pop("on_run_completed", None)
    metadata = {**cron["metadata"], **(body.metadata or {})}
    payload = {**cron["payload"], **given, "metadata": metadata}
    config = payload.get("config") or {}
    payload["config"] = {**config, "configurable": {**(config.get("configurable") or {}), "cron_id": cron["cron_id"]}}
    after = {**cron, **own, "metadata": metadata, "payload": payload, KEY: caller.key_id}
    parse_run_request(cron_run(after), await assistants.find_assistant(graphs, owner, cron["assistant_id"]))
    written = await _write(graphs, owner, after)
    changed.set()
    return LangGraphResponse(_cron_out(written, owner))


@router.delete("/runs/crons/{cron_id}", status_code=204, response_class=Response)
async def delete_cron(cron_id: PathId, graphs: GraphsDep, owner: OwnerDep) -> None:
    """Delete a cron; the runs that it has started stay."""
    await _find(graphs, owner, cron_id)
    await DOCUMENTS.delete(graphs.et.store.items, owner, cron_id)
