"""The second version of the protocol: /threads/{id}/commands and /threads/{id}/stream/events.

A command starts a run or answers an interrupt. Events have a `seq` that counts through the whole thread, and `since`
brings exactly the rest. LangGraph calls the streaming below it experimental; so is this.

What a graph streams is stored as it comes (`graph_stream`); `_EventTranslator` makes the protocol's events of it for
each reader. They depend on what is stored alone, so every reader gets the same ones under the same numbers:

    lifecycle        the run's own; and those of its subgraphs, with their namespaces
    input.requested  an interrupt, reported when the run has ended with it, so that the state has it too
    custom           what a node writes; `{name, payload}` where a transformer of the graph has a channel of its own
    messages         also what a tool has returned, beside the event of the tool itself
    others           as the graph streams them
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Annotated, Any, NamedTuple

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from starlette.responses import Response

from everthread.conversation import Conversation
from everthread.core.errors import EverthreadError, NotFound
from everthread.core.ids import check_id
from everthread.core.nouns import Ref
from everthread.core.turns import Turn, TurnState
from everthread.http.dependencies import PathId
from everthread.http.protocol import thread_state
from everthread.http.protocol.dependencies import (
    EVENT_STREAM,
    GraphRunsDep,
    GraphsDep,
    LangGraphResponse,
    OwnerDep,
    find_thread,
)
from everthread.http.protocol.graph_runs import GraphRuns
from everthread.http.protocol.graph_stream import INTERRUPTS, NAMESPACE, TIMESTAMP, VERSION_2
from everthread.http.protocol.graphs import OpenGraphs
from everthread.http.protocol.run_events import RunEvent
from everthread.http.protocol.run_request import RunBody
from everthread.http.protocol.run_rows import MAX_RUNS, run_error, visible_runs
from everthread.http.protocol.runs import start_run
from everthread.http.protocol.serialization import JsonObject, dumps
from everthread.http.protocol.threads import newest_run
from everthread.http.sse import EventStreamResponse, encode_frame
from everthread.runs.stored_events import POLL_SECONDS

router = APIRouter(tags=["LangGraph: events"])
_CUSTOM = "custom:"
Channel = Annotated[
    str,
    StringConstraints(
        pattern=r"^(values|updates|messages|tools|custom|lifecycle|input|tasks|checkpoints|custom:.+)$", max_length=1000
    ),
]
Namespace = tuple[str, ...]


class Command(BaseModel):
    """A command, with an id that the response repeats."""

    model_config = ConfigDict(extra="ignore")

    id: int
    method: str = Field(max_length=100)
    params: dict[str, Any] = Field(default_factory=dict)


class EventsQuery(BaseModel):
    """Which events of a thread. Unknown keys are ignored: clients send new ones with each release."""

    model_config = ConfigDict(extra="ignore")

    channels: list[Channel] = Field(min_length=1, max_length=1000)
    namespaces: list[list[str]] | None = None
    depth: int | None = Field(default=None, ge=0)
    since: int | None = Field(default=None, ge=0)

    def matches(self, event: JsonObject) -> bool:
        params = event["params"]
        return (
            event["seq"] > (self.since or 0)
            and self._has_channel(event["method"], params["data"])
            and any(self._is_inside(params["namespace"], prefix) for prefix in self.namespaces or [[]])
        )

    def _has_channel(self, method: str, data: Any) -> bool:
        channel = "input" if method == "input.requested" else method
        if channel == "custom" and isinstance(data, dict) and f"{_CUSTOM}{data.get('name')}" in self.channels:
            return True
        return channel in self.channels

    def _is_inside(self, namespace: Sequence[str], prefix: Sequence[str]) -> bool:
        """A step of a prefix may be the name of a node alone, without the id of its task."""
        is_below = len(prefix) <= len(namespace) and all(
            step in (found, found.partition(":")[0]) for step, found in zip(prefix, namespace, strict=False)
        )
        return is_below and (self.depth is None or len(namespace) - len(prefix) <= self.depth)


# -- commands --------------------------------------------------------------------------------------------------------


class _Refused(Exception):
    """A command that is answered with an error of the protocol."""

    def __init__(self, error: str, message: str) -> None:
        super().__init__(message)
        self.error = error


@router.post("/threads/{thread_id}/commands")
async def command(
    thread_id: PathId, body: Command, graphs: GraphsDep, graph_runs: GraphRunsDep, owner: OwnerDep
) -> Response:
    """`run.start` starts a run, on a new thread if there is none; `input.respond` answers an interrupt."""
    check_id(thread_id, "thread_id")
    try:
        if body.method == "run.start":
            run = await _run_to_start(graphs, owner, thread_id, body.params)
        elif body.method == "input.respond":
            run = await _run_to_resume(graphs, graph_runs, await find_thread(graphs, owner, thread_id), body.params)
        else:
            await find_thread(graphs, owner, thread_id)
            raise _Refused("unknown_command", f"unknown command {body.method!r}")
    except _Refused as problem:
        return LangGraphResponse({"type": "error", "id": body.id, "error": problem.error, "message": str(problem)})
    try:
        turn = await start_run(graphs, graph_runs, owner, thread_id, RunBody.model_validate(run), version=2)
    except (EverthreadError, ValueError) as problem:
        message = str(problem)
        return LangGraphResponse({"type": "error", "id": body.id, "error": "invalid_argument", "message": message})
    result = {"run_id": turn.id} if body.method == "run.start" else {}
    return LangGraphResponse({"type": "success", "id": body.id, "result": result, "meta": {"applied_through_seq": 0}})


async def _run_to_start(graphs: OpenGraphs, owner: str, thread_id: str, params: JsonObject) -> JsonObject:
    """Clients of this version write `multitaskStrategy`, and name the checkpoint to fork from in the config."""
    run = {"if_not_exists": "create", **params}
    run.setdefault("multitask_strategy", params.get("multitaskStrategy", "enqueue"))
    config = params.get("config")
    configurable = config.get("configurable") if isinstance(config, dict) else None
    if isinstance(configurable, dict) and configurable.get("checkpoint_id"):
        run.setdefault("checkpoint_id", configurable["checkpoint_id"])
    if run.get("input") is not None and run.get("command") is None and await _is_asking(graphs, owner, thread_id):
        run["command"] = {"resume": run.pop("input")}
    return run


async def _is_asking(graphs: OpenGraphs, owner: str, thread_id: str) -> bool:
    """Whether a thread waits for the answer to an interrupt; the next input is then taken as the answer."""
    try:
        thread = await find_thread(graphs, owner, thread_id)
    except EverthreadError:  # one that is still to be created
        return False
    run = await newest_run(thread)
    is_busy = run is not None and not run.state.is_final
    return not is_busy and bool(await _pending_interrupts(graphs, thread))


async def _pending_interrupts(graphs: OpenGraphs, thread: Conversation) -> set[str]:
    if thread_state.graph_id_of(graphs, thread) is None:
        return set()
    snapshot = await thread_state.snapshot(graphs, thread, thread_state.checkpoint_config(thread))
    return {interrupt.id for task in snapshot.tasks for interrupt in task.interrupts}


async def _run_to_resume(
    graphs: OpenGraphs, graph_runs: GraphRuns, thread: Conversation, params: JsonObject
) -> JsonObject:
    answers = _interrupt_answers(params)
    run = await newest_run(thread)
    if run is not None and not run.state.is_final:
        await graph_runs.wait_for_end(Ref(thread.owner, thread.id), run.id)
    pending = await _pending_interrupts(graphs, thread)
    if unknown := sorted(answers.keys() - pending):
        raise _Refused("no_such_interrupt", f"unknown or already answered interrupt: {unknown[0]}")
    command = {"resume": answers, "update": params.get("update"), "goto": params.get("goto")}
    return {
        "assistant_id": thread.metadata.get("assistant_id", ""),
        "command": {name: value for name, value in command.items() if value is not None},
        "config": params.get("config") or {},
        "metadata": params.get("metadata") or {},
    }


def _interrupt_answers(params: JsonObject) -> JsonObject:
    """Answers by the id of their interrupt."""
    listed = params.get("responses") or [params]
    try:
        return {str(one["interrupt_id"]): one.get("response") for one in listed}
    except (KeyError, TypeError, AttributeError):
        raise _Refused("invalid_argument", "interrupt_id is required") from None


# -- events ----------------------------------------------------------------------------------------------------------


@router.post("/threads/{thread_id}/stream/events", response_class=Response, responses=EVENT_STREAM)
async def stream_events(
    thread_id: PathId, body: EventsQuery, graphs: GraphsDep, graph_runs: GraphRunsDep, owner: OwnerDep
) -> Response:
    """The events of all version 2 runs of a thread, from the first or after `since`, until you disconnect. Clients may
    listen before their first run, which makes the thread."""
    ref = Ref(owner, check_id(thread_id, "thread_id"))

    async def frames() -> AsyncIterator[bytes]:
        async for event in _thread_events(graphs, graph_runs, ref):
            if body.matches(event):
                yield encode_frame(event["method"], dumps(event), str(event["seq"]))

    return EventStreamResponse(frames(), ends_by_itself=False)


async def _thread_events(graphs: OpenGraphs, graph_runs: GraphRuns, ref: Ref) -> AsyncIterator[JsonObject]:
    seq = 0
    seen: set[str] = set()
    with graph_runs.watched(ref) as watch:
        while True:
            watch.clear()
            try:
                thread = await find_thread(graphs, ref.owner, ref.id)
            except NotFound:
                await watch.wait(POLL_SECONDS)
                continue
            waiting = [turn for turn in await _runs_v2(thread) if turn.id not in seen]
            for turn in waiting:
                seen.add(turn.id)
                async for event in _run_events(graph_runs, thread, turn):
                    seq += 1
                    params = {"namespace": list(event.namespace), "timestamp": event.timestamp, "data": event.data}
                    event_id = f"{turn.id}:{seq}"
                    yield {"type": "event", "event_id": event_id, "seq": seq, "method": event.method, "params": params}
            if not waiting:
                await watch.wait(POLL_SECONDS)


async def _runs_v2(thread: Conversation) -> list[Turn]:
    """The thread's version 2 runs, oldest first."""
    found = await visible_runs(thread, most=MAX_RUNS)
    return [turn for turn in reversed(found) if turn.metadata.get("kwargs", {}).get("version") == 2]


class _StreamEvent(NamedTuple):
    """One event of a run, without its place in the thread."""

    method: str
    namespace: Namespace
    timestamp: int
    """In milliseconds."""
    data: Any
    interrupts: Sequence[Mapping[str, Any]] = ()
    """The interrupts of a state."""


async def _run_events(graph_runs: GraphRuns, thread: Conversation, turn: Turn) -> AsyncIterator[_StreamEvent]:
    """The events of one run: that it runs, what its graph streams, and how it ended."""
    ref = Ref(thread.owner, thread.id)
    name = turn.metadata.get("metadata", {}).get("graph_id") or turn.metadata["kwargs"].get("graph_id")
    translator = _EventTranslator(name, int((turn.started_at or turn.received_at).timestamp() * 1000))
    for shown in translator.begin():
        yield shown
    async for batch in graph_runs.follow(ref, turn.id):
        for event in batch:
            if not event.kind.startswith(VERSION_2):
                continue
            streamed = _streamed(event)
            if streamed.interrupts and not streamed.namespace:
                await graph_runs.wait_for_end(ref, turn.id)  # then the state has the interrupts
            for shown in translator.translate(streamed):
                yield shown
    for shown in translator.end(await thread.turn(turn.id)):
        yield shown


def _streamed(event: RunEvent) -> _StreamEvent:
    """An event as its graph streamed it."""
    body = json.loads(event.data)
    method = event.kind.removeprefix(VERSION_2).partition("|")[0]
    namespace, timestamp, interrupts = body.pop(NAMESPACE), body.pop(TIMESTAMP), body.pop(INTERRUPTS, None)
    data = body.pop("@data") if "@data" in body else body
    return _StreamEvent(method, tuple(namespace), timestamp, data, interrupts or ())


class _EventTranslator:
    """Makes the protocol's events of one run. It keeps which subgraphs are open, and which interrupts are not yet
    reported."""

    def __init__(self, graph_name: str | None, began_at: int) -> None:
        self._graph_name = graph_name
        self._began_at = began_at
        self._open: dict[Namespace, str] = {}
        """The subgraphs that have begun, with the names of their graphs, the oldest first."""
        self._asked: dict[str, tuple[Namespace, Any]] = {}
        """Interrupts by their ids: where they are from, and what they ask."""
        self._is_interrupted = False

    def begin(self) -> Iterator[_StreamEvent]:
        yield self._lifecycle((), self._began_at, "running")

    def translate(self, streamed: _StreamEvent) -> Iterator[_StreamEvent]:
        for interrupt in streamed.interrupts:
            self._asked.setdefault(interrupt["id"], (streamed.namespace, interrupt.get("value")))
        if streamed.method == "lifecycle":
            yield from self._translate_subgraph(streamed)
            return
        if streamed.interrupts and not streamed.namespace:
            yield from self._ask(streamed.timestamp)
        if streamed.method.startswith(_CUSTOM):
            data = {"name": streamed.method.removeprefix(_CUSTOM), "payload": streamed.data}
            yield streamed._replace(method="custom", data=data)
            return
        if streamed.method == "messages" and "event" not in streamed.data:
            return  # a whole message, which the state reports
        if streamed.method == "updates" and isinstance(streamed.data, dict):
            data = {name: value for name, value in streamed.data.items() if name != "__interrupt__"}
            yield streamed._replace(data=data)
            return
        yield streamed
        if streamed.method == "tools":
            yield from self._translate_tool_output(streamed)

    def end(self, turn: Turn) -> Iterator[_StreamEvent]:
        now = int((turn.ended_at or turn.received_at).timestamp() * 1000)
        if turn.state is TurnState.FAILED:
            yield self._lifecycle((), now, "failed", error=_error_text(turn))
            return
        yield from self._ask(now)
        if self._is_interrupted:
            return
        for namespace in sorted(self._open, key=len, reverse=True):
            yield self._lifecycle(namespace, now, "completed")
        yield self._lifecycle((), now, "completed" if turn.state is TurnState.COMPLETE else "interrupted")

    def _translate_subgraph(self, streamed: _StreamEvent) -> Iterator[_StreamEvent]:
        """Report a subgraph. LangGraph reports all subgraphs at the root; the data say which one it is."""
        namespace = tuple(streamed.data.get("namespace") or streamed.namespace)
        event = streamed.data["event"]
        if not namespace:  # `begin` and `end` report the run's own
            return
        if event == "started":
            if namespace not in self._open:
                self._open[namespace] = streamed.data.get("graph_name") or namespace[-1].partition(":")[0]
                yield streamed._replace(namespace=namespace)
            return
        more = {name: streamed.data[name] for name in ("error", "cause") if name in streamed.data}
        yield self._lifecycle(namespace, streamed.timestamp, event, **more)
        self._open.pop(namespace, None)

    def _ask(self, timestamp: int) -> Iterator[_StreamEvent]:
        if self._asked and not self._is_interrupted:
            self._is_interrupted = True
            for id, (namespace, payload) in self._asked.items():
                yield _StreamEvent("input.requested", namespace, timestamp, {"interrupt_id": id, "payload": payload})
            yield self._lifecycle((), timestamp, "interrupted")

    def _lifecycle(self, namespace: Namespace, timestamp: int, event: str, **more: Any) -> _StreamEvent:
        name = self._open.get(namespace) or namespace[-1].partition(":")[0] if namespace else self._graph_name
        return _StreamEvent("lifecycle", namespace, timestamp, {"event": event, "graph_name": name, **more})

    def _translate_tool_output(self, streamed: _StreamEvent) -> Iterator[_StreamEvent]:
        """Report what a tool has returned as a message too, as the clients' views of messages expect."""
        output = streamed.data.get("output")
        call_id = streamed.data.get("tool_call_id")
        if streamed.data.get("event") != "tool-finished" or not isinstance(output, dict) or not call_id:
            return
        content = output.get("content")
        text = content if isinstance(content, str) else "" if content is None else json.dumps(content)
        block = {"type": "text", "text": text}
        id = output.get("id") or f"tool-{call_id}"
        for data in (
            {"event": "message-start", "role": "tool", "id": id, "tool_call_id": call_id},
            {"event": "content-block-start", "index": 0, "content": {"type": "text", "text": ""}},
            {"event": "content-block-delta", "index": 0, "content": block},
            {"event": "content-block-finish", "index": 0, "content": block},
            {"event": "message-finish", "metadata": {}},
        ):
            yield _StreamEvent("messages", (*streamed.namespace, f"tools:{call_id}"), streamed.timestamp, data)


def _error_text(turn: Turn) -> str:
    error = run_error(turn)
    return "failed" if error is None else str(error["message"])
