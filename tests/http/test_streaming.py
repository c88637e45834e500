"""An event stream, and the loop that it is served in."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator

import pytest

from everthread import Everthread
from everthread.http import server
from everthread.http.sse import EventStreamResponse
from everthread.http.turn_service import TurnService
from everthread.settings import Settings
from everthread.turn.request import TurnOptions


def test_the_service_runs_in_a_loop_that_is_made_for_sockets() -> None:
    uvloop = pytest.importorskip("uvloop", reason="not on this system")
    seen: list[asyncio.AbstractEventLoop] = []

    async def look() -> None:
        seen.append(asyncio.get_running_loop())

    server.run(look())
    assert isinstance(seen[0], uvloop.Loop)


def test_what_is_loaded_before_it_listens_is_no_longer_looked_through_for_garbage() -> None:
    threshold = gc.get_threshold()
    gc.unfreeze()  # a test before it in this process may have tuned it
    gc.set_threshold(700, 10, 10)
    try:
        server.tune_gc()
        assert gc.get_freeze_count() > 0
        assert gc.get_threshold()[0] > 700
    finally:
        gc.unfreeze()
        gc.set_threshold(*threshold)


async def test_i18_events_that_went_out_in_one_write_resume_after_any_of_them(et: Everthread) -> None:
    turns = TurnService(et, Settings(database="memory://", model="scripted:echo"))
    conversation = await et.conversations.create(id="c")
    turn = await turns.begin(conversation, "never ends, never forgets; 也不会忘记. " * 20, TurnOptions())
    writes = [write async for write in turns.frames(conversation, turn)]
    told = _events(b"".join(writes))
    assert any(len(_events(write)) > 1 for write in writes)
    assert [_number(event) for event in told] == list(range(1, len(told) + 1))
    for cut in range(len(told) + 1):
        rest = b"".join([write async for write in turns.frames(conversation, turn, after=cut)])
        assert _events(rest) == told[cut:]


async def test_a_reader_who_is_beyond_the_last_event_is_told_how_the_turn_ended(et: Everthread) -> None:
    turns = TurnService(et, Settings(database="memory://", model="scripted:echo"))
    conversation = await et.conversations.create(id="c")
    turn = await turns.begin(conversation, "hello", TurnOptions())
    told = _events(b"".join([write async for write in turns.frames(conversation, turn)]))
    for after in (len(told) + 1, 10**9):
        (event,) = _events(b"".join([write async for write in turns.frames(conversation, turn, after=after)]))
        assert event.startswith(b"event: snapshot\n")
        assert b'"state":"complete","text":"hello"' in event


def _events(written: bytes) -> list[bytes]:
    return [event for event in written.split(b"\n\n") if event]


def _number(event: bytes) -> int:
    return int(event.partition(b"\n")[0].removeprefix(b"id: "))


async def test_a_reader_that_goes_away_closes_what_it_read_from() -> None:
    closed: list[bool] = []

    async def frames() -> AsyncIterator[bytes]:
        try:
            yield b"event: token\ndata: {}\n\n"
            await asyncio.sleep(60)
        finally:
            closed.append(True)

    sent: list[dict[str, object]] = []
    is_sent = asyncio.Event()

    async def send(message: dict[str, object]) -> None:
        sent.append(message)
        if message["type"] == "http.response.body":
            is_sent.set()

    async def receive() -> dict[str, object]:
        await is_sent.wait()
        return {"type": "http.disconnect"}

    stream = EventStreamResponse(frames(), headers={"Content-Location": "/here"})
    await stream({"type": "http", "method": "GET"}, receive, send)  # type: ignore[arg-type]
    headers = dict(sent[0]["headers"])  # type: ignore[call-overload]
    assert closed == [True]
    assert (headers[b"cache-control"], headers[b"content-location"]) == (b"no-store", b"/here")
