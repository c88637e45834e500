"""A server that is told to stop: turns end, streams have an end, nothing new begins, and the process is gone."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from starlette.types import Message

import everthread
from everthread import NotFound
from everthread.http.auth import LOCAL_CALLER
from everthread.http.middleware import EventStreamMiddleware, EventStreams
from everthread.http.request_metrics import RequestMetrics
from everthread.http.sse import EventStreamResponse
from tests.forkserver import Child, ForkServer
from tests.http.served import API, Event, events, process, scripted, text_of

ANSWER = "never ends, never forgets; " * 20


@asynccontextmanager
async def serving(
    forkserver: ForkServer, url: str, folder: Path, *, pace_seconds: float, stop_seconds: float, **more: str
) -> AsyncIterator[tuple[Child, str]]:
    model = scripted(folder, ANSWER, pace_seconds=pace_seconds)
    environment = {"EVERTHREAD_MODEL": model, "EVERTHREAD_STOP_SECONDS": str(stop_seconds), **more}
    with process(forkserver, url, **environment) as running:
        yield running


def client_at(address: str) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=address, timeout=60)


async def stream_and_stop(server: Child, address: str) -> list[Event]:
    """A turn that hears the signal after its tenth event; and everything its reader was told."""
    told: list[Event] = []
    async with (
        client_at(address) as client,
        client.stream("POST", f"{API}/chat/stream", json={"message": "hello", "conversation_id": "c"}) as answer,
    ):
        async for event in events(answer):
            told.append(event)
            if len(told) == 10:
                server.send(signal.SIGTERM)
    assert await asyncio.to_thread(server.wait) == 0, server.said()
    return told


async def test_a_turn_that_ends_in_time_is_whole(forkserver: ForkServer, durable_url: str, tmp_path: Path) -> None:
    async with serving(forkserver, durable_url, tmp_path, pace_seconds=0.01, stop_seconds=60) as (server, address):
        told = await stream_and_stop(server, address)
    assert told[-1].kind == "done"
    assert told[-1].data["state"] == "complete"
    assert text_of(told) == ANSWER


async def test_a_turn_that_takes_too_long_ends_with_what_it_has_said(
    forkserver: ForkServer, durable_url: str, tmp_path: Path
) -> None:
    async with serving(forkserver, durable_url, tmp_path, pace_seconds=0.2, stop_seconds=0.3) as (server, address):
        told = await stream_and_stop(server, address)
    assert told[-1].kind == "done"
    assert told[-1].data["state"] == "interrupted"
    assert [one.number for one in told] == list(range(1, len(told) + 1))
    async with everthread.open(durable_url, worker=False) as et:
        conversation = await et.conversations.get("c")
        turn = await conversation.turn(told[0].data["turn_id"])
        assert turn.state == "interrupted"
        assert (await conversation.message(turn.answer_id)).text == text_of(told)


async def test_an_answer_that_somebody_waits_for_comes_before_the_server_is_gone(
    forkserver: ForkServer, durable_url: str, tmp_path: Path
) -> None:
    async with serving(forkserver, durable_url, tmp_path, pace_seconds=0.2, stop_seconds=0.3) as (server, address):
        async with client_at(address) as client:
            body = {"message": "hello", "conversation_id": "c"}
            waiting = asyncio.create_task(client.post(f"{API}/chat", json=body))
            await until_running(client, "c")
            server.send(signal.SIGTERM)
            answer = await waiting
        assert await asyncio.to_thread(server.wait) == 0, server.said()
    assert answer.status_code == 200
    assert answer.json()["state"] == "interrupted"


async def until_running(client: httpx.AsyncClient, conversation: str) -> None:
    while True:
        turns = (await client.get(f"{API}/conversations/{conversation}/turns")).json().get("items", [])
        if any(turn["state"] == "running" for turn in turns):
            return
        await asyncio.sleep(0.02)


async def test_on_an_open_connection_a_stopping_server_refuses_to_begin_a_turn(
    forkserver: ForkServer, durable_url: str, tmp_path: Path
) -> None:
    async with serving(forkserver, durable_url, tmp_path, pace_seconds=0.05, stop_seconds=60) as (server, address):
        async with client_at(address) as running, client_at(address) as probe, client_at(address) as kept:
            answer = asyncio.create_task(running.post(f"{API}/chat", json={"message": "hello", "conversation_id": "c"}))
            await until_running(probe, "c")
            assert (await kept.get("/readyz")).status_code == 200
            server.send(signal.SIGTERM)
            while (ready := await probe.get("/readyz")).status_code == 200:  # noqa: ASYNC110 - another process
                await asyncio.sleep(0.01)
            assert ready.json()["code"] == "stopping"
            refused = await kept.post(f"{API}/chat", json={"message": "more", "conversation_id": "new"})
            assert refused.status_code == 503
            assert refused.json()["code"] == "stopping"
            assert refused.json()["retryable"]
            assert int(refused.headers["retry-after"]) >= 1
            assert refused.headers["connection"] == "close"
            assert (await answer).json()["state"] == "complete"
        assert await asyncio.to_thread(server.wait) == 0, server.said()
    async with everthread.open(durable_url, worker=False) as et:
        with pytest.raises(NotFound):
            await et.conversations.get("new")


async def test_neither_idle_followers_nor_half_a_request_keep_a_server_from_stopping(
    forkserver: ForkServer, durable_url: str, tmp_path: Path
) -> None:
    """A stream of a thread never ends by itself: it is ended, as a response is, and not broken off."""
    async with serving(forkserver, durable_url, tmp_path, pace_seconds=0.05, stop_seconds=0.5) as (server, address):
        place = urlsplit(address)
        async with client_at(address) as client:
            await client.post("/threads", json={"thread_id": "t"})
            silent = await asyncio.open_connection(place.hostname, place.port)
            half = await asyncio.open_connection(place.hostname, place.port)
            half[1].write(b"POST /api/v1/chat HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\n{")
            unread = await asyncio.open_connection(place.hostname, place.port)
            unread[1].write(b"GET /threads/t/stream HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            async with (
                client.stream("GET", "/threads/t/stream") as following,
                client.stream("POST", "/threads/t/stream/events", json={"channels": ["values"]}) as watching,
            ):
                assert following.status_code == watching.status_code == 200
                server.send(signal.SIGTERM)
                for stream in (following, watching):
                    async for _ in stream.aiter_bytes():  # raises if it is broken off
                        pass
        assert await asyncio.to_thread(server.wait) == 0, server.said()
        assert "Traceback" not in server.said()
        for _, writer in (silent, half, unread):
            writer.close()


@pytest.mark.parametrize(("ends_by_itself", "breaks_off"), [(True, True), (False, False)])
async def test_a_stream_that_is_cut_before_its_last_event_breaks_off(*, ends_by_itself: bool, breaks_off: bool) -> None:
    """A client that gets the end of the response takes the stream for whole, and does not come back for the rest."""
    streams, sent, is_gone = EventStreams(), list[Message](), asyncio.Event()

    async def frames() -> AsyncIterator[bytes]:
        yield b"event: token\n\n"
        await asyncio.Event().wait()

    async def receive() -> Message:
        await is_gone.wait()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)
        if message.get("body"):
            streams.close()

    middleware = EventStreamMiddleware(
        EventStreamResponse(frames(), ends_by_itself=ends_by_itself), streams, RequestMetrics()
    )
    scope = {"type": "http", "method": "POST", "path": "/x", "state": {"caller": LOCAL_CALLER}, "headers": []}
    serving = asyncio.create_task(middleware(scope, receive, send))
    while not streams.is_closed:  # noqa: ASYNC110 - set by the stream itself
        await asyncio.sleep(0)
    await asyncio.wait([serving], timeout=0.2)  # a moment for what should happen at once, or not at all
    is_whole = bool(sent) and not sent[-1].get("more_body", True)
    assert is_whole is not breaks_off
    is_gone.set()
    await serving


async def test_a_run_of_a_graph_that_is_followed_has_an_end(
    forkserver: ForkServer, durable_url: str, tmp_path: Path
) -> None:
    told: list[dict[str, Any]] = []
    async with serving(forkserver, durable_url, tmp_path, pace_seconds=0.2, stop_seconds=0.3) as (server, address):
        body = {
            "assistant_id": "everthread",
            "input": {"messages": [{"role": "user", "content": "hello"}]},
            "stream_mode": "messages-tuple",
            "if_not_exists": "create",
        }
        async with client_at(address) as client, client.stream("POST", "/threads/t/runs/stream", json=body) as answer:
            async for line in answer.aiter_lines():
                if line.startswith("event: "):
                    told.append({"event": line.removeprefix("event: ")})
                    if len(told) == 5:
                        server.send(signal.SIGTERM)
        assert await asyncio.to_thread(server.wait) == 0, server.said()
    assert told[-1] == {"event": "end"}


async def test_a_second_ctrl_c_does_not_wait_for_turns(
    forkserver: ForkServer, durable_url: str, tmp_path: Path
) -> None:
    async with (
        serving(forkserver, durable_url, tmp_path, pace_seconds=0.5, stop_seconds=600) as (server, address),
        client_at(address) as client,
        client_at(address) as probe,
    ):
        answer = asyncio.create_task(client.post(f"{API}/chat", json={"message": "hello", "conversation_id": "c"}))
        await until_running(probe, "c")
        server.send(signal.SIGINT)
        while (await probe.get("/readyz")).status_code == 200:  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.01)
        server.send(signal.SIGINT)
        await asyncio.to_thread(server.wait)
        await asyncio.gather(answer, return_exceptions=True)
