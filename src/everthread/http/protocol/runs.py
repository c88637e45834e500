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
from everthread.http.addresses import in_address
from everthread.http.asking import ALWAYS, Body, Id
from everthread.http.errors import EVERYWHERE
from everthread.http.journal import Told
from everthread.http.protocol import assistants, states, threads
from everthread.http.protocol.asked import Asked, RunBody, asked
from everthread.http.protocol.doors import Answer, Owner, Run, RunningHere, ServedHere, Thread, thread
from everthread.http.protocol.frames import END, ERROR, METADATA, Mode
from everthread.http.protocol.rows import HIDDEN, KIND, STATES, HideRun, RunStatus, run_of
from everthread.http.protocol.running import Running
from everthread.http.protocol.served import Served
from everthread.http.protocol.wire import dumps
from everthread.http.streaming import EventStream

router = APIRouter(tags=["LangGraph: runs"], dependencies=ALWAYS, responses=EVERYWHERE)
_BEAT = 5.0
"""Seconds between signs of life to whoever waits for the end: proxies give up on a silent connection."""
_ALWAYS = frozenset({METADATA, ERROR, END})
LastEventId = Annotated[str | None, Header(alias="Last-Event-ID", max_length=64)]


# -- beginning -------------------------------------------------------------------------------------------------------


async def begun_on(
    served: Served, running: Running, owner: str, id: str, body: RunBody, *, version: Literal[1, 2] = 1
) -> Turn:
    """A run on a thread, which is made when it is missing and that was asked for."""
    check_id(id, "thread_id")
    what = asked(body, await assistants.found(served, owner, body.assistant_id), version=version)
    try:
        one = await thread(served, owner, id)
    except NotFound:
        if body.if_not_exists == "reject":
            raise
        one = await threads.made(served, owner, id, {})
    return await _begun(running, one, what)


async def _begun(running: Running, one: Conversation, what: Asked) -> Turn:
    named = {"graph_id": what.graph_id, "assistant_id": what.assistant_id}
    if any(one.metadata.get(name) != value for name, value in named.items()):
        await one.update(metadata={**one.metadata, **named})
    return await running.begin(Ref(one.owner, one.id), what)


async def _begun_alone(served: Served, running: Running, owner: str, body: RunBody) -> Turn:
    """A run on a thread of its own, which is off the record and out of sight unless it is to be kept."""
    is_temporary = body.on_completion == "delete"
    what = asked(body, await assistants.found(served, owner, body.assistant_id), is_temporary=is_temporary)
    one = await threads.made(served, owner, None, {}, off_record=is_temporary)
    return await _begun(running, one, what)


def _headers(turn: Turn, last: str | None = None) -> dict[str, str]:
    """Where the run is, and where to go on when the connection breaks."""
    place = f"/threads/{in_address(turn.conversation_id)}/runs/{in_address(turn.id)}"
    return {"Content-Location": place, **({} if last is None else {"Location": f"{place}/{last}"})}


@router.post("/threads/{thread_id}/runs")
async def create_run(thread_id: Id, body: RunBody, served: ServedHere, running: RunningHere, owner: Owner) -> Response:
    """Begin a run in the background."""
    turn = await begun_on(served, running, owner, thread_id, body)
    return Answer(run_of(turn), headers=_headers(turn))


@router.post("/threads/{thread_id}/runs/stream")
async def stream_run(thread_id: Id, body: RunBody, served: ServedHere, running: RunningHere, owner: Owner) -> Response:
    """Begin a run and follow it."""
    turn = await begun_on(served, running, owner, thread_id, body)
    return _followed(served, running, owner, turn, stops=body.on_disconnect == "cancel")


@router.post("/threads/{thread_id}/runs/wait")
async def wait_run(thread_id: Id, body: RunBody, served: ServedHere, running: RunningHere, owner: Owner) -> Response:
    """Begin a run and answer with the state it ends in."""
    turn = await begun_on(served, running, owner, thread_id, body)
    return _awaited(served, running, owner, turn, stops=body.on_disconnect == "cancel")


@router.post("/runs")
async def create_stateless_run(body: RunBody, served: ServedHere, running: RunningHere, owner: Owner) -> Response:
    """Begin a run that has a thread of its own."""
    turn = await _begun_alone(served, running, owner, body)
    return Answer(run_of(turn), headers=_headers(turn))


@router.post("/runs/stream")
async def stream_stateless_run(body: RunBody, served: ServedHere, running: RunningHere, owner: Owner) -> Response:
    """Begin a run that has a thread of its own, and follow it."""
    turn = await _begun_alone(served, running, owner, body)
    return _followed(served, running, owner, turn, stops=body.on_disconnect == "cancel")


@router.post("/runs/wait")
async def wait_stateless_run(body: RunBody, served: ServedHere, running: RunningHere, owner: Owner) -> Response:
    """Begin a run that has a thread of its own, and answer with the state it ends in."""
    turn = await _begun_alone(served, running, owner, body)
    return _awaited(served, running, owner, turn, stops=body.on_disconnect == "cancel")


@router.post("/runs/batch")
async def create_batch(
    body: Annotated[list[RunBody], Field(max_length=100)], served: ServedHere, running: RunningHere, owner: Owner
) -> Response:
    """Begin several runs, each with a thread of its own."""
    return Answer([run_of(await _begun_alone(served, running, owner, one)) for one in body])


# -- following -------------------------------------------------------------------------------------------------------


@router.get("/threads/{thread_id}/runs/{run_id}/stream")
async def join_stream(
    run: Run,
    served: ServedHere,
    running: RunningHere,
    owner: Owner,
    last_event_id: LastEventId = None,
    stream_mode: Annotated[list[Mode | Literal[""]], Query(description="Only events of these.")] = [],  # noqa: B006
    cancel_on_disconnect: Annotated[bool, Query(description="Stop the run when this connection breaks.")] = False,
) -> Response:
    """Follow a run: from its first event, or from after the one that `Last-Event-ID` names."""
    modes = [mode for mode in stream_mode if mode]  # clients write none of them as an empty one
    after = _number(last_event_id)
    return _followed(served, running, owner, run, after=after, modes=modes, stops=cancel_on_disconnect)


def _number(last_event_id: str | None) -> int:
    """The number of an event; clients write -1 for all of them."""
    if last_event_id in (None, "", "-1"):
        return 0
    if last_event_id is None or not last_event_id.isdecimal() or len(last_event_id) > 15:
        raise Invalid("is no id of an event of a run", field="Last-Event-ID")
    return int(last_event_id)


def _followed(
    served: Served,
    running: Running,
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
            async for told in _told(served, running, ref, turn.id, after):
                is_over = told[-1].kind == END
                yield b"".join(_frame(one) for one in told if not modes or _is_of(one.kind, modes))
        finally:
            if stops and not is_over:
                await asyncio.shield(running.stop(ref, turn.id))

    return EventStream(frames(), headers=_headers(turn, "stream"))


async def _told(served: Served, running: Running, ref: Ref, id: str, after: int) -> AsyncIterator[Sequence[Told]]:
    """What a run tells; of one whose events are no longer kept, how its thread stands."""
    is_first = True
    async for told in running.follow(ref, id, after):
        if not told:  # the reader had the last one
            return
        if is_first and told[-1].kind == END and told[0].number == 1:
            yield [Told(0, "values", dumps(await _values(served, ref)))]
        is_first = False
        yield told


def _frame(one: Told) -> bytes:
    return b"event: %b\ndata: %b\nid: %d\n\n" % (one.kind.encode(), one.shown, one.number)


def _is_of(kind: str, modes: Sequence[str]) -> bool:
    name = kind.partition("|")[0].partition("/")[0]
    return name in _ALWAYS or name in modes or (name == "messages" and "messages-tuple" in modes)


@router.get("/threads/{thread_id}/runs/{run_id}/join")
async def join_run(
    run: Run,
    served: ServedHere,
    running: RunningHere,
    owner: Owner,
    cancel_on_disconnect: Annotated[bool, Query(description="Stop the run when this connection breaks.")] = False,
) -> Response:
    """Wait for a run's end, and answer with the state it ended in."""
    return _awaited(served, running, owner, run, stops=cancel_on_disconnect)


def _awaited(served: Served, running: Running, owner: str, turn: Turn, *, stops: bool) -> Response:
    ref = Ref(owner, turn.conversation_id)

    async def whole() -> AsyncIterator[bytes]:
        answer = asyncio.ensure_future(_outcome(served, running, ref, turn.id))
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
                await asyncio.shield(running.stop(ref, turn.id))
            answer.cancel()

    return StreamingResponse(whole(), media_type="application/json", headers=_headers(turn, "join"))


async def _outcome(served: Served, running: Running, ref: Ref, id: str) -> bytes:
    """The last state that a run told, or its error."""
    values = error = None
    async for told in running.follow(ref, id):
        for one in told:
            values = one.shown if one.kind == "values" else values
            error = one.shown if one.kind == ERROR else error
    if error is not None:
        return b'{"__error__":%b}' % error
    return values or dumps(await _values(served, ref))


async def _values(served: Served, ref: Ref) -> Any:
    return (await states.state(served, await served.et.conversations.get(ref.id, ref.owner)))["values"]


# -- looking and stopping --------------------------------------------------------------------------------------------

Member = Literal[
    "run_id", "thread_id", "assistant_id", "created_at", "updated_at", "status", "metadata", "kwargs",
    "multitask_strategy",
]  # fmt: skip


@router.get("/threads/{thread_id}/runs")
async def list_runs(
    one: Thread,
    served: ServedHere,
    limit: Annotated[int, Query(ge=1, le=1000)] = 10,
    offset: Annotated[int, Query(ge=0, le=100_000)] = 0,
    status: Annotated[RunStatus | None, Query()] = None,
    select: Annotated[list[Member] | None, Query()] = None,
) -> Response:
    """A thread's runs, the newest first."""
    states_asked = STATES.get(status, ()) if status is not None else ()
    if status is not None and not states_asked:
        return Answer([])
    found = await _visible(served, one, states_asked, offset + limit)
    rows = [run_of(turn) for turn in found[offset:]]
    return Answer(rows if not select else [{name: row[name] for name in select} for row in rows])


async def _visible(served: Served, one: Conversation, wanted: Sequence[TurnState], count: int) -> list[Turn]:
    found: list[Turn] = []
    before = None
    while len(found) < count:
        page = await served.et.store.turns(TurnQuery(one.owner, one.id, wanted, before, count))
        found += [turn for turn in page if turn.kind == KIND and not turn.metadata.get(HIDDEN)]
        if len(page) < count:
            break
        before = page[-1].number
    return found[:count]


@router.get("/threads/{thread_id}/runs/{run_id}")
async def get_run(run: Run) -> Response:
    """How a run stands."""
    return Answer(run_of(run))


@router.delete("/threads/{thread_id}/runs/{run_id}", status_code=204, response_class=Response)
async def delete_run(run: Run, served: ServedHere, owner: Owner) -> None:
    """Take a run that has ended out of sight."""
    if not run.state.is_final:
        raise Conflict(f"run {run.id!r} runs; cancel it first")
    await served.et.store.write(Ref(owner, run.conversation_id), HideRun(id=run.id))


Action = Annotated[Literal["interrupt", "rollback"], Query(description="`rollback`: its checkpoints go too.")]


@router.post("/threads/{thread_id}/runs/{run_id}/cancel", status_code=202)
async def cancel_run(
    run: Run,
    served: ServedHere,
    running: RunningHere,
    owner: Owner,
    wait: Annotated[bool, Query(description="Answer when it has ended.")] = False,
    action: Action = "interrupt",
) -> Response:
    """Stop a run."""
    if run.state.is_final:
        raise NotFound(f"run {run.id!r} has ended; there is nothing to stop")
    ref = Ref(owner, run.conversation_id)
    await running.stop(ref, run.id, action)
    if not wait:
        return Response(status_code=202)
    await running.ended(ref, run.id)
    return Answer({}, headers=_headers(run, "join"))


class Cancelled(Body):
    """Which runs: some of a thread, or all that wait or run."""

    thread_id: str | None = Field(default=None, min_length=1, max_length=128)
    run_ids: list[str] | None = Field(default=None, max_length=1000)
    status: Literal["pending", "running", "all"] | None = None

    @model_validator(mode="after")
    def _says_which(self) -> Cancelled:
        if (self.status is None) == (self.run_ids is None) or (self.run_ids is not None and self.thread_id is None):
            raise ValueError("name a status, or a thread and runs of it")
        return self


@router.post("/runs/cancel", status_code=204, response_class=Response)
async def cancel_runs(
    body: Cancelled, served: ServedHere, running: RunningHere, owner: Owner, action: Action = "interrupt"
) -> None:
    """Stop several runs."""
    for turn in await _to_stop(served, owner, body):
        await running.stop(Ref(owner, turn.conversation_id), turn.id, action)


async def _to_stop(served: Served, owner: str, body: Cancelled) -> list[Turn]:
    states_asked = STATES["running"] + STATES["pending"] if body.status in (None, "all") else STATES[body.status]
    found = await served.et.store.turns(TurnQuery(owner, body.thread_id, states_asked, None, 1000))
    meant = [turn for turn in found if turn.kind == KIND and (body.run_ids is None or turn.id in body.run_ids)]
    if not meant and body.run_ids is not None:
        raise NotFound("none of these runs goes on")
    return meant
