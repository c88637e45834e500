"""/threads/{id}/runs and /runs: begin, follow, wait for, cancel. A run goes on whoever listens.

Every stream can be resumed: its events carry their number as id, and `Last-Event-ID` brings exactly the rest.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Header, Query
from pydantic import Field, model_validator
from starlette.responses import Response, StreamingResponse

from everthread.conversation import Conversation
from everthread.core.errors import Conflict, Invalid, NotFound
from everthread.core.ids import check_id
from everthread.core.nouns import Ref
from everthread.core.turns import Turn, TurnQuery, TurnState
from everthread.http.dependencies import PathId, RequestModel
from everthread.http.middleware import quote_id
from everthread.http.protocol import assistants, thread_state, threads
from everthread.http.protocol.dependencies import (
    EngineDep,
    GraphsDep,
    LangGraphResponse,
    OwnerDep,
    RunDep,
    ThreadDep,
    find_thread,
)
from everthread.http.protocol.event_log import RunEvent
from everthread.http.protocol.graph_stream import END, ERROR, METADATA
from everthread.http.protocol.graphs import OpenGraphs
from everthread.http.protocol.run_engine import RunEngine
from everthread.http.protocol.run_intents import HIDDEN, RUN_KIND, STATES_OF, HideRun, RunStatus, run_out
from everthread.http.protocol.run_request import Mode, RunBody, RunRequest, parse_run_request
from everthread.http.protocol.serialization import dumps
from everthread.http.sse import EventStreamResponse

router = APIRouter(tags=["LangGraph: runs"])
_BEAT = 5.0
"""Seconds between signs of life to whoever waits for the end: proxies give up on a silent connection."""
_ALWAYS = frozenset({METADATA, ERROR, END})
LastEventId = Annotated[str | None, Header(alias="Last-Event-ID", max_length=64)]


# -- beginning -------------------------------------------------------------------------------------------------------


async def start_run(
    graphs: OpenGraphs, engine: RunEngine, owner: str, id: str, body: RunBody, *, version: Literal[1, 2] = 1
) -> Turn:
    """A run on a thread, which is made when it is missing and that was asked for."""
    check_id(id, "thread_id")
    what = parse_run_request(body, await assistants.find_assistant(graphs, owner, body.assistant_id), version=version)
    try:
        one = await find_thread(graphs, owner, id)
    except NotFound:
        if body.if_not_exists == "reject":
            raise
        one = await threads.create_or_restore(graphs, owner, id, {})
    return await _begun(engine, one, what)


async def _begun(engine: RunEngine, one: Conversation, what: RunRequest) -> Turn:
    named = {"graph_id": what.graph_id, "assistant_id": what.assistant_id}
    if any(one.metadata.get(name) != value for name, value in named.items()):
        await one.update(metadata={**one.metadata, **named})
    return await engine.begin(Ref(one.owner, one.id), what)


async def _begun_alone(graphs: OpenGraphs, engine: RunEngine, owner: str, body: RunBody) -> Turn:
    """A run on a thread of its own, which is off the record and out of sight unless it is to be kept."""
    is_temporary = body.on_completion == "delete"
    what = parse_run_request(
        body, await assistants.find_assistant(graphs, owner, body.assistant_id), is_temporary=is_temporary
    )
    one = await threads.create_or_restore(graphs, owner, None, {}, off_record=is_temporary)
    return await _begun(engine, one, what)


def _headers(turn: Turn, last: str | None = None) -> dict[str, str]:
    """Where the run is, and where to go on when the connection breaks."""
    place = f"/threads/{quote_id(turn.conversation_id)}/runs/{quote_id(turn.id)}"
    return {"Content-Location": place, **({} if last is None else {"Location": f"{place}/{last}"})}


@router.post("/threads/{thread_id}/runs")
async def create_run(
    thread_id: PathId, body: RunBody, graphs: GraphsDep, engine: EngineDep, owner: OwnerDep
) -> Response:
    """Begin a run in the background."""
    turn = await start_run(graphs, engine, owner, thread_id, body)
    return LangGraphResponse(run_out(turn), headers=_headers(turn))


@router.post("/threads/{thread_id}/runs/stream")
async def stream_run(
    thread_id: PathId, body: RunBody, graphs: GraphsDep, engine: EngineDep, owner: OwnerDep
) -> Response:
    """Begin a run and follow it."""
    turn = await start_run(graphs, engine, owner, thread_id, body)
    return _followed(graphs, engine, owner, turn, stops=body.on_disconnect == "cancel")


@router.post("/threads/{thread_id}/runs/wait")
async def wait_run(thread_id: PathId, body: RunBody, graphs: GraphsDep, engine: EngineDep, owner: OwnerDep) -> Response:
    """Begin a run and answer with the state it ends in."""
    turn = await start_run(graphs, engine, owner, thread_id, body)
    return _awaited(graphs, engine, owner, turn, stops=body.on_disconnect == "cancel")


@router.post("/runs")
async def create_stateless_run(body: RunBody, graphs: GraphsDep, engine: EngineDep, owner: OwnerDep) -> Response:
    """Begin a run that has a thread of its own."""
    turn = await _begun_alone(graphs, engine, owner, body)
    return LangGraphResponse(run_out(turn), headers=_headers(turn))


@router.post("/runs/stream")
async def stream_stateless_run(body: RunBody, graphs: GraphsDep, engine: EngineDep, owner: OwnerDep) -> Response:
    """Begin a run that has a thread of its own, and follow it."""
    turn = await _begun_alone(graphs, engine, owner, body)
    return _followed(graphs, engine, owner, turn, stops=body.on_disconnect == "cancel")


@router.post("/runs/wait")
async def wait_stateless_run(body: RunBody, graphs: GraphsDep, engine: EngineDep, owner: OwnerDep) -> Response:
    """Begin a run that has a thread of its own, and answer with the state it ends in."""
    turn = await _begun_alone(graphs, engine, owner, body)
    return _awaited(graphs, engine, owner, turn, stops=body.on_disconnect == "cancel")


@router.post("/runs/batch")
async def create_batch(
    body: Annotated[list[RunBody], Field(max_length=100)], graphs: GraphsDep, engine: EngineDep, owner: OwnerDep
) -> Response:
    """Begin several runs, each with a thread of its own."""
    return LangGraphResponse([run_out(await _begun_alone(graphs, engine, owner, one)) for one in body])


# -- following -------------------------------------------------------------------------------------------------------


@router.get("/threads/{thread_id}/runs/{run_id}/stream")
async def join_stream(
    run: RunDep,
    graphs: GraphsDep,
    engine: EngineDep,
    owner: OwnerDep,
    last_event_id: LastEventId = None,
    stream_mode: Annotated[list[Mode | Literal[""]], Query(description="Only events of these.")] = [],  # noqa: B006
    cancel_on_disconnect: Annotated[bool, Query(description="Stop the run when this connection breaks.")] = False,
) -> Response:
    """Follow a run: from its first event, or from after the one that `Last-Event-ID` names."""
    modes = [mode for mode in stream_mode if mode]  # clients write none of them as an empty one
    after = _number(last_event_id)
    return _followed(graphs, engine, owner, run, after=after, modes=modes, stops=cancel_on_disconnect)


def _number(last_event_id: str | None) -> int:
    """The number of an event; clients write -1 for all of them."""
    if last_event_id in (None, "", "-1"):
        return 0
    if last_event_id is None or not last_event_id.isdecimal() or len(last_event_id) > 15:
        raise Invalid("is no id of an event of a run", field="Last-Event-ID")
    return int(last_event_id)


def _followed(
    graphs: OpenGraphs,
    engine: RunEngine,
    owner: str,
    turn: Turn,
    *,
    after: int = 0,
    modes: Sequence[str] = (),
    stops: bool = False,
) -> Response:
    ref = Ref(owner, turn.conversation_id)

    async def frames() -> AsyncIterator[bytes]:
        is_over = turn.state.is_final
        try:
            async for told in _told(graphs, engine, ref, turn.id, after):
                is_over = told[-1].kind == END
                yield b"".join(_frame(one) for one in told if not modes or _is_of(one.kind, modes))
        finally:
            if stops and not is_over:
                await asyncio.shield(engine.stop(ref, turn.id))

    return EventStreamResponse(frames(), headers=_headers(turn, "stream"))


async def _told(
    graphs: OpenGraphs, engine: RunEngine, ref: Ref, id: str, after: int
) -> AsyncIterator[Sequence[RunEvent]]:
    """What a run tells; of one whose events are no longer kept, how its thread stands."""
    is_first = True
    async for told in engine.follow(ref, id, after):
        if not told:  # the reader had the last one
            return
        if is_first and told[-1].kind == END and told[0].number == 1:
            yield [RunEvent(0, "values", dumps(await _values(graphs, ref)))]
        is_first = False
        yield told


def _frame(one: RunEvent) -> bytes:
    return b"event: %b\ndata: %b\nid: %d\n\n" % (one.kind.encode(), one.data, one.number)


def _is_of(kind: str, modes: Sequence[str]) -> bool:
    name = kind.partition("|")[0].partition("/")[0]
    return name in _ALWAYS or name in modes or (name == "messages" and "messages-tuple" in modes)


@router.get("/threads/{thread_id}/runs/{run_id}/join")
async def join_run(
    run: RunDep,
    graphs: GraphsDep,
    engine: EngineDep,
    owner: OwnerDep,
    cancel_on_disconnect: Annotated[bool, Query(description="Stop the run when this connection breaks.")] = False,
) -> Response:
    """Wait for a run's end, and answer with the state it ended in."""
    return _awaited(graphs, engine, owner, run, stops=cancel_on_disconnect)


def _awaited(graphs: OpenGraphs, engine: RunEngine, owner: str, turn: Turn, *, stops: bool) -> Response:
    ref = Ref(owner, turn.conversation_id)

    async def whole() -> AsyncIterator[bytes]:
        answer = asyncio.ensure_future(_outcome(graphs, engine, ref, turn.id))
        try:
            while not answer.done():
                with suppress(TimeoutError):
                    async with asyncio.timeout(_BEAT):
                        await asyncio.shield(answer)
                        break
                yield b"\n"  # JSON may begin with it
            yield answer.result()
        finally:
            if stops and not answer.done():
                await asyncio.shield(engine.stop(ref, turn.id))
            answer.cancel()

    return StreamingResponse(whole(), media_type="application/json", headers=_headers(turn, "join"))


async def _outcome(graphs: OpenGraphs, engine: RunEngine, ref: Ref, id: str) -> bytes:
    """The last state that a run told, or its error."""
    values = error = None
    async for told in engine.follow(ref, id):
        for one in told:
            values = one.data if one.kind == "values" else values
            error = one.data if one.kind == ERROR else error
    if error is not None:
        return b'{"__error__":%b}' % error
    return values or dumps(await _values(graphs, ref))


async def _values(graphs: OpenGraphs, ref: Ref) -> Any:
    return (await thread_state.read_state(graphs, await graphs.et.conversations.get(ref.id, ref.owner)))["values"]


# -- looking and stopping --------------------------------------------------------------------------------------------

RunField = Literal[
    "run_id", "thread_id", "assistant_id", "created_at", "updated_at", "status", "metadata", "kwargs",
    "multitask_strategy",
]  # fmt: skip


@router.get("/threads/{thread_id}/runs")
async def list_runs(
    one: ThreadDep,
    graphs: GraphsDep,
    limit: Annotated[int, Query(ge=1, le=1000)] = 10,
    offset: Annotated[int, Query(ge=0, le=100_000)] = 0,
    status: Annotated[RunStatus | None, Query()] = None,
    select: Annotated[list[RunField] | None, Query()] = None,
) -> Response:
    """A thread's runs, the newest first."""
    states_asked = STATES_OF.get(status, ()) if status is not None else ()
    if status is not None and not states_asked:
        return LangGraphResponse([])
    found = await _visible(graphs, one, states_asked, offset + limit)
    rows = [run_out(turn) for turn in found[offset:]]
    return LangGraphResponse(rows if not select else [{name: row[name] for name in select} for row in rows])


async def _visible(graphs: OpenGraphs, one: Conversation, wanted: Sequence[TurnState], count: int) -> list[Turn]:
    found: list[Turn] = []
    before = None
    while len(found) < count:
        page = await graphs.et.store.turns.list(TurnQuery(one.owner, one.id, wanted, before, count))
        found += [turn for turn in page if turn.kind == RUN_KIND and not turn.metadata.get(HIDDEN)]
        if len(page) < count:
            break
        before = page[-1].number
    return found[:count]


@router.get("/threads/{thread_id}/runs/{run_id}")
async def get_run(run: RunDep) -> Response:
    """How a run stands."""
    return LangGraphResponse(run_out(run))


@router.delete("/threads/{thread_id}/runs/{run_id}", status_code=204, response_class=Response)
async def delete_run(run: RunDep, graphs: GraphsDep, owner: OwnerDep) -> None:
    """Take a run that has ended out of sight."""
    if not run.state.is_final:
        raise Conflict(f"run {run.id!r} runs; cancel it first")
    await graphs.et.store.log.write(Ref(owner, run.conversation_id), HideRun(id=run.id))


Action = Annotated[Literal["interrupt", "rollback"], Query(description="`rollback`: its checkpoints go too.")]


@router.post("/threads/{thread_id}/runs/{run_id}/cancel", status_code=202)
async def cancel_run(
    run: RunDep,
    graphs: GraphsDep,
    engine: EngineDep,
    owner: OwnerDep,
    wait: Annotated[bool, Query(description="Answer when it has ended.")] = False,
    action: Action = "interrupt",
) -> Response:
    """Stop a run."""
    if run.state.is_final:
        raise NotFound(f"run {run.id!r} has ended; there is nothing to stop")
    ref = Ref(owner, run.conversation_id)
    await engine.stop(ref, run.id, action)
    if not wait:
        return Response(status_code=202)
    await engine.wait_for_end(ref, run.id)
    return LangGraphResponse({}, headers=_headers(run, "join"))


class CancelRuns(RequestModel):
    """Which runs: some of a thread, or all that wait or run."""

    thread_id: str | None = Field(default=None, min_length=1, max_length=128)
    run_ids: list[str] | None = Field(default=None, max_length=1000)
    status: Literal["pending", "running", "all"] | None = None

    @model_validator(mode="after")
    def _says_which(self) -> CancelRuns:
        if (self.status is None) == (self.run_ids is None) or (self.run_ids is not None and self.thread_id is None):
            raise ValueError("name a status, or a thread and runs of it")
        return self


@router.post("/runs/cancel", status_code=204, response_class=Response)
async def cancel_runs(
    body: CancelRuns, graphs: GraphsDep, engine: EngineDep, owner: OwnerDep, action: Action = "interrupt"
) -> None:
    """Stop several runs."""
    for turn in await _to_stop(graphs, owner, body):
        await engine.stop(Ref(owner, turn.conversation_id), turn.id, action)


async def _to_stop(graphs: OpenGraphs, owner: str, body: CancelRuns) -> list[Turn]:
    states_asked = (
        STATES_OF["running"] + STATES_OF["pending"] if body.status in (None, "all") else STATES_OF[body.status]
    )
    found = await graphs.et.store.turns.list(TurnQuery(owner, body.thread_id, states_asked, None, 1000))
    meant = [turn for turn in found if turn.kind == RUN_KIND and (body.run_ids is None or turn.id in body.run_ids)]
    if not meant and body.run_ids is not None:
        raise NotFound("none of these runs goes on")
    return meant
