"""/threads/{id}/state and /history: a thread's checkpoints, read, written and gone back to."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Annotated, Any

from fastapi import APIRouter, Query
from langchain_core.runnables import RunnableConfig
from langgraph.errors import InvalidUpdateError
from langgraph.types import StateSnapshot, StateUpdate
from pydantic import Field
from starlette.responses import Response

from everthread.conversation import Conversation
from everthread.core.errors import Conflict, Invalid
from everthread.http.asking import ALWAYS, Body, Id
from everthread.http.errors import EVERYWHERE
from everthread.http.full_history import Cursor, Limit, Merge
from everthread.http.protocol.asked import CheckpointAsked
from everthread.http.protocol.doors import Answer, ServedHere, Thread
from everthread.http.protocol.graphs import Graph
from everthread.http.protocol.own import NAME
from everthread.http.protocol.projecting import projected
from everthread.http.protocol.served import Served
from everthread.http.protocol.wire import Json, checkpoint_of, command_of, state_of

router = APIRouter(tags=["LangGraph: threads"], dependencies=ALWAYS, responses=EVERYWHERE)


class StateChanges(Body):
    """Values that a node would have written."""

    values: list[Any] | dict[str, Any] | None = None
    as_node: str | None = Field(default=None, max_length=1000)
    checkpoint: CheckpointAsked | None = None
    checkpoint_id: str | None = Field(default=None, max_length=128)


class StateAsked(Body):
    """A checkpoint to be shown."""

    checkpoint: CheckpointAsked
    subgraphs: bool = False


class HistoryAsked(Body):
    """Which checkpoints."""

    limit: int = Field(default=10, ge=1, le=1000)
    before: CheckpointAsked | str | None = None
    metadata: dict[str, Any] | None = None
    checkpoint: CheckpointAsked | None = None


# -- reading ---------------------------------------------------------------------------------------------------------


def config_of(thread: Conversation, checkpoint: Mapping[str, Any] | None = None) -> RunnableConfig:
    """Where a thread's checkpoints are."""
    return {"configurable": {"thread_id": thread.id, "checkpoint_ns": "", **(checkpoint or {})}}


def graph_of(served: Served, thread: Conversation) -> str | None:
    """The graph that a thread was last run with, if it is served here and has a state of its own: what our own agent
    says is in the log."""
    named = thread.metadata.get("graph_id")
    is_graph = isinstance(named, str) and named in served.graphs and named != NAME
    return named if is_graph else None


@asynccontextmanager
async def graph_over(served: Served, thread: Conversation, config: RunnableConfig) -> AsyncIterator[Graph]:
    """The thread's graph; Conflict when it has none yet."""
    graph_id = graph_of(served, thread)
    if graph_id is None:
        raise Conflict(f"thread {thread.id!r} has no graph yet: run one on it first, or name one in its metadata")
    async with served.opened(graph_id, thread.owner, config) as graph:
        yield graph


async def snapshot(
    served: Served, thread: Conversation, config: RunnableConfig, *, subgraphs: bool = False
) -> StateSnapshot:
    """A checkpoint of a thread, as its graph reads it."""
    async with graph_over(served, thread, config) as graph:
        return await graph.aget_state(config, subgraphs=subgraphs)


async def state(
    served: Served, thread: Conversation, checkpoint: Mapping[str, Any] | None = None, *, subgraphs: bool = False
) -> Json:
    """A thread's state; without a graph, its messages from the log."""
    if graph_of(served, thread) is None:
        return await projected(served.et, thread)
    config = config_of(thread, checkpoint)
    return state_of(await snapshot(served, thread, config, subgraphs=subgraphs))


@router.get("/threads/{thread_id}/state")
async def get_state(
    thread: Thread,
    served: ServedHere,
    subgraphs: Annotated[bool, Query(description="Also the states of subgraphs that wait.")] = False,
    cursor: Annotated[str | None, Query(max_length=32, description="`older_cursor` of a state from the log.")] = None,
) -> Response:
    """The newest state. Of a conversation that no graph has run on: its newest 200 messages, from the log."""
    if cursor is not None:
        if graph_of(served, thread) is not None:
            raise Invalid("is for states from the log; this one is whole", field="cursor")
        return Answer(await projected(served.et, thread, cursor))
    return Answer(await state(served, thread, subgraphs=subgraphs))


@router.get("/threads/{thread_id}/state/{checkpoint_id}")
async def get_state_at(
    thread: Thread, checkpoint_id: Id, served: ServedHere, subgraphs: Annotated[bool, Query()] = False
) -> Response:
    """The state at a checkpoint."""
    return Answer(await state(served, thread, {"checkpoint_id": checkpoint_id}, subgraphs=subgraphs))


@router.post("/threads/{thread_id}/state/checkpoint")
async def post_state_at(thread: Thread, body: StateAsked, served: ServedHere) -> Response:
    """The state at a checkpoint, also one of a subgraph."""
    return Answer(await state(served, thread, body.checkpoint.configurable(), subgraphs=body.subgraphs))


@router.get("/threads/{thread_id}/history")
async def get_history(
    thread: Thread,
    served: ServedHere,
    limit: Annotated[int, Query(ge=1, le=1000)] = 10,
    before: Annotated[str | None, Query(max_length=128, description="A checkpoint's id.")] = None,
) -> Response:
    """States, the newest first."""
    return Answer(await _history(served, thread, HistoryAsked(limit=limit, before=before)))


@router.post("/threads/{thread_id}/history")
async def post_history(thread: Thread, body: HistoryAsked, served: ServedHere) -> Response:
    """States, the newest first; of a namespace, before a checkpoint, by their metadata."""
    return Answer(await _history(served, thread, body))


async def _history(served: Served, thread: Conversation, asked: HistoryAsked) -> list[Json]:
    if graph_of(served, thread) is None:
        return []
    config = config_of(thread, asked.checkpoint.configurable() if asked.checkpoint else None)
    before = asked.before
    at = {"checkpoint_id": before} if isinstance(before, str) else before.configurable() if before else None
    async with graph_over(served, thread, config) as graph:
        found = graph.aget_state_history(
            config, filter=asked.metadata, before=None if at is None else config_of(thread, at), limit=asked.limit
        )
        return [state_of(one) async for one in found]


@router.get("/threads/{thread_id}/full-history")
async def get_full_history(
    thread: Thread, served: ServedHere, merge_checkpoint: Merge = True, limit: Limit = None, cursor: Cursor = None
) -> Response:
    """Everything that was said in a thread: all messages, whatever was summarised or removed since."""
    saver = served.saver(thread.owner)
    return Answer(
        await served.et.full_history(
            thread.id, thread.owner, merge_checkpoint=merge_checkpoint, saver=saver, limit=limit, cursor=cursor
        )
    )


# -- writing ---------------------------------------------------------------------------------------------------------


@router.post("/threads/{thread_id}/state")
async def change_state(thread: Thread, body: StateChanges, served: ServedHere) -> Response:
    """Write to the state as a node would; the answer names the checkpoint that was made."""
    at = body.checkpoint.configurable() if body.checkpoint else {}
    if body.checkpoint_id:
        at["checkpoint_id"] = body.checkpoint_id
    config = config_of(thread, at)
    async with graph_over(served, thread, config) as graph:
        values: Any = body.values  # a list, where the state is one
        made = await _written(graph, config, [[StateUpdate(values, body.as_node)]])
    return Answer({"checkpoint": checkpoint_of(made), **made, "checkpoint_id": made["configurable"]["checkpoint_id"]})


async def build(served: Served, thread: Conversation, supersteps: Sequence[Mapping[str, Any]]) -> None:
    """Give a new thread a past: what each step would have written."""
    config = config_of(thread)
    steps = [[_update(update) for update in step.get("updates", ())] for step in supersteps]
    async with graph_over(served, thread, config) as graph:
        await _written(graph, config, steps)


def _update(given: Mapping[str, Any]) -> StateUpdate:
    command = given.get("command")
    values: Any = command_of(command) if command else given.get("values")
    return StateUpdate(values, given.get("as_node"))


async def _written(graph: Graph, config: RunnableConfig, steps: Sequence[Sequence[StateUpdate]]) -> Json:
    try:
        made = await graph.abulk_update_state(config, steps)
    except (InvalidUpdateError, ValueError, KeyError) as problem:
        raise Invalid(f"the graph does not take it: {problem}", field="values") from problem
    configurable = made["configurable"]
    kept = ("thread_id", "checkpoint_ns", "checkpoint_id")
    return {"configurable": {name: configurable[name] for name in kept if name in configurable}}
