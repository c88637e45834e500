"""/threads: conversations under LangGraph's name.

A thread's metadata are its conversation's; its status comes from its runs and its newest checkpoint. Deleting one
removes its checkpoints and hides the conversation; the log is kept, and /api/v1 can restore it.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from typing import Annotated, Any, Literal, get_args

from fastapi import APIRouter, Header, Query
from pydantic import Field
from starlette.responses import Response

from everthread.conversation import Conversation
from everthread.core.access import without_share
from everthread.core.errors import Conflict, NotFound
from everthread.core.ids import check_id, new_id
from everthread.core.nouns import Ref
from everthread.core.turns import Turn, TurnState
from everthread.history import read
from everthread.http.dependencies import ConversationId, RequestModel
from everthread.http.protocol import thread_state
from everthread.http.protocol.dependencies import (
    GraphRunsDep,
    GraphsDep,
    LangGraphResponse,
    OwnerDep,
    ThreadDep,
    find_thread,
    pagination_headers,
    select_fields,
)
from everthread.http.protocol.graph_runs import GraphRuns
from everthread.http.protocol.graphs import OpenGraphs
from everthread.http.protocol.run_rows import run_error
from everthread.http.protocol.serialization import JsonObject, contains, to_plain

router = APIRouter(tags=["LangGraph: threads"])
ThreadStatus = Literal["idle", "busy", "interrupted", "error"]
_ROW_FIELDS = frozenset({"thread_id", "created_at", "updated_at", "state_updated_at", "metadata"})
"""What a thread shows without reading its runs and its checkpoint."""


class NewThread(RequestModel):
    """A thread to create."""

    thread_id: ConversationId | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)
    if_exists: Literal["raise", "do_nothing"] = "raise"
    ttl: Any = Field(default=None, description="Ignored: nothing expires here.")
    supersteps: list[dict[str, Any]] | None = None


class ThreadChanges(RequestModel):
    """Metadata to merge into the thread's."""

    metadata: dict[str, Any] = Field(default_factory=dict)
    ttl: Any = None


class ThreadFilter(RequestModel):
    """Which threads."""

    metadata: dict[str, Any] = Field(default_factory=dict)
    values: dict[str, Any] = Field(default_factory=dict)
    status: ThreadStatus | None = None


ThreadField = Literal[
    "thread_id", "created_at", "updated_at", "state_updated_at", "metadata", "config", "context", "status", "values",
    "interrupts", "error",
]  # fmt: skip


SortField = Literal["thread_id", "status", "created_at", "updated_at", "state_updated_at"]


class ThreadSearch(ThreadFilter):
    """Which threads, in which order, how many, and which fields."""

    ids: list[str] | None = Field(default=None, max_length=1000)
    limit: int = Field(default=10, ge=1, le=1000)
    offset: int = Field(default=0, ge=0)
    sort_by: SortField | None = None
    sort_order: Literal["asc", "desc"] | None = None
    order_by: str | None = Field(
        default=None, max_length=100, description="As older clients write it: `created_at ASC`. `sort_by` goes before."
    )
    select: list[ThreadField] | None = None
    extract: dict[str, str] | None = Field(default=None, max_length=10)

    @property
    def order(self) -> tuple[str, bool]:
        """The field to sort by, and whether the greatest comes first."""
        older = re.fullmatch(r"(\w+)(?: (ASC|DESC))?", self.order_by or "", re.IGNORECASE)
        if self.sort_by is None and older is not None and older[1] in get_args(SortField):
            return older[1], (older[2] or "").upper() != "ASC"
        return self.sort_by or "created_at", self.sort_order != "asc"


class PruneThreads(RequestModel):
    """Threads to delete, or whose older checkpoints to delete."""

    thread_ids: list[str] = Field(max_length=1000)
    strategy: Literal["delete", "keep_latest"] = "delete"


# -- responses -------------------------------------------------------------------------------------------------------


def thread_row(thread: Conversation) -> JsonObject:
    """The fields of a thread that its row has."""
    return {
        "thread_id": thread.id,
        "created_at": thread.created_at,
        "updated_at": thread.updated_at,
        "state_updated_at": thread.updated_at,
        "metadata": thread.metadata,
    }


async def thread_out(graphs: OpenGraphs, thread: Conversation) -> JsonObject:
    """A thread with its status, its values and its interrupts."""
    run = await newest_run(thread)
    state = await thread_state.read_state(graphs, thread)
    interrupts = {task["id"]: task["interrupts"] for task in state["tasks"] if task["interrupts"]}
    kwargs = {} if run is None else run.metadata.get("kwargs", {})
    return {
        **thread_row(thread),
        "status": _status(run, state),
        "config": kwargs.get("config", {}),
        "values": state["values"] or None,
        "error": run_error(run) if run is not None and run.state is TurnState.FAILED else None,
        "interrupts": interrupts,
    }


async def newest_run(thread: Conversation) -> Turn | None:
    """The run that determines the thread's status: a running one, or else the newest."""
    if unfinished := await thread_state.unfinished_run(thread):
        return unfinished
    return next(iter((await thread.turns(limit=1)).items), None)


def _status(run: Turn | None, state: Mapping[str, Any]) -> ThreadStatus:
    if run is not None and not run.state.is_final:
        return "busy"
    if run is not None and run.state is TurnState.FAILED:
        return "error"
    return "interrupted" if state["next"] else "idle"


# -- one thread ------------------------------------------------------------------------------------------------------


async def create_or_restore(
    graphs: OpenGraphs, owner: str, id: str | None, metadata: Mapping[str, Any], **new: Any
) -> Conversation:
    """A new thread. Conflict when the id is in use; a deleted thread is restored, since its log is kept."""
    name = new_id() if id is None else check_id(id, "thread_id")
    try:
        return await graphs.et.conversations.create(id=name, owner=owner, metadata=metadata, **new)
    except Conflict:
        existing = await graphs.et.conversations.get(name, owner)
        if not existing.is_deleted:
            raise
        await existing.update(metadata=metadata)
        return await existing.restore()


@router.post("/threads")
async def create_thread(body: NewThread, graphs: GraphsDep, owner: OwnerDep) -> Response:
    """Create a thread; with `supersteps`, one that has a history."""
    try:
        thread = await create_or_restore(graphs, owner, body.thread_id, body.metadata)
    except Conflict:
        if body.if_exists == "raise" or body.thread_id is None:
            raise
        return LangGraphResponse(await thread_out(graphs, await find_thread(graphs, owner, body.thread_id)))
    if body.supersteps:
        await thread_state.write_supersteps(graphs, thread, body.supersteps)
    return LangGraphResponse(await thread_out(graphs, thread))


@router.get("/threads/{thread_id}")
async def get_thread(
    thread: ThreadDep,
    graphs: GraphsDep,
    include: Annotated[str | None, Query(max_length=100, description="Ignored: nothing expires here.")] = None,
) -> Response:
    """A thread with its values."""
    return LangGraphResponse(await thread_out(graphs, thread))


@router.patch("/threads/{thread_id}", responses={204: {"description": "Changed; a minimal response was preferred."}})
async def change_thread(
    thread: ThreadDep,
    body: ThreadChanges,
    graphs: GraphsDep,
    prefer: Annotated[str | None, Header(max_length=200, description="`return=minimal`: without the thread.")] = None,
) -> Response:
    """Merge metadata into a thread's."""
    changed = await thread.update(metadata={**thread.metadata, **body.metadata})
    if prefer is not None and "return=minimal" in prefer.replace(" ", ""):
        return Response(status_code=204)
    return LangGraphResponse(await thread_out(graphs, changed))


@router.delete("/threads/{thread_id}", status_code=204, response_class=Response)
async def delete_thread(thread: ThreadDep, graphs: GraphsDep, graph_runs: GraphRunsDep) -> None:
    """Delete a thread: cancel its runs, remove its checkpoints and hide the conversation. Its log is kept."""
    await remove_thread(graphs, graph_runs, thread)


async def remove_thread(graphs: OpenGraphs, graph_runs: GraphRuns, thread: Conversation) -> None:
    """Delete a thread as `DELETE /threads/{id}` does."""
    await graph_runs.stop_all(Ref(thread.owner, thread.id))
    await graphs.saver(thread.owner).adelete_thread(thread.id)
    await thread.delete()


@router.post("/threads/{thread_id}/copy")
async def copy_thread(thread: ThreadDep, graphs: GraphsDep) -> Response:
    """A new thread with the same log and checkpoints."""
    copied = await create_or_restore(graphs, thread.owner, None, without_share(thread.metadata), title=thread.title)
    await graphs.saver(thread.owner).acopy_thread(thread.id, copied.id)
    return LangGraphResponse(await thread_out(graphs, await copied.refresh()))


@router.post("/threads/prune")
async def prune_threads(body: PruneThreads, graphs: GraphsDep, graph_runs: GraphRunsDep, owner: OwnerDep) -> Response:
    """Delete threads; with `keep_latest`, only their older checkpoints."""
    count = 0
    for id in dict.fromkeys(body.thread_ids):
        try:
            thread = await find_thread(graphs, owner, id)
        except NotFound:
            continue
        if body.strategy == "delete":
            await remove_thread(graphs, graph_runs, thread)
        else:
            await graphs.saver(owner).aprune([thread.id], strategy="keep_latest")
        count += 1
    return LangGraphResponse({"pruned_count": count})


# -- many threads ----------------------------------------------------------------------------------------------------


async def list_threads(graphs: OpenGraphs, owner: str, ids: list[str] | None) -> AsyncIterator[Conversation]:
    """The threads of an owner, newest first, without subagents' and off-record ones."""
    if ids is not None:
        for id in dict.fromkeys(ids):
            try:
                yield await find_thread(graphs, owner, id)
            except NotFound:
                continue
        return
    async for info in read.conversations(graphs.et.store.conversations, owner):
        if info.parent_id is None and not info.off_record:
            yield Conversation(graphs.et.runtime, info)


async def _matching_threads(
    graphs: OpenGraphs, owner: str, query: ThreadFilter, ids: list[str] | None, *, whole: bool
) -> AsyncIterator[JsonObject]:
    needs_state = whole or query.status is not None or bool(query.values)
    async for thread in list_threads(graphs, owner, ids):
        if not contains(dict(thread.metadata), query.metadata):
            continue
        row = await thread_out(graphs, thread) if needs_state else thread_row(thread)
        if query.status in (None, row.get("status")) and (not query.values or _contains_values(row, query.values)):
            yield row


def _contains_values(row: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    return contains(to_plain(row["values"] or {}), dict(wanted))


@router.post("/threads/search")
async def search_threads(body: ThreadSearch, graphs: GraphsDep, owner: OwnerDep) -> Response:
    """Search threads, by default newest first. Another order, or a filter by status or values, reads every thread."""
    field, is_descending = body.order
    is_newest_first = field == "created_at" and is_descending and body.ids is None
    fields = set(body.select or ()) | set(() if body.extract is None else {"values"})
    whole = not body.select or not fields <= _ROW_FIELDS or field == "status"
    until = body.offset + body.limit + 1 if is_newest_first else None
    rows: list[JsonObject] = []
    async for row in _matching_threads(graphs, owner, body, body.ids, whole=whole and not is_newest_first):
        rows.append(row)
        if until is not None and len(rows) == until:
            break
    if not is_newest_first:
        rows.sort(key=lambda row: (str(row[field]), row["thread_id"]), reverse=is_descending)
    page = rows[body.offset : body.offset + body.limit]
    if whole and is_newest_first:
        page = [await thread_out(graphs, await find_thread(graphs, owner, row["thread_id"])) for row in page]
    headers = pagination_headers(len(rows), offset=body.offset, limit=body.limit)
    return LangGraphResponse(_select(page, body), headers=headers)


def _select(page: list[JsonObject], body: ThreadSearch) -> list[JsonObject]:
    selected = select_fields(page, body.select)
    if not body.extract:
        return selected
    found = [{name: _value_at(to_plain(row), path) for name, path in body.extract.items()} for row in page]
    return [{**row, "extracted": extracted} for row, extracted in zip(selected, found, strict=True)]


def _value_at(value: Any, path: str) -> Any:
    """The value at a path such as `values.messages[-1].content`, or None."""
    for step in path.replace("[", ".").replace("]", "").split("."):
        if isinstance(value, dict):
            value = value.get(step)
        elif isinstance(value, list) and step.lstrip("-").isdecimal() and -len(value) <= int(step) < len(value):
            value = value[int(step)]
        else:
            return None
    return value


@router.post("/threads/count")
async def count_threads(body: ThreadFilter, graphs: GraphsDep, owner: OwnerDep) -> Response:
    """Count threads."""
    count = 0
    async for _ in _matching_threads(graphs, owner, body, None, whole=False):
        count += 1
    return LangGraphResponse(count)
