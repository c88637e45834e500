"""Whoever calls `/mcp` of the service: without a good key nobody is answered, nobody reads what another owner said, and
no request breaks it. The operations that OpenAPI knows have `test_every_operation.py`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

import everthread
from everthread import Everthread
from everthread.core.access import new_key
from everthread.core.clock import system_clock
from everthread.http.app import create_app
from everthread.mcp.over_http import McpOverHttp
from everthread.settings import Settings
from tests.http.conftest import client_of, key_for

HEADERS = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
PATIENCE_SECONDS = 20
KEY = "ghp_" + "a1B2" * 9


@pytest.fixture
async def et() -> AsyncIterator[Everthread]:
    async with everthread.open("memory://", worker=False) as opened:
        conv = await opened.conversations.create(id="hers", owner="alice", title="zebra plans")
        await conv.append({"role": "user", "content": f"the zebra's key is {KEY}"})
        yield opened


@asynccontextmanager
async def served(et: Everthread) -> AsyncIterator[FastAPI]:
    """Entered by the test itself: what answers there must be left by the task that entered it."""
    app = create_app(et, Settings(database="memory://", requests_per_minute=0), mcp=McpOverHttp(et))
    async with app.router.lifespan_context(app):
        yield app


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}


async def post(client: httpx.AsyncClient, body: Any) -> httpx.Response:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    async with asyncio.timeout(PATIENCE_SECONDS):
        return await client.post("/mcp", content=content, headers=HEADERS)


async def test_without_a_good_key_nobody_is_answered(et: Everthread) -> None:
    revoked = new_key("alice", now=system_clock())
    await et.store.api_keys.add(revoked.key)
    await et.store.api_keys.revoke(revoked.key.id)
    async with served(et) as app:
        for key in (None, new_key("alice", now=system_clock()).written, revoked.written, "not a key"):
            async with client_of(app, key) as client:
                for method in ("GET", "POST", "DELETE", "PUT"):
                    answer = await client.request(method, "/mcp", json=call("list_sessions"))
                    assert answer.status_code == 401, (key, method)


async def test_no_tool_and_no_resource_tells_of_another_owner(et: Everthread) -> None:
    resource = {"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": "everthread://sessions/hers"}}
    asked = [
        call("search_history", query="plans key", everywhere=True),
        call("recall", question="plans key", everywhere=True),
        call("read_messages", session="hers", everywhere=True),
        call("list_sessions", limit=10**9, everywhere=True),
        resource,
    ]
    keys = [await key_for(et, owner) for owner in ("alice", "bob")]
    async with served(et) as app, client_of(app, keys[0]) as alice, client_of(app, keys[1]) as bob:
        for one in asked:
            assert "zebra" in (await post(alice, one)).text, one
            assert "zebra" not in (await post(bob, one)).text, one


async def test_no_caller_over_http_is_shown_a_credential(et: Everthread) -> None:
    key = await key_for(et, "alice")
    async with served(et) as app, client_of(app, key) as alice:
        for one in (
            call("search_history", query="zebra", show_secrets=True),
            call("read_messages", session="hers", show_secrets=True),
        ):
            answer = await post(alice, one)
            assert "zebra" in answer.text
            assert KEY not in answer.text


async def test_no_body_breaks_it(et: Everthread) -> None:
    key = await key_for(et, "bob")
    async with served(et) as app, client_of(app, key) as bob:
        for body in HOSTILE:
            answer = await post(bob, body)
            assert answer.status_code < 500, (str(body)[:100], answer.text)
            assert "Traceback" not in answer.text
            assert "root:" not in answer.text
        assert (await post(bob, call("list_sessions"))).status_code == 200


HOSTILE: list[Any] = [
    b"", b"null", b"[]", b"[" * 100_000, b"{", b"\xff\xfe", b'{"jsonrpc": "2.0"}', b"1e999",
    [call("list_sessions")] * 3, call("no_such_tool"), call("read_messages"),
    call("read_messages", session="x" * 100_000, first_seq=10**30), call("search_history", query="x" * 500_000),
    call("search_history", query="\x00\ud800", limit=-(10**9)), call("remember", text="y" * 500_000),
    {"jsonrpc": "2.0", "id": 1, "method": "m" * 100_000, "params": {}},
    {"jsonrpc": "2.0", "id": {"deep": []}, "method": "tools/list"},
    {"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": "file:///etc/passwd"}},
    {"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": "everthread://sessions/../../x"}},
]  # fmt: skip
