"""I20, generated from the OpenAPI: whatever operation there is, another owner's id is answered like an unknown one,
a malformed id is refused, and without a good key nobody gets in. A route cannot be added without it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest
from fastapi import FastAPI

import everthread
from everthread import Everthread
from everthread.core.access import new_key
from everthread.core.clock import system_clock
from everthread.http.app import create_app
from everthread.settings import Settings
from tests.http.conftest import client_of, key_for
from tests.http.operations import OPEN, Operation, example_of, operations

IDS = {"conversation_id": "c", "thread_id": "c", "message_id": "m"}
"""What alice has; every other id in an address is made up, and lies below one of these."""
MALFORMED = ("x" * 129, "a%00b")


def _every() -> list[Operation]:
    app = create_app(everthread.open("memory://", worker=False), Settings(database="memory://"))
    return list(operations(app))


EVERY = _every()
ADMINS = [one for one in EVERY if one.path.startswith(("/api/v1/jobs", "/api/v1/holds"))]
"""What concerns all owners."""
WAITING = "/threads/{thread_id}/stream/events"
"""Waits for a thread that is not there yet, so that clients may listen before their first run."""
NAMED = [one for one in EVERY if one.names and one not in ADMINS and one.path != WAITING]
CLOSED = [one for one in EVERY if one.path not in OPEN]


@pytest.fixture
async def et() -> AsyncIterator[Everthread]:
    """The stores' own tests show that each keeps owners apart; here it is the doors'."""
    async with everthread.open("memory://", worker=False) as opened:
        yield opened


async def ask(client: httpx.AsyncClient, app: FastAPI, operation: Operation, path: str, **more: str) -> httpx.Response:
    """Ask as the operation is meant to be asked, with the least that it needs."""
    whole = app.openapi()
    query = more | {
        one["name"]: example_of(one["schema"], whole)
        for one in operation.spec.get("parameters", ())
        if one["in"] == "query" and one.get("required")
    }
    content = operation.spec.get("requestBody", {}).get("content", {})
    if "application/json" in content:
        body = example_of(content["application/json"]["schema"], whole)
        return await client.request(operation.method, path, params=query, json=body)
    if "multipart/form-data" in content:
        return await client.request(operation.method, path, params=query, files={"file": ("a.txt", b"text")})
    kind = next(iter(content), "application/octet-stream")
    return await client.request(operation.method, path, params=query, content=b"", headers={"Content-Type": kind})


def ids(operation: Operation) -> dict[str, str]:
    return {name: IDS.get(name, "made-up") for name in operation.names}


def wrong(answers: list[tuple[Operation, httpx.Response]], status: int) -> list[str]:
    """Which operations answered otherwise."""
    return [
        f"{operation}: {answer.status_code} {answer.text[:200]}"
        for operation, answer in answers
        if (answer.status_code, answer.headers["content-type"]) != (status, "application/problem+json")
    ]


async def test_i20_another_owners_id_is_answered_like_an_unknown_one(app: FastAPI, et: Everthread) -> None:
    async with client_of(app, await key_for(et, "bob")) as bob:
        unknown = [(one, await ask(bob, app, one, one.at(**ids(one)))) for one in NAMED]
        conv = await et.conversations.create(id="c", owner="alice")
        await conv.append({"role": "user", "content": "hi", "id": "m"})
        foreign = [(one, await ask(bob, app, one, one.at(**ids(one)))) for one in NAMED]
    assert wrong(unknown, 404) == []
    assert [_told(answer) for _, answer in foreign] == [_told(answer) for _, answer in unknown]
    assert [one.text async for one in conv.messages()] == ["hi"]


def _told(answer: httpx.Response) -> tuple[int, bytes, dict[str, str]]:
    headers = {name: value for name, value in answer.headers.items() if name != "x-request-id"}
    return answer.status_code, answer.content, headers


@pytest.mark.parametrize("id", MALFORMED, ids=["too long", "NUL"])
async def test_a_malformed_id_is_refused(app: FastAPI, et: Everthread, id: str) -> None:
    async with client_of(app, await key_for(et, "alice")) as alice:
        answers = [(one, await ask(alice, app, one, one.at(**{**ids(one), one.names[0]: id}))) for one in NAMED]
    assert wrong(answers, 422) == []


async def test_what_concerns_all_owners_is_for_admins(app: FastAPI, et: Everthread) -> None:
    assert ADMINS
    async with client_of(app, await key_for(et, "bob")) as bob:
        answers = [(one, await ask(bob, app, one, one.at(**ids(one)))) for one in ADMINS]
    assert wrong(answers, 403) == []


async def test_without_a_good_key_nobody_gets_in(app: FastAPI, et: Everthread) -> None:
    revoked = new_key("alice", now=system_clock())
    await et.store.api_keys.add(revoked.key)
    await et.store.api_keys.revoke(revoked.key.id)
    for key in (None, new_key("alice", now=system_clock()).written, revoked.written, "not a key"):
        async with client_of(app, key) as client:
            answers = [(one, await ask(client, app, one, one.at(**ids(one)))) for one in CLOSED]
        assert wrong(answers, 401) == []


async def test_an_unknown_parameter_is_refused(app: FastAPI, et: Everthread) -> None:
    async with client_of(app, await key_for(et, "alice", is_admin=True)) as alice:
        answers = [(one, await ask(alice, app, one, one.at(**ids(one)), nobody_knows="1")) for one in EVERY]
    assert wrong(answers, 422) == []


def test_every_operation_says_what_it_does_and_what_may_come_of_it() -> None:
    for operation in EVERY:
        assert operation.spec.get("description") or operation.spec.get("summary"), str(operation)
        if operation in CLOSED:
            assert {"401", "422", "429"} <= operation.spec["responses"].keys(), str(operation)
    names = [operation.spec["operationId"] for operation in EVERY]
    assert len(names) == len(set(names))
