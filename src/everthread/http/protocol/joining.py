"""Joining a thread: what its runs tell, one run after the other, until the reader leaves.

An event's id names its run and its place there, so whoever comes back with `Last-Event-ID` gets the rest of that run
and every later one.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from typing import Annotated, Literal, NamedTuple

from fastapi import APIRouter, Query
from starlette.responses import Response

from everthread.core.errors import Invalid
from everthread.core.nouns import Ref
from everthread.core.turns import Turn, TurnQuery
from everthread.http.asking import ALWAYS
from everthread.http.errors import EVERYWHERE
from everthread.http.journal import Told
from everthread.http.protocol.doors import RunningHere, ServedHere, Thread
from everthread.http.protocol.frames import END, ERROR, METADATA
from everthread.http.protocol.rows import HIDDEN, KIND
from everthread.http.protocol.running import Running
from everthread.http.protocol.runs import LastEventId
from everthread.http.protocol.served import Served
from everthread.http.streaming import EventStream

router = APIRouter(tags=["LangGraph: runs"], dependencies=ALWAYS, responses=EVERYWHERE)
ThreadMode = Literal["run_modes", "lifecycle", "state_update"]
_LOOK_SECONDS = 0.25
_MOST_RUNS = 1000
_PAGE = 20
_PLACE = re.compile(r"(\d{1,15})-(\d{1,15})")
_LIFECYCLE = frozenset({METADATA, ERROR, END})


class Place(NamedTuple):
    """An event: the number of its run, and its own there."""

    run: int
    event: int


@router.get("/threads/{thread_id}/stream")
async def join_thread(
    one: Thread,
    served: ServedHere,
    running: RunningHere,
    last_event_id: LastEventId = None,
    stream_mode: Annotated[
        list[ThreadMode], Query(description="All that runs tell, how they begin and end, or states only.")
    ] = ["run_modes"],  # noqa: B006
) -> Response:
    """Follow a thread until you leave: the runs that go on and those to come; after `Last-Event-ID`, the rest."""
    ref = Ref(one.owner, one.id)
    since = _place(last_event_id)

    async def frames() -> AsyncIterator[bytes]:
        async for run, told in _told(served, running, ref, since):
            if _is_meant(told.kind, stream_mode):
                yield b"event: %b\ndata: %b\nid: %d-%d\n\n" % (told.kind.encode(), told.shown, run, told.number)

    return EventStream(frames())


def _place(last_event_id: str | None) -> Place | None:
    """None for what goes on now; clients write -1 for all there is."""
    if not last_event_id:
        return None
    if last_event_id in ("-1", "0"):
        return Place(0, 0)
    if (found := _PLACE.fullmatch(last_event_id)) is None:
        raise Invalid("is no id of an event of a thread", field="Last-Event-ID")
    return Place(int(found[1]), int(found[2]))


def _is_meant(kind: str, modes: list[ThreadMode]) -> bool:
    name = kind.partition("|")[0]
    return "run_modes" in modes or name in _LIFECYCLE or ("state_update" in modes and name == "values")


async def _told(served: Served, running: Running, ref: Ref, since: Place | None) -> AsyncIterator[tuple[int, Told]]:
    """What runs tell, each with the number of its run."""
    last = Place(0, 0) if since is None else since
    is_past = since is None
    while True:
        waiting = await _runs(served, ref, last)
        for turn in waiting:
            after = last.event if turn.number == last.run else 0
            if not (is_past and turn.state.is_final):
                async for some in running.follow(ref, turn.id, after):
                    for told in some:
                        yield turn.number, told
            last = Place(turn.number + 1, 0)  # its next reader begins behind it
        is_past = False
        if not waiting:
            await asyncio.sleep(_LOOK_SECONDS)


async def _runs(served: Served, ref: Ref, since: Place) -> list[Turn]:
    """The thread's runs from a number on, the oldest first; whoever waits for the next one reads a page and no more."""
    found: list[Turn] = []
    before = None
    while len(found) < _MOST_RUNS:
        page = await served.et.store.turns(TurnQuery(ref.owner, ref.id, (), before, _PAGE))
        found += (turn for turn in page if turn.number >= since.run)
        if len(page) < _PAGE or page[-1].number <= since.run:
            break
        before = page[-1].number
    return [turn for turn in reversed(found) if turn.kind == KIND and not turn.metadata.get(HIDDEN)]
