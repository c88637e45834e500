"""More turns and streams than a server takes at once: they wait in line, and are refused before anything is stored."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

import everthread
from everthread import Everthread
from everthread.http.app import create_app
from everthread.settings import Settings
from tests.http.conftest import key_for
from tests.http.served import API, events, listening, scripted

ANSWER = "never ends, never forgets; " * 10


@asynccontextmanager
async def served(
    folder: Path, **limits: float
) -> AsyncIterator[tuple[Everthread, httpx.AsyncClient, httpx.AsyncClient]]:
    """A server with these limits, and two owners who ask."""
    model = scripted(folder, ANSWER, pace_seconds=0.02)
    settings = Settings(database="memory://", requests_per_minute=0, model=model).model_copy(update=limits)
    async with everthread.open("memory://", worker=False) as et:
        app = create_app(et, settings)
        alice, bob = await key_for(et, "alice"), await key_for(et, "bob")
        async with (
            listening(app) as address,
            httpx.AsyncClient(base_url=address, timeout=60, headers={"X-Api-Key": alice}) as one,
            httpx.AsyncClient(base_url=address, timeout=60, headers={"X-Api-Key": bob}) as other,
        ):
            yield et, one, other


async def metric(client: httpx.AsyncClient, name: str) -> float:
    for line in (await client.get("/metrics")).text.splitlines():
        if line.startswith(f"{name} "):
            return float(line.rpartition(" ")[2])
    raise AssertionError(name)


async def until(client: httpx.AsyncClient, name: str, value: float) -> None:
    while await metric(client, name) != value:  # noqa: ASYNC110 - as a client sees it
        await asyncio.sleep(0.01)


def chat(client: httpx.AsyncClient, conversation: str, **options: str) -> asyncio.Task[httpx.Response]:
    body = {"message": "hello", "conversation_id": conversation, **options}
    return asyncio.create_task(client.post(f"{API}/chat", json=body))


RUN = {"assistant_id": "everthread", "input": {"messages": [{"role": "user", "content": "hello"}]}}


async def test_a_turn_beyond_the_limit_waits_and_is_answered(tmp_path: Path) -> None:
    async with served(tmp_path, max_running_turns=1) as (_, alice, bob):
        first = chat(alice, "c1")
        await until(alice, "everthread_http_turns_running", 1)
        second = chat(bob, "c2")
        await until(alice, "everthread_http_turns_waiting", 1)
        assert [turn.json()["text"] for turn in await asyncio.gather(first, second)] == [ANSWER, ANSWER]
        await until(alice, "everthread_http_turns_running", 0)
        assert await metric(alice, 'everthread_http_turn_admissions_total{outcome="admitted"}') == 2


@pytest.mark.parametrize(
    "path", [f"{API}/chat", f"{API}/chat/stream", "/threads/new/runs", "/runs/wait", "/runs/batch"]
)
async def test_what_finds_no_place_in_line_is_refused_and_nothing_of_it_is_stored(tmp_path: Path, path: str) -> None:
    bodies = {
        f"{API}/chat": {"message": "hello", "conversation_id": "new"},
        f"{API}/chat/stream": {"message": "hello", "conversation_id": "new"},
        "/threads/new/runs": {**RUN, "if_not_exists": "create"},
        "/runs/wait": RUN,
        "/runs/batch": [RUN, RUN],
    }
    async with served(tmp_path, max_running_turns=1, max_waiting_turns=0) as (et, alice, bob):
        running = chat(alice, "c")
        await until(alice, "everthread_http_turns_running", 1)
        refused = await bob.post(path, json=bodies[path])
        assert refused.status_code == 503
        assert refused.headers["content-type"] == "application/problem+json"
        assert refused.json()["code"] == "too_busy"
        assert refused.json()["retryable"]
        assert int(refused.headers["retry-after"]) >= 1
        assert not (await et.conversations.list("bob", include_deleted=True)).items
        assert await metric(alice, 'everthread_http_turn_admissions_total{outcome="full"}') == 1
        assert (await running).json()["state"] == "complete"
        await until(alice, "everthread_http_turns_running", 0)
        assert (await bob.post(path, json=bodies[path])).status_code == 200


async def test_the_slot_of_a_turn_is_taken_until_it_ends_whoever_listens(tmp_path: Path) -> None:
    async with served(tmp_path, max_running_turns=1, max_wait_seconds=0) as (_, alice, bob):
        body = {"message": "hello", "conversation_id": "c"}
        async with alice.stream("POST", f"{API}/chat/stream", json=body) as answer:
            async for _ in events(answer):
                break  # and goes away
        assert (await chat(bob, "d")).status_code == 503
        assert (await alice.post("/threads/c/runs", json=RUN)).status_code == 200  # waits behind it, in its slot
        await until(alice, "everthread_http_turns_running", 0)
        assert (await chat(bob, "d")).json()["state"] == "complete"


async def test_a_turn_can_be_interrupted_though_all_slots_are_taken(tmp_path: Path) -> None:
    async with served(tmp_path, max_running_turns=1, max_waiting_turns=1) as (_, alice, __):
        first = chat(alice, "c")
        await until(alice, "everthread_http_turns_running", 1)
        second = chat(alice, "c", when_busy="interrupt")
        assert (await first).json()["state"] == "cancelled"
        assert (await second).json()["state"] == "complete"


async def test_one_follower_too_many_is_refused_and_who_asks_is_not(tmp_path: Path) -> None:
    async with served(tmp_path, max_streams=1) as (_, alice, bob):
        await alice.post("/threads", json={"thread_id": "t"})
        async with alice.stream("GET", "/threads/t/stream") as following:
            assert following.status_code == 200
            await until(alice, "everthread_http_streams_open", 1)
            for refused in (
                await alice.get("/threads/t/stream"),
                await alice.post("/threads/t/stream/events", json={"channels": ["values"]}),
            ):
                assert refused.status_code == 503
                assert refused.json()["code"] == "too_many_streams"
                assert int(refused.headers["retry-after"]) >= 1
            async with bob.stream("POST", f"{API}/chat/stream", json={"message": "hello"}) as answer:
                assert [event.kind async for event in events(answer)][-1] == "done"
            assert await metric(alice, "everthread_http_streams_refused_total") == 2
        await until(alice, "everthread_http_streams_open", 0)
        async with alice.stream("GET", "/threads/t/stream") as following:
            assert following.status_code == 200
