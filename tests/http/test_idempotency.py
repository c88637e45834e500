"""I19: the same key gives the same answer; with another body 422; while the first still runs 409."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import httpx
import pytest
from fastapi import FastAPI, Request

import everthread
from everthread import Everthread
from everthread.core.ids import new_id
from everthread.http import idempotency
from everthread.http.app import create_app
from everthread.settings import Settings
from everthread.testing import ManualClock
from tests.http.conftest import client_of, key_for

KEY = {"Idempotency-Key": "k1"}


@pytest.fixture
def counted(app: FastAPI) -> list[str]:
    """Routes that note how often they were really reached."""
    reached: list[str] = []

    @app.post("/things/{conversation}")
    async def make(conversation: str, request: Request) -> dict[str, object]:
        reached.append((await request.body()).decode())
        request.state.conversation = conversation
        return {"made": len(reached), "said": reached[-1]}

    @app.post("/refusals")
    async def refuse() -> None:
        reached.append("refused")
        raise everthread.Conflict("not today")

    return reached


async def test_i19_the_same_request_again_gets_the_same_answer(alice: httpx.AsyncClient, counted: list[str]) -> None:
    first = await alice.post("/things/c", content="one", headers=KEY)
    again = await alice.post("/things/c", content="one", headers=KEY)
    assert first.status_code == 200
    assert again.content == first.content
    assert "idempotent-replayed" not in first.headers
    assert again.headers["idempotent-replayed"] == "true"
    assert counted == ["one"]


async def test_i19_another_request_with_the_key_is_refused(alice: httpx.AsyncClient, counted: list[str]) -> None:
    await alice.post("/things/c", content="one", headers=KEY)
    for path, body in (("/things/c", "two"), ("/things/d", "one"), ("/things/c?x=1", "one")):
        answer = await alice.post(path, content=body, headers=KEY)
        assert (answer.status_code, answer.json()["code"]) == (422, "key_reused")
    assert counted == ["one"]


async def test_i19_a_request_that_still_runs_is_not_begun_twice(
    app: FastAPI, alice: httpx.AsyncClient, et: Everthread
) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    @app.post("/slow")
    async def slow() -> dict[str, str]:
        begun.set()
        await go_on.wait()
        return {"done": "yes"}

    first = asyncio.create_task(alice.post("/slow", headers=KEY))
    await begun.wait()
    meanwhile = await alice.post("/slow", headers=KEY)
    assert (meanwhile.status_code, meanwhile.json()["code"]) == (409, "still_running")
    go_on.set()
    assert (await first).json() == (await alice.post("/slow", headers=KEY)).json() == {"done": "yes"}


async def test_i19_a_key_is_its_owners(alice: httpx.AsyncClient, bob: httpx.AsyncClient, counted: list[str]) -> None:
    await alice.post("/things/c", content="one", headers=KEY)
    assert (await bob.post("/things/c", content="two", headers=KEY)).json() == {"made": 2, "said": "two"}


async def test_what_failed_may_be_tried_again(alice: httpx.AsyncClient, counted: list[str]) -> None:
    for _ in range(2):
        assert (await alice.post("/refusals", headers=KEY)).json()["code"] == "conflict"
    assert counted == ["refused", "refused"]


async def test_i19_an_answer_outlives_a_restart(durable_url: str, settings: Settings) -> None:
    answers = []
    key = ""
    for _ in range(2):
        async with everthread.open(durable_url, worker=False) as et:
            key = key or await key_for(et, "alice")
            app = create_app(et, settings)

            @app.post("/things")
            async def make() -> dict[str, str]:
                return {"id": new_id()}

            async with client_of(app, key) as client:
                answers.append((await client.post("/things", headers=KEY)).json())
    assert answers[0] == answers[1]


@pytest.mark.parametrize("reach", ["conversation", "message", "owner"])
async def test_i22_an_erase_reaches_stored_answers(
    et: Everthread, alice: httpx.AsyncClient, counted: list[str], reach: str
) -> None:
    conv = await et.conversations.create(id="c", owner="alice")
    await conv.append({"role": "user", "content": "hi", "id": "m"})
    await alice.post("/things/c", content="to be erased", headers=KEY)
    await alice.post("/things/other", content="to be kept", headers={"Idempotency-Key": "k2"})
    if reach == "owner":
        report = await et.erase(owner="alice")
        assert report.reached["api_keys"] == 1
        assert await et.store.api_keys.list("alice") == []
        assert await et.store.replies.begin("alice", "k1", b"x", lease_seconds=1) is None
        return
    report = await et.erase(owner="alice", conversation="c", message="m" if reach == "message" else None)
    assert report.reached["replies"] == 1
    late = await alice.post("/things/c", content="to be erased", headers=KEY)
    assert (late.status_code, late.json()["code"]) == (409, "erased")
    kept = await alice.post("/things/other", content="to be kept", headers={"Idempotency-Key": "k2"})
    assert kept.headers["idempotent-replayed"] == "true"
    assert counted == ["to be erased", "to be kept"]


async def test_i22_an_answer_that_is_being_made_during_an_erase_is_not_stored(
    et: Everthread, app: FastAPI, alice: httpx.AsyncClient
) -> None:
    await et.conversations.create(id="c", owner="alice")

    @app.post("/while-erasing")
    async def answer() -> dict[str, str]:
        await et.erase(owner="alice", conversation="c")
        return {"said": "what was erased"}

    await alice.post("/while-erasing", headers=KEY)
    assert (await alice.post("/while-erasing", headers=KEY)).json()["code"] == "erased"


async def test_a_request_that_takes_long_holds_its_key(
    app: FastAPI, alice: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idempotency, "LEASE_SECONDS", 0.6)
    monkeypatch.setattr(idempotency, "_RENEW_SECONDS", 0.05)
    begun = asyncio.Event()

    @app.post("/long")
    async def answer() -> dict[str, str]:
        begun.set()
        await asyncio.sleep(1.5)
        return {"done": "yes"}

    first = asyncio.create_task(alice.post("/long", headers=KEY))
    await begun.wait()
    await asyncio.sleep(1.0)
    assert (await alice.post("/long", headers=KEY)).json()["code"] == "still_running"
    assert (await first).json() == {"done": "yes"}


async def test_whoever_died_in_mid_answer_does_not_hold_the_key_for_ever(url: str) -> None:
    clock = ManualClock()
    async with everthread.open(url, worker=False, clock=clock) as et:
        assert await et.store.replies.begin("alice", "k", b"r", lease_seconds=10) is None
        stands = await et.store.replies.begin("alice", "k", b"r", lease_seconds=10)
        assert stands is not None
        assert stands.status is None
        clock.move(timedelta(seconds=6))
        await et.store.replies.renew("alice", "k", b"r", lease_seconds=10)
        await et.store.replies.renew("alice", "k", b"other", lease_seconds=100)
        clock.move(timedelta(seconds=6))
        assert await et.store.replies.begin("alice", "k", b"r", lease_seconds=10) is not None
        clock.move(timedelta(seconds=5))
        assert await et.store.replies.begin("alice", "k", b"other", lease_seconds=10) is not None
        assert await et.store.replies.begin("alice", "k", b"r", lease_seconds=10) is None
        await et.store.replies.drop("alice", "k", b"r")
        assert await et.store.replies.begin("alice", "k", b"other", lease_seconds=10) is None
        clock.move(timedelta(days=8))
        assert await et.store.replies.begin("alice", "k", b"new", lease_seconds=10) is None
