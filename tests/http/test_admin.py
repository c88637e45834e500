"""What concerns all owners needs an admin key, on every route; and legal holds, which only admins make."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx

import everthread
from everthread.core.access import new_key
from everthread.core.clock import system_clock
from everthread.http.app import create_app
from everthread.settings import Settings
from tests.http.operations import example_of, operations, schema_of

API = "/api/v1"
ADMIN_ROUTES = {
    ("GET", "/api/v1/jobs"),
    ("POST", "/api/v1/jobs/retry"),
    ("POST", "/api/v1/jobs/{job_id}/retry"),
    ("DELETE", "/api/v1/jobs/{job_id}"),
    ("PUT", "/api/v1/config/compaction"),
    ("GET", "/api/v1/holds"),
    ("POST", "/api/v1/holds"),
    ("POST", "/api/v1/holds/{hold_id}/release"),
}


@asynccontextmanager
async def served(et: everthread.Everthread) -> AsyncIterator[tuple[Any, dict[str, httpx.AsyncClient]]]:
    app = create_app(et, Settings(database="memory://", model="scripted:echo"), needs_key=True)
    clients = {}
    for name in ("ann", "admin"):
        made = new_key(name, is_admin=name == "admin", now=system_clock())
        await et.store.api_keys.add(made.key)
        headers = {"Authorization": f"Bearer {made.written}"}
        clients[name] = httpx.AsyncClient(
            transport=httpx.ASGITransport(app), base_url="http://127.0.0.1", headers=headers
        )
    try:
        yield app, clients
    finally:
        for client in clients.values():
            await client.aclose()


async def test_every_route_for_admins_refuses_the_others() -> None:
    async with everthread.open("memory://") as et, served(et) as (app, clients):
        found = set()
        for operation in operations(app):
            address = operation.at(**dict.fromkeys(operation.names, "1"))
            schema = schema_of(app, operation)
            body = None if schema is None else example_of(schema, app.openapi())
            answer = await clients["ann"].request(operation.method, address, json=body)
            if answer.status_code == 403:
                assert answer.json()["code"] == "forbidden"
                found.add((operation.method.upper(), operation.path))
        assert found == ADMIN_ROUTES


async def test_an_admin_reads_no_conversation_of_another_owner() -> None:
    async with everthread.open("memory://") as et, served(et) as (_, clients):
        await clients["ann"].post(f"{API}/conversations", json={"id": "hers"})
        assert (await clients["admin"].get(f"{API}/conversations/hers")).status_code == 404
        assert (await clients["admin"].post(f"{API}/conversations/hers/share", json={})).status_code == 404


async def test_a_hold_over_http_refuses_its_owners_erase_until_an_admin_lets_go() -> None:
    async with everthread.open("memory://") as et, served(et) as (_, clients):
        ann, admin = clients["ann"], clients["admin"]
        await ann.post(f"{API}/conversations", json={"id": "trip"})
        made = await admin.post(f"{API}/holds", json={"owner": "ann", "conversation_id": "trip", "reason": "case 12"})
        assert made.status_code == 201
        hold = made.json()
        refused = await ann.post(f"{API}/conversations/trip/erase", json={"confirm": "trip"})
        assert (refused.status_code, refused.json()["code"]) == (409, "held")
        assert "case 12" in refused.json()["detail"]
        assert (await ann.post(f"{API}/erase", json={"confirm": "ann"})).status_code == 409
        assert [one["id"] for one in (await admin.get(f"{API}/holds")).json()["items"]] == [hold["id"]]
        released = (await admin.post(f"{API}/holds/{hold['id']}/release")).json()
        assert released["released_by"] == hold["held_by"]
        assert (await ann.post(f"{API}/conversations/trip/erase", json={"confirm": "trip"})).status_code == 200
        assert (await admin.get(f"{API}/holds")).json()["items"] == []
        (kept,) = (await admin.get(f"{API}/holds?released=true&owner=ann")).json()["items"]
        assert kept["reason"] == "case 12"


async def test_verify_takes_a_conversation_in_its_body_and_refuses_what_it_does_not_know() -> None:
    async with everthread.open("memory://") as et, served(et) as (_, clients):
        ann = clients["ann"]
        for id in ("trip", "other"):
            await ann.post(f"{API}/conversations", json={"id": id})
            await ann.post(f"{API}/conversations/{id}/messages", json={"messages": [{"role": "user", "content": "hi"}]})
        assert (await ann.post(f"{API}/verify")).json()["conversations"] == 2
        assert (await ann.post(f"{API}/verify", json={})).json()["conversations"] == 2
        assert (await ann.post(f"{API}/verify", json={"conversation_id": "trip"})).json()["conversations"] == 1
        assert (await ann.post(f"{API}/verify?conversation_id=trip")).json()["conversations"] == 1
        mistyped = await ann.post(f"{API}/verify", json={"conversation": "trip"})
        assert (mistyped.status_code, mistyped.json()["errors"][0]["field"]) == (422, "conversation")
        both = await ann.post(f"{API}/verify?conversation_id=other", json={"conversation_id": "trip"})
        assert both.status_code == 422
        assert (await ann.post(f"{API}/verify", json={"conversation_id": "nobody"})).status_code == 404


async def test_a_value_of_the_wrong_type_is_named_without_the_names_of_python() -> None:
    async with everthread.open("memory://") as et, served(et) as (_, clients):
        answer = await clients["ann"].post(f"{API}/chat", json={"message": 5})
        (wrong,) = answer.json()["errors"]
        assert wrong == {"field": "message", "message": "must be text, or must be a list, or must be an object"}
        answer = await clients["ann"].post(f"{API}/chat", json={"message": [5]})
        assert {one["field"] for one in answer.json()["errors"]} == {"message", "message[0]"}
        answer = await clients["ann"].post(f"{API}/chat", json={"message": "hi", "list[str]": 1})
        assert [one["field"] for one in answer.json()["errors"]] == ["list[str]"]
