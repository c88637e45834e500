"""What every route of the protocol takes: the owner, the graphs, the runs, and the thread or run that a path names."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import Depends, Request
from pydantic import BeforeValidator
from starlette.responses import Response

from everthread.conversation import Conversation
from everthread.core.errors import NotFound
from everthread.core.ids import check_id
from everthread.core.nouns import Ref
from everthread.core.turns import Turn
from everthread.http.dependencies import CallerDep, PathId
from everthread.http.protocol.graph_runs import GraphRuns
from everthread.http.protocol.graphs import OpenGraphs
from everthread.http.protocol.run_rows import is_visible_run
from everthread.http.protocol.serialization import dumps
from everthread.http.protocol.server_state import ProtocolState


class LangGraphResponse(Response):
    """JSON of whatever a graph's state holds."""

    media_type = "application/json"

    def render(self, content: object) -> bytes:
        return dumps(content)


async def _owner(caller: CallerDep) -> str:
    return caller.owner


async def _graphs(request: Request) -> OpenGraphs:
    state: ProtocolState = request.app.state.langgraph
    return state.graphs


async def _graph_runs(request: Request) -> GraphRuns:
    state: ProtocolState = request.app.state.langgraph
    return state.graph_runs


def _split_list(given: object) -> object:
    """Python's client repeats a parameter for each value; JavaScript's sends all of them as JSON in one."""
    if isinstance(given, list) and len(given) == 1 and str(given[0]).startswith("["):
        try:
            return json.loads(given[0])
        except (ValueError, RecursionError):  # then it is one value, which its own check refuses
            return given
    return given


EVENT_STREAM: dict[int | str, dict[str, Any]] = {
    200: {"description": "Events as they come, each with its id.", "content": {"text/event-stream": {}}}
}
"""The `responses` of a route that answers with a stream; its `response_class` is `Response`."""
ListParameter = BeforeValidator(_split_list)
"""For every query parameter that is a list."""
OwnerDep = Annotated[str, Depends(_owner)]
GraphsDep = Annotated[OpenGraphs, Depends(_graphs)]
GraphRunsDep = Annotated[GraphRuns, Depends(_graph_runs)]


async def find_thread(graphs: OpenGraphs, owner: str, id: str) -> Conversation:
    """The conversation with this id; NotFound also when it was deleted or belongs to another owner."""
    try:
        found = await graphs.et.conversations.get(id, owner)
    except NotFound:
        found = None
    if found is None or found.is_deleted:
        raise NotFound(f"thread {id!r} not found")
    return found


async def _thread(request: Request, thread_id: PathId, graphs: GraphsDep, owner: OwnerDep) -> Conversation:
    found = await find_thread(graphs, owner, thread_id)
    request.state.conversation = found.id
    return found


async def _run(thread_id: PathId, run_id: PathId, graphs: GraphsDep, owner: OwnerDep) -> Turn:
    """Reads the row, not the conversation: a stateless run deletes its thread, and its followers may come back."""
    ref = Ref(owner, check_id(thread_id, "thread_id"))
    try:
        turn = await graphs.et.store.turns.get(ref, check_id(run_id, "run_id"))
    except NotFound:
        turn = None
    if turn is None or not is_visible_run(turn):
        raise NotFound(f"run {run_id!r} of thread {thread_id!r} not found")
    return turn


ThreadDep = Annotated[Conversation, Depends(_thread)]
RunDep = Annotated[Turn, Depends(_run)]


def pagination_headers(total: int, *, offset: int, limit: int) -> dict[str, str]:
    """What a search says beside its page: how many there are and, if there are more, where the next page begins."""
    more = {"X-Pagination-Next": str(offset + limit)} if offset + limit < total else {}
    return {"X-Pagination-Total": str(total), **more}


def select_fields(rows: Sequence[dict[str, Any]], select: Sequence[str] | None) -> list[dict[str, Any]]:
    """Only the selected fields of each row; all of them without a selection."""
    return list(rows) if not select else [{name: row[name] for name in select if name in row} for row in rows]
