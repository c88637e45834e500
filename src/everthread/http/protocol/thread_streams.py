"""/threads/{id}/stream: the events of a thread's runs, one run after the other, until the reader disconnects.

The id of an event is `run-number`, so `Last-Event-ID` brings the rest of that run and every later one. The second
version of the protocol has a stream of its own: `thread_events`.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Annotated, Literal, NamedTuple

from fastapi import APIRouter, Query
from starlette.responses import Response

from everthread.conversation import Conversation
from everthread.core.errors import Invalid
from everthread.core.nouns import Ref
from everthread.http.protocol.dependencies import EVENT_STREAM, GraphRunsDep, ListParameter, ThreadDep
from everthread.http.protocol.graph_runs import GraphRuns
from everthread.http.protocol.graph_stream import LIFECYCLE
from everthread.http.protocol.run_events import RunEvent
from everthread.http.protocol.run_rows import MAX_RUNS, visible_runs
from everthread.http.protocol.runs import LastEventId
from everthread.http.sse import EventStreamResponse, encode_frame
from everthread.runs.stored_events import POLL_SECONDS

router = APIRouter()
ThreadMode = Literal["run_modes", "lifecycle", "state_update"]
_EVENT_ID = re.compile(r"([0-9]{1,15})(?:-([0-9]{1,15}))?")


class EventPosition(NamedTuple):
    """An event of a thread: the number of its run, and its own number there."""

    run: int
    event: int


@router.get("/threads/{thread_id}/stream", tags=["LangGraph: runs"], response_class=Response, responses=EVENT_STREAM)
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

    return EventStreamResponse(frames(), ends_by_itself=False)


def _position(last_event_id: str | None) -> EventPosition | None:
    """None to start with the current runs; clients send -1, or a hyphen, for everything there is."""
    if not last_event_id:
        return None
    if last_event_id in ("-1", "-"):
        return EventPosition(0, 0)
    if (found := _EVENT_ID.fullmatch(last_event_id)) is None:
        raise Invalid("must be the id of an event of this thread", field="Last-Event-ID")
    return EventPosition(int(found[1]), int(found[2] or 0))


def _is_in_modes(kind: str, modes: list[ThreadMode]) -> bool:
    name = kind.partition("|")[0]
    return "run_modes" in modes or name in LIFECYCLE or ("state_update" in modes and name == "values")


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
            waiting = await visible_runs(thread, most=MAX_RUNS, since=last.run)
            for turn in reversed(waiting):
                after = last.event if turn.number == last.run else 0
                if not (skips_ended and turn.state.is_final):
                    async for batch in graph_runs.follow(ref, turn.id, after):
                        for event in batch:
                            yield turn.number, event
                last = EventPosition(turn.number + 1, 0)
            skips_ended = False
            if not waiting:
                await watch.wait(POLL_SECONDS)
