"""/threads/{id}/commands and /stream/events: the second version of the protocol.

A command begins a run or answers what a graph has asked; a stream tells everything of a thread, run after run, until
its reader leaves. Each event has a `seq` that counts through the whole thread: `since` brings exactly the rest.

LangGraph calls the streaming below it experimental; so is this.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from typing import Any, Literal

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from everthread.conversation import Conversation
from everthread.core.errors import EverthreadError, Invalid
from everthread.core.ids import check_id
from everthread.core.nouns import Ref
from everthread.core.turns import Turn, TurnQuery, TurnState
from everthread.http.asking import ALWAYS, Body, Id
from everthread.http.errors import EVERYWHERE
from everthread.http.journal import Told
from everthread.http.protocol.asked import RunBody
from everthread.http.protocol.doors import Answer, Owner, RunningHere, ServedHere, Thread, thread
from everthread.http.protocol.executing import INTERRUPTS, NAMESPACE, TIMESTAMP, VERSION_2
from everthread.http.protocol.rows import HIDDEN, KIND
from everthread.http.protocol.running import Running
from everthread.http.protocol.runs import begun_on
from everthread.http.protocol.served import Served
from everthread.http.protocol.wire import Json, dumps
from everthread.http.streaming import EventStream

router = APIRouter(tags=["LangGraph: events"], dependencies=ALWAYS, responses=EVERYWHERE)
Channel = Literal["values", "updates", "messages", "tools", "custom", "lifecycle", "input", "tasks", "checkpoints"]
_LOOK_SECONDS = 0.25


class Command(BaseModel):
    """What is to be done, and a number that the answer repeats."""

    model_config = ConfigDict(extra="ignore")

    id: int
    method: str = Field(max_length=100)
    params: dict[str, Any] = Field(default_factory=dict)


class EventsAsked(Body):
    """Which events of a thread."""

    channels: list[Channel] = Field(min_length=1)
    namespaces: list[list[str]] | None = None
    depth: int | None = Field(default=None, ge=0)
    since: int = Field(default=0, ge=0)

    def is_meant(self, event: Json) -> bool:
        channel = "input" if event["method"] == "input.requested" else event["method"]
        place: list[str] = event["params"]["namespace"]
        return event["seq"] > self.since and channel in self.channels and self._is_inside(place)

    def _is_inside(self, place: Sequence[str]) -> bool:
        return any(
            list(place[: len(prefix)]) == prefix and (self.depth is None or len(place) - len(prefix) <= self.depth)
            for prefix in self.namespaces or [[]]
        )


# -- commands --------------------------------------------------------------------------------------------------------


@router.post("/threads/{thread_id}/commands")
async def command(thread_id: Id, body: Command, served: ServedHere, running: RunningHere, owner: Owner) -> Response:
    """`run.start` begins a run, on a new thread if there is none; `input.respond` answers what a graph has asked."""
    check_id(thread_id, "thread_id")
    if body.method == "run.start":
        begin = {"if_not_exists": "create", **body.params}
    else:
        one = await thread(served, owner, thread_id)
        if body.method != "input.respond":
            problem = {"error": "unknown_command", "message": f"there is no command {body.method}"}
            return Answer({"type": "error", "id": body.id, **problem})
        begin = {"assistant_id": one.metadata.get("assistant_id", ""), "command": {"resume": _answers(body.params)}}
    try:
        turn = await begun_on(served, running, owner, thread_id, RunBody.model_validate(begin), version=2)
    except (EverthreadError, ValueError) as problem_:
        return Answer({"type": "error", "id": body.id, "error": "invalid_argument", "message": str(problem_)})
    result = {"run_id": turn.id} if body.method == "run.start" else {}
    return Answer({"type": "success", "id": body.id, "result": result, "meta": {"applied_through_seq": 0}})


def _answers(params: Json) -> Json:
    """Answers by the id of what was asked."""
    listed = params.get("responses") or [params]
    try:
        return {str(one["interrupt_id"]): one.get("response") for one in listed}
    except (KeyError, TypeError, AttributeError):
        raise Invalid("name the interrupt_id that is answered", field="params") from None


# -- events ----------------------------------------------------------------------------------------------------------


@router.post("/threads/{thread_id}/stream/events")
async def stream_events(one: Thread, body: EventsAsked, served: ServedHere, running: RunningHere) -> Response:
    """Everything that runs of version 2 tell on a thread, from the first or after `since`, until the reader leaves."""

    async def frames() -> AsyncIterator[bytes]:
        async for event in _events(served, running, one):
            if body.is_meant(event):
                yield b"event: %b\ndata: %b\nid: %d\n\n" % (event["method"].encode(), dumps(event), event["seq"])

    return EventStream(frames())


async def _events(served: Served, running: Running, one: Conversation) -> AsyncIterator[Json]:
    seq = 0
    told: set[str] = set()
    ref = Ref(one.owner, one.id)
    while True:
        waiting = [turn for turn in await _runs(served, ref) if turn.id not in told]
        for turn in waiting:
            told.add(turn.id)
            async for method, params in _of_run(served, running, ref, turn):
                seq += 1
                event_id = f"{turn.id}:{seq}"
                yield {"type": "event", "event_id": event_id, "seq": seq, "method": method, "params": params}
        if not waiting:
            await asyncio.sleep(_LOOK_SECONDS)


async def _runs(served: Served, ref: Ref) -> list[Turn]:
    """The thread's runs of this version, the oldest first."""
    found = await served.et.store.turns(TurnQuery(ref.owner, ref.id, (), None, 1000))
    ours = [turn for turn in found if turn.kind == KIND and not turn.metadata.get(HIDDEN)]
    return [turn for turn in reversed(ours) if turn.metadata.get("kwargs", {}).get("version") == 2]


async def _of_run(served: Served, running: Running, ref: Ref, turn: Turn) -> AsyncIterator[tuple[str, Json]]:
    """What one run tells: that it runs, what its graph says, what it asks for, and how it ended."""
    began = int((turn.started_at or turn.received_at).timestamp() * 1000)
    name = turn.metadata.get("metadata", {}).get("graph_id") or turn.metadata["kwargs"].get("graph_id")
    yield "lifecycle", _params(began, {"event": "running", "graph_name": name})
    asked: list[Json] = []
    async for some in running.follow(ref, turn.id):
        for one in some:
            if one.kind.startswith(VERSION_2):
                method, params, asked = _event(one, asked)
                yield method, params
    ended = await served.et.store.turn(ref, turn.id)
    now = int((ended.ended_at or ended.received_at).timestamp() * 1000)
    for interrupt in asked:
        yield "input.requested", _params(now, {"interrupt_id": interrupt["id"], "payload": interrupt["value"]})
    how = _ending(ended, is_asking=bool(asked))
    yield "lifecycle", _params(now, {"event": how, "graph_name": name, **_error(ended)})


def _event(one: Told, asked: list[Json]) -> tuple[str, Json, list[Json]]:
    """An event as its graph said it; `asked` is what the newest state waits for."""
    body = json.loads(one.shown)
    method = one.kind.removeprefix(VERSION_2).partition("|")[0]
    place, moment = body.pop(NAMESPACE), body.pop(TIMESTAMP)
    now = body.pop(INTERRUPTS, None)
    data = body.pop("@data") if "@data" in body else body
    return method, _params(moment, data, place), now if method == "values" and not place and now is not None else asked


def _params(moment: int, data: Any, place: Sequence[str] = ()) -> Json:
    return {"namespace": list(place), "timestamp": moment, "data": data}


def _ending(turn: Turn, *, is_asking: bool) -> str:
    if turn.state is TurnState.COMPLETE:
        return "interrupted" if is_asking else "completed"
    return "failed" if turn.state is TurnState.FAILED else "interrupted"


def _error(turn: Turn) -> Json:
    if turn.state is not TurnState.FAILED or turn.error is None:
        return {}
    return {"error": json.loads(turn.error)["message"] if turn.error.startswith("{") else turn.error}
