"""Joining a thread: what its runs tell, one run after the other, until the reader leaves.

An event's id names its run and its place there, so whoever comes back with `Last-Event-ID` gets the rest of that run
and every later one.

/threads/{id}/commands and /stream/events: the second version of the protocol.

A command begins a run or answers what a graph has asked; a stream tells everything of a thread, run after run, until
its reader leaves. Each event has a `seq` that counts through the whole thread: `since` brings exactly the rest.

LangGraph calls the streaming below it experimental; so is this.
"""

from __future__ import annotations

import asyncio
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
from everthread.core.turns import Turn, TurnQuery, TurnState
from everthread.http.dependencies import PathId, RequestModel
from everthread.http.protocol.dependencies import (
    EngineDep,
    GraphsDep,
    LangGraphResponse,
    OwnerDep,
    ThreadDep,
    find_thread,
)
from everthread.http.protocol.event_log import RunEvent
from everthread.http.protocol.graph_stream import END, ERROR, INTERRUPTS, METADATA, NAMESPACE, TIMESTAMP, VERSION_2
from everthread.http.protocol.graphs import OpenGraphs
from everthread.http.protocol.run_engine import RunEngine
from everthread.http.protocol.run_intents import HIDDEN, RUN_KIND
from everthread.http.protocol.run_request import RunBody
from everthread.http.protocol.runs import LastEventId, start_run
from everthread.http.protocol.serialization import JsonObject, dumps
from everthread.http.sse import EventStreamResponse

router = APIRouter()
ThreadMode = Literal["run_modes", "lifecycle", "state_update"]
_LOOK_SECONDS = 0.25
_MOST_RUNS = 1000
_PAGE = 20
_PLACE = re.compile(r"(\d{1,15})-(\d{1,15})")
_LIFECYCLE = frozenset({METADATA, ERROR, END})


class EventPosition(NamedTuple):
    """An event: the number of its run, and its own there."""

    run: int
    event: int


@router.get("/threads/{thread_id}/stream", tags=["LangGraph: runs"])
async def join_thread(
    one: ThreadDep,
    graphs: GraphsDep,
    engine: EngineDep,
    last_event_id: LastEventId = None,
    stream_mode: Annotated[
        list[ThreadMode], Query(description="All that runs tell, how they begin and end, or states only.")
    ] = ["run_modes"],  # noqa: B006
) -> Response:
    """Follow a thread until you leave: the runs that go on and those to come; after `Last-Event-ID`, the rest."""
    ref = Ref(one.owner, one.id)
    since = _place(last_event_id)

    async def frames() -> AsyncIterator[bytes]:
        async for run, told in _told(graphs, engine, ref, since):
            if _is_meant(told.kind, stream_mode):
                yield b"event: %b\ndata: %b\nid: %d-%d\n\n" % (told.kind.encode(), told.data, run, told.number)

    return EventStreamResponse(frames())


def _place(last_event_id: str | None) -> EventPosition | None:
    """None for what goes on now; clients write -1 for all there is."""
    if not last_event_id:
        return None
    if last_event_id in ("-1", "0"):
        return EventPosition(0, 0)
    if (found := _PLACE.fullmatch(last_event_id)) is None:
        raise Invalid("is no id of an event of a thread", field="Last-Event-ID")
    return EventPosition(int(found[1]), int(found[2]))


def _is_meant(kind: str, modes: list[ThreadMode]) -> bool:
    name = kind.partition("|")[0]
    return "run_modes" in modes or name in _LIFECYCLE or ("state_update" in modes and name == "values")


async def _told(
    graphs: OpenGraphs, engine: RunEngine, ref: Ref, since: EventPosition | None
) -> AsyncIterator[tuple[int, RunEvent]]:
    """What runs tell, each with the number of its run."""
    last = EventPosition(0, 0) if since is None else since
    is_past = since is None
    while True:
        waiting = await _runs(graphs, ref, last)
        for turn in waiting:
            after = last.event if turn.number == last.run else 0
            if not (is_past and turn.state.is_final):
                async for some in engine.follow(ref, turn.id, after):
                    for told in some:
                        yield turn.number, told
            last = EventPosition(turn.number + 1, 0)  # its next reader begins behind it
        is_past = False
        if not waiting:
            await asyncio.sleep(_LOOK_SECONDS)


async def _runs(graphs: OpenGraphs, ref: Ref, since: EventPosition) -> list[Turn]:
    """The thread's runs from a number on, the oldest first; whoever waits for the next one reads a page and no more."""
    found: list[Turn] = []
    before = None
    while len(found) < _MOST_RUNS:
        page = await graphs.et.store.turns.list(TurnQuery(ref.owner, ref.id, (), before, _PAGE))
        found += (turn for turn in page if turn.number >= since.run)
        if len(page) < _PAGE or page[-1].number <= since.run:
            break
        before = page[-1].number
    return [turn for turn in reversed(found) if turn.kind == RUN_KIND and not turn.metadata.get(HIDDEN)]


Channel = Literal["values", "updates", "messages", "tools", "custom", "lifecycle", "input", "tasks", "checkpoints"]


class Command(BaseModel):
    """What is to be done, and a number that the answer repeats."""

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

    def is_meant(self, event: JsonObject) -> bool:
        channel = "input" if event["method"] == "input.requested" else event["method"]
        place: list[str] = event["params"]["namespace"]
        return event["seq"] > self.since and channel in self.channels and self._is_inside(place)

    def _is_inside(self, place: Sequence[str]) -> bool:
        return any(
            list(place[: len(prefix)]) == prefix and (self.depth is None or len(place) - len(prefix) <= self.depth)
            for prefix in self.namespaces or [[]]
        )


# -- commands --------------------------------------------------------------------------------------------------------


@router.post("/threads/{thread_id}/commands", tags=["LangGraph: events"])
async def command(thread_id: PathId, body: Command, graphs: GraphsDep, engine: EngineDep, owner: OwnerDep) -> Response:
    """`run.start` begins a run, on a new thread if there is none; `input.respond` answers what a graph has asked."""
    check_id(thread_id, "thread_id")
    if body.method == "run.start":
        begin = {"if_not_exists": "create", **body.params}
    else:
        one = await find_thread(graphs, owner, thread_id)
        if body.method != "input.respond":
            problem = {"error": "unknown_command", "message": f"there is no command {body.method}"}
            return LangGraphResponse({"type": "error", "id": body.id, **problem})
        begin = {"assistant_id": one.metadata.get("assistant_id", ""), "command": {"resume": _answers(body.params)}}
    try:
        turn = await start_run(graphs, engine, owner, thread_id, RunBody.model_validate(begin), version=2)
    except (EverthreadError, ValueError) as problem_:
        return LangGraphResponse(
            {"type": "error", "id": body.id, "error": "invalid_argument", "message": str(problem_)}
        )
    result = {"run_id": turn.id} if body.method == "run.start" else {}
    return LangGraphResponse({"type": "success", "id": body.id, "result": result, "meta": {"applied_through_seq": 0}})


def _answers(params: JsonObject) -> JsonObject:
    """Answers by the id of what was asked."""
    listed = params.get("responses") or [params]
    try:
        return {str(one["interrupt_id"]): one.get("response") for one in listed}
    except (KeyError, TypeError, AttributeError):
        raise Invalid("name the interrupt_id that is answered", field="params") from None


# -- events ----------------------------------------------------------------------------------------------------------


@router.post("/threads/{thread_id}/stream/events", tags=["LangGraph: events"])
async def stream_events(one: ThreadDep, body: EventsQuery, graphs: GraphsDep, engine: EngineDep) -> Response:
    """Everything that runs of version 2 tell on a thread, from the first or after `since`, until the reader leaves."""

    async def frames() -> AsyncIterator[bytes]:
        async for event in _events(graphs, engine, one):
            if body.is_meant(event):
                yield b"event: %b\ndata: %b\nid: %d\n\n" % (event["method"].encode(), dumps(event), event["seq"])

    return EventStreamResponse(frames())


async def _events(graphs: OpenGraphs, engine: RunEngine, one: Conversation) -> AsyncIterator[JsonObject]:
    seq = 0
    told: set[str] = set()
    ref = Ref(one.owner, one.id)
    while True:
        waiting = [turn for turn in await _runs_v2(graphs, ref) if turn.id not in told]
        for turn in waiting:
            told.add(turn.id)
            async for method, params in _of_run(graphs, engine, ref, turn):
                seq += 1
                event_id = f"{turn.id}:{seq}"
                yield {"type": "event", "event_id": event_id, "seq": seq, "method": method, "params": params}
        if not waiting:
            await asyncio.sleep(_LOOK_SECONDS)


async def _runs_v2(graphs: OpenGraphs, ref: Ref) -> list[Turn]:
    """The thread's runs of this version, the oldest first."""
    found = await graphs.et.store.turns.list(TurnQuery(ref.owner, ref.id, (), None, 1000))
    ours = [turn for turn in found if turn.kind == RUN_KIND and not turn.metadata.get(HIDDEN)]
    return [turn for turn in reversed(ours) if turn.metadata.get("kwargs", {}).get("version") == 2]


async def _of_run(graphs: OpenGraphs, engine: RunEngine, ref: Ref, turn: Turn) -> AsyncIterator[tuple[str, JsonObject]]:
    """What one run tells: that it runs, what its graph says, what it asks for, and how it ended."""
    began = int((turn.started_at or turn.received_at).timestamp() * 1000)
    name = turn.metadata.get("metadata", {}).get("graph_id") or turn.metadata["kwargs"].get("graph_id")
    yield "lifecycle", _params(began, {"event": "running", "graph_name": name})
    asked: list[JsonObject] = []
    async for some in engine.follow(ref, turn.id):
        for one in some:
            if one.kind.startswith(VERSION_2):
                method, params, asked = _event(one, asked)
                yield method, params
    ended = await graphs.et.store.turns.get(ref, turn.id)
    now = int((ended.ended_at or ended.received_at).timestamp() * 1000)
    for interrupt in asked:
        yield "input.requested", _params(now, {"interrupt_id": interrupt["id"], "payload": interrupt["value"]})
    how = _ending(ended, is_asking=bool(asked))
    yield "lifecycle", _params(now, {"event": how, "graph_name": name, **_error(ended)})


def _event(one: RunEvent, asked: list[JsonObject]) -> tuple[str, JsonObject, list[JsonObject]]:
    """An event as its graph said it; `asked` is what the newest state waits for."""
    body = json.loads(one.data)
    method = one.kind.removeprefix(VERSION_2).partition("|")[0]
    place, moment = body.pop(NAMESPACE), body.pop(TIMESTAMP)
    now = body.pop(INTERRUPTS, None)
    data = body.pop("@data") if "@data" in body else body
    return method, _params(moment, data, place), now if method == "values" and not place and now is not None else asked


def _params(moment: int, data: Any, place: Sequence[str] = ()) -> JsonObject:
    return {"namespace": list(place), "timestamp": moment, "data": data}


def _ending(turn: Turn, *, is_asking: bool) -> str:
    if turn.state is TurnState.COMPLETE:
        return "interrupted" if is_asking else "completed"
    return "failed" if turn.state is TurnState.FAILED else "interrupted"


def _error(turn: Turn) -> JsonObject:
    if turn.state is not TurnState.FAILED or turn.error is None:
        return {}
    return {"error": json.loads(turn.error)["message"] if turn.error.startswith("{") else turn.error}
