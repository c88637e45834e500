"""/threads/{id}/state and /history: the checkpoints of a thread, read and written.

A thread that no graph has run on has no checkpoints; its state is made from the log (`state_from_log`).
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Annotated, Any

from fastapi import APIRouter, Query
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.constants import START
from langgraph.types import PregelTask, StateSnapshot, StateUpdate
from langgraph_sdk.runtime import AccessContext
from pydantic import Field, ValidationError
from starlette.responses import Response

from everthread.conversation import Conversation
from everthread.core.errors import Conflict, EverthreadError, Invalid, NotFound, TurnRunning
from everthread.core.turns import Turn, TurnState
from everthread.http.dependencies import PathId, RequestModel
from everthread.http.full_history import Cursor, Limit, Merge, in_state_format
from everthread.http.protocol.builtin_assistant import NAME, state_from_log
from everthread.http.protocol.dependencies import GraphsDep, LangGraphResponse, ListParameter, ThreadDep
from everthread.http.protocol.graphs import Graph, OpenGraphs
from everthread.http.protocol.run_request import CheckpointRef
from everthread.http.protocol.serialization import JsonObject, checkpoint_out, parse_command, state_out, to_plain

router = APIRouter(tags=["LangGraph: threads"])


class StateWrite(RequestModel):
    """Values to write, as a node would."""

    values: list[Any] | dict[str, Any] | None = None
    as_node: str | None = Field(default=None, max_length=1000)
    checkpoint: CheckpointRef | None = None
    checkpoint_id: str | None = Field(default=None, max_length=128)


SelectedField = Annotated[str, Field(min_length=1, max_length=1000)]
_SELECT = "Only these members; `values.key` for one value of the state."


class StateQuery(RequestModel):
    """Which checkpoint."""

    checkpoint: CheckpointRef
    subgraphs: bool = False
    select: list[SelectedField] | None = Field(default=None, max_length=100, description=_SELECT)


class HistoryQuery(RequestModel):
    """Which checkpoints."""

    limit: int = Field(default=10, ge=1, le=1000)
    before: dict[str, Any] | str | None = Field(default=None, description="A checkpoint: its id, itself, or a config.")
    metadata: dict[str, Any] | None = None
    checkpoint: CheckpointRef | None = None
    select: list[SelectedField] | None = Field(default=None, max_length=100, description=_SELECT)


# -- reading ---------------------------------------------------------------------------------------------------------


def checkpoint_config(thread: Conversation, checkpoint: Mapping[str, Any] | None = None) -> RunnableConfig:
    """LangGraph's config for a thread, at a checkpoint."""
    return {"configurable": {"thread_id": thread.id, "checkpoint_ns": "", **(checkpoint or {})}}


def graph_id_of(graphs: OpenGraphs, thread: Conversation) -> str | None:
    """The graph that last ran on a thread, if it is served here. None for our own agent: its state is the log."""
    name = thread.metadata.get("graph_id")
    is_graph = isinstance(name, str) and name in graphs.catalog and name != NAME
    return name if is_graph else None


@asynccontextmanager
async def open_graph(
    graphs: OpenGraphs, thread: Conversation, config: RunnableConfig, access: AccessContext = "threads.read"
) -> AsyncIterator[Graph]:
    """The graph of a thread; Conflict when it has none yet."""
    graph_id = graph_id_of(graphs, thread)
    if graph_id is None:
        raise Conflict(f"thread {thread.id!r} has no graph yet; start a run on it, or set graph_id in its metadata")
    async with graphs.open(graph_id, thread.owner, config, access) as graph:
        yield graph


async def snapshot(
    graphs: OpenGraphs, thread: Conversation, config: RunnableConfig, *, subgraphs: bool = False
) -> StateSnapshot:
    """A checkpoint of a thread, read by its graph; where its schema refuses what is stored, as that is stored."""
    async with open_graph(graphs, thread, config) as graph:
        return await _snapshot(graph, config, subgraphs=subgraphs)


async def _snapshot(graph: Graph, config: RunnableConfig, *, subgraphs: bool = False) -> StateSnapshot:
    try:
        return await graph.aget_state(config, subgraphs=subgraphs)
    except (TypeError, ValueError) as problem:  # the schema was changed since, or its own check of an input failed
        assert isinstance(graph.checkpointer, BaseCheckpointSaver)
        saved = await graph.checkpointer.aget_tuple(config)
        if saved is None:
            raise NotFound(str(problem)) from problem  # the subgraph does not exist
        return _as_stored(graph, saved, f"the state does not fit the schema of the graph: {problem}")


def _as_stored(graph: Graph, saved: CheckpointTuple, problem: str) -> StateSnapshot:
    """A checkpoint as stored, without what only its graph knows: the next nodes."""
    checkpoint = saved.checkpoint
    found, names = checkpoint["channel_values"], graph.stream_channels_asis
    values = found.get(names) if isinstance(names, str) else {name: found[name] for name in names if name in found}
    task = PregelTask(checkpoint["id"], START, (), Exception(problem))
    return StateSnapshot(values, (), saved.config, saved.metadata, checkpoint["ts"], saved.parent_config, (task,), ())


async def read_state(
    graphs: OpenGraphs, thread: Conversation, checkpoint: Mapping[str, Any] | None = None, *, subgraphs: bool = False
) -> JsonObject:
    """The state of a thread; without a graph, its messages from the log."""
    if graph_id_of(graphs, thread) is None:
        return await state_from_log(graphs.saver(thread.owner), thread)
    config = checkpoint_config(thread, checkpoint)
    return state_out(await snapshot(graphs, thread, config, subgraphs=subgraphs))


SelectParameter = Annotated[list[SelectedField] | None, ListParameter, Query(max_length=100, description=_SELECT)]


def _selected(state: JsonObject, select: Sequence[str] | None) -> JsonObject:
    """The members of a state that were asked for; all of them if nothing was said."""
    if not select:
        return state
    keys = {name.removeprefix("values.") for name in select if name.startswith("values.")}
    values = to_plain(state["values"] or {}) if keys else {}
    found = {name: state[name] for name in state if name in select}
    if keys and "values" not in select and isinstance(values, dict):
        found["values"] = {key: value for key, value in values.items() if key in keys}
    return found


@router.get("/threads/{thread_id}/state")
async def get_state(
    thread: ThreadDep,
    graphs: GraphsDep,
    subgraphs: Annotated[bool, Query(description="Also the states of interrupted subgraphs.")] = False,
    cursor: Annotated[str | None, Query(max_length=32, description="`older_cursor` of a state from the log.")] = None,
    select: SelectParameter = None,
) -> Response:
    """The newest state. Where no graph has run: the newest 200 messages, from the log."""
    if cursor is not None:
        if graph_id_of(graphs, thread) is not None:
            raise Invalid("only allowed for threads that no graph has run on", field="cursor")
        state = await state_from_log(graphs.saver(thread.owner), thread, cursor)
        return LangGraphResponse(_selected(state, select))
    return LangGraphResponse(_selected(await read_state(graphs, thread, subgraphs=subgraphs), select))


@router.get("/threads/{thread_id}/state/{checkpoint_id}")
async def get_state_at(
    thread: ThreadDep,
    checkpoint_id: PathId,
    graphs: GraphsDep,
    subgraphs: Annotated[bool, Query()] = False,
    select: SelectParameter = None,
) -> Response:
    """The state at a checkpoint."""
    state = await read_state(graphs, thread, {"checkpoint_id": checkpoint_id}, subgraphs=subgraphs)
    return LangGraphResponse(_selected(state, select))


@router.post("/threads/{thread_id}/state/checkpoint")
async def post_state_at(thread: ThreadDep, body: StateQuery, graphs: GraphsDep) -> Response:
    """The state at a checkpoint, also one of a subgraph."""
    state = await read_state(graphs, thread, body.checkpoint.configurable(), subgraphs=body.subgraphs)
    return LangGraphResponse(_selected(state, body.select))


@router.get("/threads/{thread_id}/history")
async def get_history(
    thread: ThreadDep,
    graphs: GraphsDep,
    limit: Annotated[int, Query(ge=1, le=1000)] = 10,
    before: Annotated[
        str | None, Query(max_length=1024, description="The id of a checkpoint, or a checkpoint or config as JSON.")
    ] = None,
) -> Response:
    """States, newest first; or those before a checkpoint."""
    return LangGraphResponse(await _history(graphs, thread, HistoryQuery(limit=limit, before=before)))


@router.post("/threads/{thread_id}/history")
async def post_history(thread: ThreadDep, body: HistoryQuery, graphs: GraphsDep) -> Response:
    """States, newest first; by namespace, before a checkpoint, or by metadata."""
    return LangGraphResponse(await _history(graphs, thread, body))


async def _history(graphs: OpenGraphs, thread: Conversation, query: HistoryQuery) -> list[JsonObject]:
    if graph_id_of(graphs, thread) is None:
        return []
    config = checkpoint_config(thread, query.checkpoint.configurable() if query.checkpoint else None)
    before = None if query.before is None else checkpoint_config(thread, _checkpoint_before(query.before))
    async with open_graph(graphs, thread, config) as graph:
        found = _snapshots(graph, config, filter=query.metadata, before=before, limit=query.limit)
        return [_selected(state_out(one), query.select) async for one in found]


async def _snapshots(graph: Graph, config: RunnableConfig, **which: Any) -> AsyncIterator[StateSnapshot]:
    """The history of a thread, as its graph reads it; where it cannot read one of the checkpoints, each by itself."""
    try:
        found = [one async for one in graph.aget_state_history(config, **which)]
    except (TypeError, ValueError):
        assert isinstance(graph.checkpointer, BaseCheckpointSaver)
        saved = [one.config async for one in graph.checkpointer.alist(config, **which)]
        found = [await _snapshot(graph, one) for one in saved]
    for one in found:
        yield one


def _checkpoint_before(given: Mapping[str, Any] | str) -> JsonObject:
    """Clients name a checkpoint by its id, as itself, or as a config; in a query the last two are JSON."""
    if isinstance(given, str):
        try:
            given = json.loads(given) if given.startswith("{") else {"checkpoint_id": given}
        except ValueError:
            raise Invalid("is not valid JSON", field="before") from None
    assert isinstance(given, Mapping)
    try:
        found = CheckpointRef.model_validate(given.get("configurable", given)).configurable()
    except ValidationError as problem:
        raise Invalid(f"invalid checkpoint: {problem.errors()[0]['msg']}", field="before") from problem
    if not found.get("checkpoint_id"):  # ignored, it would give every page the same states, without end
        raise Invalid("must name a checkpoint: its id, or an object with a checkpoint_id", field="before")
    return found


@router.get("/threads/{thread_id}/full-history")
async def get_full_history(
    thread: ThreadDep, graphs: GraphsDep, merge_checkpoint: Merge = True, limit: Limit = None, cursor: Cursor = None
) -> Response:
    """Everything ever said in a thread: all messages, whatever was summarised or removed since."""
    saver = graphs.saver(thread.owner)
    history = await graphs.et.full_history(
        thread.id, thread.owner, merge_checkpoint=merge_checkpoint, saver=saver, limit=limit, cursor=cursor
    )
    return LangGraphResponse(in_state_format(history))


# -- writing ---------------------------------------------------------------------------------------------------------


@router.post("/threads/{thread_id}/state")
async def change_state(thread: ThreadDep, body: StateWrite, graphs: GraphsDep) -> Response:
    """Write to the state as a node would; returns the new checkpoint. 409 while a run goes on: its next step would not
    have what was written."""
    if await unfinished_run(thread) is not None:
        raise TurnRunning("a run of the thread is not finished, and nothing was written: wait for it, or cancel it")
    at = body.checkpoint.configurable() if body.checkpoint else {}
    if body.checkpoint_id:
        at["checkpoint_id"] = body.checkpoint_id
    config = checkpoint_config(thread, at)
    async with open_graph(graphs, thread, config, "threads.update") as graph:
        values: Any = body.values  # a list where the whole state is a list
        written = await _write(graph, config, [[StateUpdate(values, body.as_node)]])
    return LangGraphResponse(
        {"checkpoint": checkpoint_out(written), **written, "checkpoint_id": written["configurable"]["checkpoint_id"]}
    )


async def unfinished_run(thread: Conversation) -> Turn | None:
    """The run of a thread that is running or waiting, if any."""
    unfinished = (TurnState.RUNNING, TurnState.RECEIVED)
    return next(iter((await thread.turns(states=unfinished, limit=1)).items), None)


async def write_supersteps(graphs: OpenGraphs, thread: Conversation, supersteps: Sequence[Mapping[str, Any]]) -> None:
    """Give a new thread a history: what each step would have written."""
    config = checkpoint_config(thread)
    steps = [[_update(update) for update in step.get("updates", ())] for step in supersteps]
    async with open_graph(graphs, thread, config, "threads.update") as graph:
        await _write(graph, config, steps)


def _update(given: Mapping[str, Any]) -> StateUpdate:
    command = given.get("command")
    values: Any = parse_command(command) if command else given.get("values")
    return StateUpdate(values, given.get("as_node"))


async def _write(graph: Graph, config: RunnableConfig, steps: Sequence[Sequence[StateUpdate]]) -> JsonObject:
    try:
        made = await graph.abulk_update_state(config, steps)
    except EverthreadError:
        raise
    except Exception as problem:
        raise Invalid(f"rejected by the graph: {type(problem).__name__}: {problem}", field="values") from problem
    configurable = made["configurable"]
    kept = ("thread_id", "checkpoint_ns", "checkpoint_id", "checkpoint_map")
    return {"configurable": {name: configurable[name] for name in kept if name in configurable}}
