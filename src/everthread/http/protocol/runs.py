"""/threads/{id}/runs and /runs: start, follow, wait for, cancel. A run goes on without listeners.

Every stream can be resumed: the id of an event is its number, and `Last-Event-ID` brings exactly the rest.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import Annotated, Any, Literal, NamedTuple

from fastapi import APIRouter, Header, Query
from pydantic import Field, model_validator
from starlette.responses import Response, StreamingResponse

from everthread.conversation import Conversation
from everthread.core.errors import Conflict, NotFound
from everthread.core.ids import check_id, new_id
from everthread.core.nouns import Ref
from everthread.core.turn_events import END, ERROR
from everthread.core.turns import RUN_KIND, Turn, TurnQuery
from everthread.http.admission import Slot
from everthread.http.dependencies import ConversationId, PathId, RequestModel
from everthread.http.middleware import quote_id
from everthread.http.protocol import assistants, thread_state, threads
from everthread.http.protocol.dependencies import (
    EVENT_STREAM,
    GraphRunsDep,
    GraphsDep,
    LangGraphResponse,
    ListParameter,
    OwnerDep,
    RunDep,
    ThreadDep,
    find_thread,
    select_fields,
)
from everthread.http.protocol.graph_runs import GraphRuns
from everthread.http.protocol.graph_stream import LIFECYCLE
from everthread.http.protocol.graphs import OpenGraphs
from everthread.http.protocol.run_events import RunEvent
from everthread.http.protocol.run_request import Mode, RunBody, RunRequest, parse_run_request
from everthread.http.protocol.run_rows import STATES_OF, RunStatus, run_out, visible_runs
from everthread.http.protocol.serialization import dumps
from everthread.http.sse import EventStreamResponse, encode_frame

router = APIRouter(tags=["LangGraph: runs"])
_KEEPALIVE_SECONDS = 5.0
"""How often a waiting response sends a line break: proxies give up on a silent connection."""
LastEventId = Annotated[str | None, Header(alias="Last-Event-ID", max_length=64)]


# -- starting --------------------------------------------------------------------------------------------------------


async def start_run(
    graphs: OpenGraphs,
    graph_runs: GraphRuns,
    owner: str,
    id: str,
    body: RunBody,
    *,
    version: Literal[1, 2] = 1,
    run_id: str | None = None,
) -> Turn:
    """Start a run on a thread, which is created if it is missing and the body says so."""
    check_id(id, "thread_id")
    assistant = await assistants.find_assistant(graphs, owner, body.assistant_id)
    request = parse_run_request(body, assistant, version=version, run_id=run_id)
    async with graph_runs.admission.slot(owner, id) as slot:
        try:
            thread = await find_thread(graphs, owner, id)
        except NotFound:
            if body.if_not_exists == "reject":
                raise
            await graph_runs.check(graphs.et.conversations.unsaved(id, owner), request)
            try:
                thread = await threads.create_or_restore(graphs, owner, id, {})
            except Conflict:  # another request has created it meanwhile
                thread = await find_thread(graphs, owner, id)
        return await _start_on(graph_runs, thread, request, slot)


async def _start_on(graph_runs: GraphRuns, thread: Conversation, request: RunRequest, slot: Slot) -> Turn:
    """Start a run on an existing thread, and note the graph on the thread: its state is read with that graph."""
    names = {"graph_id": request.graph_id, "assistant_id": request.assistant_id}
    if any(thread.metadata.get(name) != value for name, value in names.items()):
        await thread.update(metadata={**thread.metadata, **names})
    turn = await graph_runs.begin(Ref(thread.owner, thread.id), request)
    slot.hold(graph_runs.task(Ref(thread.owner, thread.id), turn.id))
    return turn


async def start_stateless(
    graphs: OpenGraphs, graph_runs: GraphRuns, owner: str, body: RunBody, ids: StatelessIds | None = None
) -> Turn:
    """Start a run on a thread of its own."""
    async with graph_runs.admission.slot(owner, None) as slot:
        return await _start_in_slot(graphs, graph_runs, owner, body, slot, ids)


class StatelessIds(NamedTuple):
    """The ids of a run on a thread of its own that may be asked for more than once, and must run once."""

    thread_id: str
    run_id: str


async def _start_in_slot(
    graphs: OpenGraphs,
    graph_runs: GraphRuns,
    owner: str,
    body: RunBody,
    slot: Slot,
    ids: StatelessIds | None = None,
) -> Turn:
    """The run's thread is off the record and hidden unless it is to be kept."""
    is_temporary = body.on_completion == "delete"
    assistant = await assistants.find_assistant(graphs, owner, body.assistant_id)
    id, run_id = (new_id(), None) if ids is None else ids
    request = parse_run_request(body, assistant, is_temporary=is_temporary, run_id=run_id)
    await graph_runs.check(graphs.et.conversations.unsaved(id, owner), request)
    try:
        thread = await graphs.et.conversations.create(id=id, owner=owner, off_record=is_temporary)
    except Conflict:  # requested again; NotFound if it has ended and its thread is gone
        thread = await find_thread(graphs, owner, id)
    return await _start_on(graph_runs, thread, request, slot)


def _headers(turn: Turn, last: str | None = None) -> dict[str, str]:
    """Where the run is, and where to continue after a broken connection."""
    path = f"/threads/{quote_id(turn.conversation_id)}/runs/{quote_id(turn.id)}"
    return {"Content-Location": path, **({} if last is None else {"Location": f"{path}/{last}"})}


@router.post("/threads/{thread_id}/runs")
async def create_run(
    thread_id: PathId, body: RunBody, graphs: GraphsDep, graph_runs: GraphRunsDep, owner: OwnerDep
) -> Response:
    """Start a run in the background."""
    turn = await start_run(graphs, graph_runs, owner, thread_id, body)
    return LangGraphResponse(run_out(turn), headers=_headers(turn))


@router.post("/threads/{thread_id}/runs/stream", response_class=Response, responses=EVENT_STREAM)
async def stream_run(
    thread_id: PathId, body: RunBody, graphs: GraphsDep, graph_runs: GraphRunsDep, owner: OwnerDep
) -> Response:
    """Start a run and stream its events."""
    turn = await start_run(graphs, graph_runs, owner, thread_id, body)
    return _stream_response(graphs, graph_runs, owner, turn, cancel_on_disconnect=body.on_disconnect == "cancel")


@router.post("/threads/{thread_id}/runs/wait")
async def wait_run(
    thread_id: PathId, body: RunBody, graphs: GraphsDep, graph_runs: GraphRunsDep, owner: OwnerDep
) -> Response:
    """Start a run and wait for the state it ends in."""
    turn = await start_run(graphs, graph_runs, owner, thread_id, body)
    return _wait_response(graphs, graph_runs, owner, turn, cancel_on_disconnect=body.on_disconnect == "cancel")


@router.post("/runs")
async def create_stateless_run(body: RunBody, graphs: GraphsDep, graph_runs: GraphRunsDep, owner: OwnerDep) -> Response:
    """Start a run on a thread of its own."""
    turn = await start_stateless(graphs, graph_runs, owner, body)
    return LangGraphResponse(run_out(turn), headers=_headers(turn))


@router.post("/runs/stream", response_class=Response, responses=EVENT_STREAM)
async def stream_stateless_run(body: RunBody, graphs: GraphsDep, graph_runs: GraphRunsDep, owner: OwnerDep) -> Response:
    """Start a run on a thread of its own and stream its events."""
    turn = await start_stateless(graphs, graph_runs, owner, body)
    return _stream_response(graphs, graph_runs, owner, turn, cancel_on_disconnect=body.on_disconnect == "cancel")


@router.post("/runs/wait")
async def wait_stateless_run(body: RunBody, graphs: GraphsDep, graph_runs: GraphRunsDep, owner: OwnerDep) -> Response:
    """Start a run on a thread of its own and wait for the state it ends in."""
    turn = await start_stateless(graphs, graph_runs, owner, body)
    return _wait_response(graphs, graph_runs, owner, turn, cancel_on_disconnect=body.on_disconnect == "cancel")


@router.post("/runs/batch")
async def create_batch(
    body: Annotated[list[RunBody], Field(max_length=100)], graphs: GraphsDep, graph_runs: GraphRunsDep, owner: OwnerDep
) -> Response:
    """Start several runs, each on a thread of its own."""
    async with graph_runs.admission.slot(
        owner, None
    ) as slot:  # one for all, so that none is refused after others began
        return LangGraphResponse([run_out(await _start_in_slot(graphs, graph_runs, owner, one, slot)) for one in body])


# -- following -------------------------------------------------------------------------------------------------------


@router.get("/threads/{thread_id}/runs/{run_id}/stream", response_class=Response, responses=EVENT_STREAM)
async def join_stream(
    run: RunDep,
    graphs: GraphsDep,
    graph_runs: GraphRunsDep,
    owner: OwnerDep,
    last_event_id: LastEventId = None,
    stream_mode: Annotated[
        list[Mode | Literal[""]], ListParameter, Query(description="Only events of these modes.")
    ] = [],  # noqa: B006
    cancel_on_disconnect: Annotated[bool, Query(description="Cancel the run if this connection breaks.")] = False,
) -> Response:
    """Stream a run's events from the first, or after `Last-Event-ID`."""
    modes = [mode for mode in stream_mode if mode]  # clients send an empty string for no mode
    after = _event_number(last_event_id)
    return _stream_response(
        graphs, graph_runs, owner, run, after=after, modes=modes, cancel_on_disconnect=cancel_on_disconnect
    )


def _event_number(last_event_id: str | None) -> int:
    """The number of an event from its id; 0 for all events, for the -1 that clients send and for anything that is
    not an id. LangGraph's own server refuses no id either, and reading events twice loses none."""
    is_number = last_event_id is not None and re.fullmatch(r"[0-9]{1,15}", last_event_id) is not None
    return int(last_event_id) if last_event_id is not None and is_number else 0


def _stream_response(
    graphs: OpenGraphs,
    graph_runs: GraphRuns,
    owner: str,
    turn: Turn,
    *,
    after: int = 0,
    modes: Sequence[str] = (),
    cancel_on_disconnect: bool = False,
) -> Response:
    ref = Ref(owner, turn.conversation_id)

    async def frames() -> AsyncIterator[bytes]:
        is_over = turn.state.is_final
        try:
            async for batch in _follow(graphs, graph_runs, ref, turn.id, after):
                is_over = batch[-1].kind == END
                yield b"".join(
                    encode_frame(event.kind, event.data, str(event.number))
                    for event in batch
                    if not modes or _is_in_modes(event.kind, modes)
                )
        finally:
            if cancel_on_disconnect and not is_over:
                await asyncio.shield(graph_runs.stop(ref, turn.id))

    return EventStreamResponse(frames(), headers=_headers(turn, "stream"))


async def _follow(
    graphs: OpenGraphs, graph_runs: GraphRuns, ref: Ref, id: str, after: int
) -> AsyncIterator[Sequence[RunEvent]]:
    """A run's events; if they are pruned, the thread's state instead."""
    if await graph_runs.is_pruned(ref, id):
        yield [RunEvent(after, "values", dumps(await _read_values(graphs, ref)))]
    async for batch in graph_runs.follow(ref, id, after):
        yield batch


def _is_in_modes(kind: str, modes: Sequence[str]) -> bool:
    name = kind.partition("|")[0].partition("/")[0]
    return name in LIFECYCLE or name in modes or (name == "messages" and "messages-tuple" in modes)


@router.get("/threads/{thread_id}/runs/{run_id}/join")
async def join_run(
    run: RunDep,
    graphs: GraphsDep,
    graph_runs: GraphRunsDep,
    owner: OwnerDep,
    cancel_on_disconnect: Annotated[bool, Query(description="Cancel the run if this connection breaks.")] = False,
) -> Response:
    """Wait for a run to end, and return the state it ended in."""
    return _wait_response(graphs, graph_runs, owner, run, cancel_on_disconnect=cancel_on_disconnect)


def _wait_response(
    graphs: OpenGraphs, graph_runs: GraphRuns, owner: str, turn: Turn, *, cancel_on_disconnect: bool
) -> Response:
    ref = Ref(owner, turn.conversation_id)

    async def body() -> AsyncIterator[bytes]:
        answer = asyncio.ensure_future(_outcome(graphs, graph_runs, ref, turn.id))
        try:
            while not answer.done():
                with suppress(TimeoutError):
                    async with asyncio.timeout(_KEEPALIVE_SECONDS):
                        await asyncio.shield(answer)
                        break
                yield b"\n"  # whitespace before JSON is allowed
            yield answer.result()
        finally:
            if cancel_on_disconnect and not answer.done():
                await asyncio.shield(graph_runs.stop(ref, turn.id))
            answer.cancel()

    return StreamingResponse(body(), media_type="application/json", headers=_headers(turn, "join"))


async def _outcome(graphs: OpenGraphs, graph_runs: GraphRuns, ref: Ref, id: str) -> bytes:
    """The last state of a run, or its error."""
    values = error = None
    async for batch in graph_runs.follow(ref, id):
        for event in batch:
            values = event.data if event.kind == "values" else values
            error = event.data if event.kind == ERROR else error
    if error is not None:
        return b'{"__error__":%b}' % error
    return values or dumps(await _read_values(graphs, ref))


async def _read_values(graphs: OpenGraphs, ref: Ref) -> Any:
    thread = await graphs.et.conversations.get(ref.id, ref.owner)
    state = await thread_state.read_state(graphs, thread)
    return graphs.output_of(thread_state.graph_id_of(graphs, thread), state["values"])


# -- reading and cancelling ------------------------------------------------------------------------------------------

RunField = Literal[
    "run_id", "thread_id", "assistant_id", "created_at", "updated_at", "status", "metadata", "kwargs",
    "multitask_strategy",
]  # fmt: skip


@router.get("/threads/{thread_id}/runs")
async def list_runs(
    thread: ThreadDep,
    graphs: GraphsDep,
    limit: Annotated[int, Query(ge=1, le=1000)] = 10,
    offset: Annotated[int, Query(ge=0, le=100_000)] = 0,
    status: Annotated[RunStatus | None, Query()] = None,
    select: Annotated[list[RunField] | None, ListParameter, Query()] = None,
) -> Response:
    """The runs of a thread, newest first."""
    states = STATES_OF.get(status, ()) if status is not None else ()
    if status is not None and not states:
        return LangGraphResponse([])
    found = await visible_runs(thread, most=offset + limit, states=states)
    rows = [run_out(turn) for turn in found[offset:]]
    return LangGraphResponse(select_fields(rows, select))


@router.get("/threads/{thread_id}/runs/{run_id}")
async def get_run(run: RunDep) -> Response:
    """The state of a run."""
    return LangGraphResponse(run_out(run))


@router.delete("/threads/{thread_id}/runs/{run_id}", status_code=204, response_class=Response)
async def delete_run(run: RunDep, graph_runs: GraphRunsDep, owner: OwnerDep) -> None:
    """Delete a run; one that still runs is cancelled first."""
    ref = Ref(owner, run.conversation_id)
    if not run.state.is_final:
        await graph_runs.stop(ref, run.id)
        await graph_runs.wait_for_end(ref, run.id)
    await graph_runs.hide(ref, run.id)


Action = Annotated[Literal["interrupt", "rollback"], Query(description="`rollback` also deletes its checkpoints.")]


@router.post(
    "/threads/{thread_id}/runs/{run_id}/cancel",
    status_code=202,
    response_class=Response,
    responses={200: {"description": "It has ended.", "content": {"application/json": {}}}},
)
async def cancel_run(
    run: RunDep,
    graphs: GraphsDep,
    graph_runs: GraphRunsDep,
    owner: OwnerDep,
    wait: Annotated[bool, Query(description="Whether to wait until it has ended.")] = False,
    action: Action = "interrupt",
) -> Response:
    """Cancel a run."""
    if run.state.is_final:
        raise NotFound(f"run {run.id!r} has already ended")
    ref = Ref(owner, run.conversation_id)
    await graph_runs.stop(ref, run.id, action)
    if not wait:
        return Response(status_code=202)
    await graph_runs.wait_for_end(ref, run.id)
    return LangGraphResponse({}, headers=_headers(run, "join"))


class CancelRuns(RequestModel):
    """Which runs to cancel: some of a thread, or all in a status."""

    thread_id: ConversationId | None = None
    run_ids: list[str] | None = Field(default=None, max_length=1000)
    status: Literal["pending", "running", "all"] | None = None

    @model_validator(mode="after")
    def _check_selection(self) -> CancelRuns:
        if (self.status is None) == (self.run_ids is None) or (self.run_ids is not None and self.thread_id is None):
            raise ValueError("give either a status, or a thread_id and run_ids")
        return self


@router.post("/runs/cancel", status_code=204, response_class=Response)
async def cancel_runs(
    body: CancelRuns, graphs: GraphsDep, graph_runs: GraphRunsDep, owner: OwnerDep, action: Action = "interrupt"
) -> None:
    """Cancel several runs."""
    for turn in await _runs_to_cancel(graphs, owner, body):
        await graph_runs.stop(Ref(owner, turn.conversation_id), turn.id, action)


async def _runs_to_cancel(graphs: OpenGraphs, owner: str, body: CancelRuns) -> list[Turn]:
    states = STATES_OF["running"] + STATES_OF["pending"] if body.status in (None, "all") else STATES_OF[body.status]
    found = await graphs.et.store.turns.list(TurnQuery(owner, body.thread_id, states, None, 1000))
    chosen = [turn for turn in found if turn.kind == RUN_KIND and (body.run_ids is None or turn.id in body.run_ids)]
    if not chosen:
        raise NotFound("none of these runs is running or pending")
    return chosen
