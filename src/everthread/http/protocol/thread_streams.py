"""Streams of a whole thread: the events of its runs, one run after the other, until the reader disconnects.

/threads/{id}/stream, version 1: the id of an event is `run-number`, so `Last-Event-ID` brings the rest of that run and
every later one.

/threads/{id}/commands and /stream/events, version 2: a command starts a run or answers an interrupt. Events have a
`seq` that counts through the whole thread, and `since` brings exactly the rest. LangGraph calls the streaming below it
experimental; so is this.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Sequence
from typing import Annotated, Any, Literal, NamedTuple

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from everthread.conversation import Conversation
from everthread.core.errors import EverthreadError, Invalid
from everthread.core.ids import check_id
from everthread.core.nouns import Ref
from everthread.core.turn_events import END, ERROR
from everthread.core.turns import Turn, TurnState
from everthread.http.dependencies import PathId, RequestModel
from everthread.http.protocol.dependencies import (
    GraphRunsDep,
    GraphsDep,
    LangGraphResponse,
    ListParameter,
    OwnerDep,
    ThreadDep,
    find_thread,
)
from everthread.http.protocol.graph_runs import GraphRuns
from everthread.http.protocol.graph_stream import INTERRUPTS, METADATA, NAMESPACE, TIMESTAMP, VERSION_2
from everthread.http.protocol.run_events import RunEvent
from everthread.http.protocol.run_request import RunBody
from everthread.http.protocol.run_rows import is_visible_run
from everthread.http.protocol.runs import LastEventId, start_run
from everthread.http.protocol.serialization import JsonObject, dumps
from everthread.http.sse import EventStreamResponse, encode_frame
from everthread.runs.stored_events import POLL_SECONDS

router = APIRouter()
ThreadMode = Literal["run_modes", "lifecycle", "state_update"]
_MAX_RUNS = 1000
_PAGE = 20
_EVENT_ID = re.compile(r"(\d{1,15})-(\d{1,15})")
_LIFECYCLE = frozenset({METADATA, ERROR, END})


class EventPosition(NamedTuple):
    """An event of a thread: the number of its run, and its own number there."""

    run: int
    event: int


@router.get("/threads/{thread_id}/stream", tags=["LangGraph: runs"])
async def join_thread(
    thread: ThreadDep,
    graph_runs: GraphRunsDep,
    last_event_id: LastEventId = None,
    stream_mode: Annotated[
        list[ThreadMode],
        ListParameter,
        Query(description="All events of runs, only how they begin and end, or only states."),
    ] = ["run_modes"],  # noqa: B006
) -> Response:
    """Stream a thread until you disconnect: the current runs and those to come; or the rest after `Last-Event-ID`."""
    since = _position(last_event_id)

    async def frames() -> AsyncIterator[bytes]:
        async for run, event in _follow_runs(graph_runs, thread, since):
            if _is_in_modes(event.kind, stream_mode):
                yield encode_frame(event.kind, event.data, f"{run}-{event.number}")

    return EventStreamResponse(frames())


def _position(last_event_id: str | None) -> EventPosition | None:
    """None to start with the current runs; clients send -1 for everything there is."""
    if not last_event_id:
        return None
    if last_event_id in ("-1", "0"):
        return EventPosition(0, 0)
    if (found := _EVENT_ID.fullmatch(last_event_id)) is None:
        raise Invalid("must be the id of an event of this thread", field="Last-Event-ID")
    return EventPosition(int(found[1]), int(found[2]))


def _is_in_modes(kind: str, modes: list[ThreadMode]) -> bool:
    name = kind.partition("|")[0]
    return "run_modes" in modes or name in _LIFECYCLE or ("state_update" in modes and name == "values")


async def _follow_runs(
    graph_runs: GraphRuns, thread: Conversation, since: EventPosition | None
) -> AsyncIterator[tuple[int, RunEvent]]:
    """The events of runs, each with the number of its run."""
    last = EventPosition(0, 0) if since is None else since
    skips_ended = since is None
    ref = Ref(thread.owner, thread.id)
    with graph_runs.watched(ref) as watch:
        while True:
            watch.clear()
            waiting = await _runs(thread, last)
            for turn in waiting:
                after = last.event if turn.number == last.run else 0
                if not (skips_ended and turn.state.is_final):
                    async for batch in graph_runs.follow(ref, turn.id, after):
                        for event in batch:
                            yield turn.number, event
                last = EventPosition(turn.number + 1, 0)
            skips_ended = False
            if not waiting:
                await watch.wait(POLL_SECONDS)


async def _runs(thread: Conversation, since: EventPosition) -> list[Turn]:
    """The thread's runs from a number on, oldest first. Usually there is no new one, and one page is read."""
    found: list[Turn] = []
    cursor = None
    while len(found) < _MAX_RUNS:
        page = await thread.turns(cursor=cursor, limit=_PAGE)
        found += (turn for turn in page.items if turn.number >= since.run)
        if (cursor := page.next_cursor) is None or page.items[-1].number <= since.run:
            break
    return [turn for turn in reversed(found) if is_visible_run(turn)]


Channel = Literal["values", "updates", "messages", "tools", "custom", "lifecycle", "input", "tasks", "checkpoints"]


class Command(BaseModel):
    """A command, with an id that the response repeats."""

    model_config = ConfigDict(extra="ignore")

    id: int
    method: str = Field(max_length=100)
    params: dict[str, Any] = Field(default_factory=dict)


class EventsQuery(RequestModel):
    """Which events of a thread."""

    channels: list[Channel] = Field(min_length=1)
    namespaces: list[list[str]] | None = None
    depth: int | None = Field(default=None, ge=0)
    since: int = Field(default=0, ge=0)

    def matches(self, event: JsonObject) -> bool:
        channel = "input" if event["method"] == "input.requested" else event["method"]
        namespace: list[str] = event["params"]["namespace"]
        return event["seq"] > self.since and channel in self.channels and self._is_inside(namespace)

    def _is_inside(self, namespace: Sequence[str]) -> bool:
        return any(
            list(namespace[: len(prefix)]) == prefix
            and (self.depth is None or len(namespace) - len(prefix) <= self.depth)
            for prefix in self.namespaces or [[]]
        )


# -- commands --------------------------------------------------------------------------------------------------------


@router.post("/threads/{thread_id}/commands", tags=["LangGraph: events"])
async def command(
    thread_id: PathId, body: Command, graphs: GraphsDep, graph_runs: GraphRunsDep, owner: OwnerDep
) -> Response:
    """`run.start` starts a run, on a new thread if there is none; `input.respond` answers an interrupt."""
    check_id(thread_id, "thread_id")
    if body.method == "run.start":
        run = {"if_not_exists": "create", **body.params}
    else:
        thread = await find_thread(graphs, owner, thread_id)
        if body.method != "input.respond":
            problem = {"error": "unknown_command", "message": f"unknown command {body.method!r}"}
            return LangGraphResponse({"type": "error", "id": body.id, **problem})
        run = {
            "assistant_id": thread.metadata.get("assistant_id", ""),
            "command": {"resume": _interrupt_answers(body.params)},
        }
    try:
        turn = await start_run(graphs, graph_runs, owner, thread_id, RunBody.model_validate(run), version=2)
    except (EverthreadError, ValueError) as problem_:
        return LangGraphResponse(
            {"type": "error", "id": body.id, "error": "invalid_argument", "message": str(problem_)}
        )
    result = {"run_id": turn.id} if body.method == "run.start" else {}
    return LangGraphResponse({"type": "success", "id": body.id, "result": result, "meta": {"applied_through_seq": 0}})


def _interrupt_answers(params: JsonObject) -> JsonObject:
    """Answers by the id of their interrupt."""
    listed = params.get("responses") or [params]
    try:
        return {str(one["interrupt_id"]): one.get("response") for one in listed}
    except (KeyError, TypeError, AttributeError):
        raise Invalid("interrupt_id is required", field="params") from None


# -- events ----------------------------------------------------------------------------------------------------------


@router.post("/threads/{thread_id}/stream/events", tags=["LangGraph: events"])
async def stream_events(thread: ThreadDep, body: EventsQuery, graph_runs: GraphRunsDep) -> Response:
    """The events of all version 2 runs of a thread, from the first or after `since`, until you disconnect."""

    async def frames() -> AsyncIterator[bytes]:
        async for event in _thread_events(graph_runs, thread):
            if body.matches(event):
                yield encode_frame(event["method"], dumps(event), str(event["seq"]))

    return EventStreamResponse(frames())


async def _thread_events(graph_runs: GraphRuns, thread: Conversation) -> AsyncIterator[JsonObject]:
    seq = 0
    seen: set[str] = set()
    with graph_runs.watched(Ref(thread.owner, thread.id)) as watch:
        while True:
            watch.clear()
            waiting = [turn for turn in await _runs_v2(thread) if turn.id not in seen]
            for turn in waiting:
                seen.add(turn.id)
                async for method, params in _run_events(graph_runs, thread, turn):
                    seq += 1
                    event_id = f"{turn.id}:{seq}"
                    yield {"type": "event", "event_id": event_id, "seq": seq, "method": method, "params": params}
            if not waiting:
                await watch.wait(POLL_SECONDS)


async def _runs_v2(thread: Conversation) -> list[Turn]:
    """The thread's version 2 runs, oldest first."""
    found = (await thread.turns(limit=_MAX_RUNS)).items
    return [
        turn for turn in reversed(found) if is_visible_run(turn) and turn.metadata.get("kwargs", {}).get("version") == 2
    ]


async def _run_events(graph_runs: GraphRuns, thread: Conversation, turn: Turn) -> AsyncIterator[tuple[str, JsonObject]]:
    """The events of one run: that it runs, what its graph streams, its interrupts, and how it ended."""
    began = int((turn.started_at or turn.received_at).timestamp() * 1000)
    name = turn.metadata.get("metadata", {}).get("graph_id") or turn.metadata["kwargs"].get("graph_id")
    yield "lifecycle", _params(began, {"event": "running", "graph_name": name})
    interrupts: list[JsonObject] = []
    async for batch in graph_runs.follow(Ref(thread.owner, thread.id), turn.id):
        for event in batch:
            if event.kind.startswith(VERSION_2):
                method, params, interrupts = _event(event, interrupts)
                yield method, params
    ended = await thread.turn(turn.id)
    now = int((ended.ended_at or ended.received_at).timestamp() * 1000)
    for interrupt in interrupts:
        yield "input.requested", _params(now, {"interrupt_id": interrupt["id"], "payload": interrupt["value"]})
    how = _ending(ended, is_interrupted=bool(interrupts))
    yield "lifecycle", _params(now, {"event": how, "graph_name": name, **_error(ended)})


def _event(event: RunEvent, interrupts: list[JsonObject]) -> tuple[str, JsonObject, list[JsonObject]]:
    """An event as its graph streamed it, and the interrupts of the newest state."""
    body = json.loads(event.data)
    method = event.kind.removeprefix(VERSION_2).partition("|")[0]
    namespace, timestamp = body.pop(NAMESPACE), body.pop(TIMESTAMP)
    newest = body.pop(INTERRUPTS, None)
    data = body.pop("@data") if "@data" in body else body
    is_whole_state = method == "values" and not namespace and newest is not None
    return method, _params(timestamp, data, namespace), newest if is_whole_state else interrupts


def _params(timestamp: int, data: Any, namespace: Sequence[str] = ()) -> JsonObject:
    return {"namespace": list(namespace), "timestamp": timestamp, "data": data}


def _ending(turn: Turn, *, is_interrupted: bool) -> str:
    if turn.state is TurnState.COMPLETE:
        return "interrupted" if is_interrupted else "completed"
    return "failed" if turn.state is TurnState.FAILED else "interrupted"


def _error(turn: Turn) -> JsonObject:
    if turn.state is not TurnState.FAILED or turn.error is None:
        return {}
    return {"error": json.loads(turn.error)["message"] if turn.error.startswith("{") else turn.error}
