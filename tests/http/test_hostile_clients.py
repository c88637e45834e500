"""Clients that outstay their welcome: keys that are revoked, tokens that nobody signed, requests that never end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import httpx
import jwt
import pytest
from fastapi import FastAPI

import everthread
from everthread import Everthread
from everthread.core.access import new_key
from everthread.core.clock import system_clock
from everthread.http import auth, middleware
from everthread.http.app import create_app
from everthread.http.auth import SigningKeys, TokenVerifier
from everthread.http.connections import limited_protocol, most_connections
from everthread.http.errors import HttpProblem
from everthread.settings import Settings
from tests.http.conftest import client_of, key_for
from tests.http.served import API, listening

SECRET = "a shared secret of more than thirty-two characters"


@pytest.fixture
async def et() -> AsyncIterator[Everthread]:
    """The doors are the same over any store."""
    async with everthread.open("memory://", worker=False) as opened:
        yield opened


async def read_to_the_end(address: str, credential: str, begun: asyncio.Event) -> list[str]:
    """Follow a thread, whose stream has no end of its own, until the server ends it."""
    headers = {"Authorization": f"Bearer {credential}"}
    async with (
        httpx.AsyncClient(base_url=address, headers=headers, timeout=30) as client,
        client.stream("GET", "/threads/t/stream") as answer,
    ):
        assert answer.status_code == 200
        begun.set()
        return [line async for line in answer.aiter_lines()]


async def test_the_stream_of_a_revoked_key_ends(et: Everthread, app: FastAPI, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auth, "RECHECK_SECONDS", 0.05)
    made = new_key("alice", now=system_clock())
    await et.store.api_keys.add(made.key)
    await et.conversations.create(owner="alice", id="t")
    begun = asyncio.Event()
    async with listening(app) as address, asyncio.timeout(20):
        reading = asyncio.create_task(read_to_the_end(address, made.written, begun))
        await begun.wait()
        await asyncio.sleep(0.2)
        assert not reading.done()
        await et.store.api_keys.revoke(made.key.id)
        await reading


async def test_a_stream_ends_with_its_token(et: Everthread) -> None:
    app = create_app(et, Settings(database="memory://", jwt_secret=SECRET))
    await et.conversations.create(owner="alice", id="t")
    token = jwt.encode({"sub": "alice", "exp": time.time() + 1.5}, SECRET)
    async with listening(app) as address, asyncio.timeout(20):
        await read_to_the_end(address, token, asyncio.Event())
    assert time.time() >= jwt.decode(token, SECRET, ["HS256"], {"verify_exp": False})["exp"]


@asynccontextmanager
async def hanging() -> AsyncIterator[tuple[str, list[int]]]:
    """An address that takes every request and answers none; and how many it took."""
    taken: list[int] = []
    hold = asyncio.Event()

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        taken.append(1)
        await hold.wait()
        writer.close()

    server = await asyncio.start_server(take, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/keys", taken
    finally:
        hold.set()
        server.close()
        await server.wait_closed()


async def test_forged_tokens_block_nobody_while_the_address_of_the_keys_hangs(
    et: Everthread, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(auth, "_KEYS_PAUSE_SECONDS", 1.0)
    forged = [jwt.encode({"sub": "a"}, SECRET, headers={"kid": f"k{n}"}) for n in range(120)]
    async with hanging() as (url, taken):
        app = create_app(et, Settings(database="memory://", jwt_jwks_url=url))
        async with client_of(app) as client, asyncio.timeout(20):
            sent = [client.get("/metrics", headers={"Authorization": f"Bearer {one}"}) for one in forged]
            asked = asyncio.gather(*sent)
            await asyncio.sleep(0.1)
            assert await asyncio.to_thread(lambda: "a thread is free") == "a thread is free"
            assert (await client.get("/healthz")).status_code == 200
            assert {one.status_code for one in await asked} == {503}
        assert len(taken) <= 2


async def test_an_unknown_key_is_looked_up_now_and_then_only() -> None:
    keys = SigningKeys("http://127.0.0.1:1/keys")
    asked = 0

    def fetched() -> list[jwt.PyJWK]:
        nonlocal asked
        asked += 1
        return []

    keys._client.get_signing_keys = fetched  # type: ignore[method-assign, assignment]
    for number in range(10):
        with pytest.raises(jwt.PyJWKClientError):
            await keys.get(f"k{number}")
    assert asked == 1


BROKEN = [
    b"[]", b"null", b'"x"', b"{}", b"", b"<html>", b"\xff\xfe", b'{"keys": 7}', b'{"keys": null}', b'{"keys": [null]}',
    b'{"keys": [[]]}', b'{"keys": [{}]}', b'{"keys": [{"kty": "RSA", "n": 7, "e": []}]}', b"[" * 100_000,
    b'{"keys": [{"kty": "RSA", "n": "AQAB", "e": "AQAB", "kid": {"x": 1}}]}', b'{"keys":' + b"[" * 100_000,
    b'{"keys": [{"kty": "EC", "crv": "P-256", "x": "!", "y": "!", "kid": "k"}]}',
    b'{"keys": [{"kty": "oct", "k": "eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHg", "kid": "k"}]}',
]  # fmt: skip
"""The last is a shared secret, which nobody may sign with where keys are public."""


async def test_no_document_at_the_address_of_the_keys_lets_anybody_in_or_breaks_the_service() -> None:
    served = b""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (len(served), served))
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/keys"
    forged = jwt.encode({"sub": "a", "exp": time.time() + 60}, "x" * 32, headers={"kid": "k"})
    async with server:
        for served in BROKEN:
            with pytest.raises(HttpProblem) as refused:
                await TokenVerifier(jwks_url=url).verify(forged)
            assert refused.value.status in (401, 503), served[:60]


@asynccontextmanager
async def limited(app: FastAPI, *, connections: int = 100, head_seconds: float = 0.3) -> AsyncIterator[int]:
    """The port of a server with these limits."""
    async with listening(app, limited_protocol(connections, head_seconds)) as address:
        yield int(address.rpartition(":")[2])


@pytest.mark.parametrize("sent", [b"", b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "])
async def test_a_head_that_does_not_come_is_not_waited_for(app: FastAPI, sent: bytes) -> None:
    async with limited(app) as port, asyncio.timeout(20):
        streams = [await asyncio.open_connection("127.0.0.1", port) for _ in range(20)]
        for _, writer in streams:
            writer.write(sent)
        for reader, writer in streams:
            with suppress(ConnectionResetError):
                assert await reader.read() == b""
            writer.close()


async def test_who_asks_in_time_is_answered_however_long_the_connection_stays(app: FastAPI) -> None:
    async with limited(app) as port, httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
        for _ in range(4):
            assert (await client.get("/healthz")).status_code == 200
            await asyncio.sleep(0.2)


async def test_one_connection_too_many_is_told_so_and_the_others_are_served(app: FastAPI) -> None:
    async with limited(app, connections=3, head_seconds=5) as port, asyncio.timeout(20):
        held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(3)]
        held[0][1].write(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert (await held[0][0].readline()).startswith(b"HTTP/1.1 200")
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        assert (await reader.read()).startswith(b"HTTP/1.1 503")
        for _, one in [*held, (reader, writer)]:
            one.close()


def test_there_are_never_more_connections_than_the_system_gives() -> None:
    assert most_connections(10) == 10
    assert 0 < most_connections(0) <= 1 << 30


async def test_a_body_that_does_not_come_is_not_waited_for(
    alice: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(middleware, "BODY_SECONDS", 0.2)

    async def endless() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.sleep(60)

    async def dripping() -> AsyncIterator[bytes]:
        while True:
            yield b" "
            await asyncio.sleep(0.05)

    async with asyncio.timeout(20):
        for body in (endless, dripping):
            for kind in ("application/json", "application/zstd"):
                path = "import" if kind == "application/zstd" else "conversations"
                answer = await alice.post(f"{API}/{path}", content=body(), headers={"Content-Type": kind})
                assert (answer.status_code, answer.json()["code"]) == (408, "too_slow")


async def test_an_owner_has_only_so_many_streams(et: Everthread) -> None:
    app = create_app(et, Settings(database="memory://", max_streams_per_owner=2))
    keys = {owner: await key_for(et, owner) for owner in ("alice", "bob")}
    for owner in keys:
        await et.conversations.create(owner=owner, id="t")
    async with listening(app) as address, httpx.AsyncClient(base_url=address, timeout=10) as client:

        async def follow(owner: str) -> httpx.Response:
            headers = {"Authorization": f"Bearer {keys[owner]}"}
            request = client.build_request("GET", "/threads/t/stream", headers=headers)
            return await client.send(request, stream=True)

        answers = [await follow(owner) for owner in ("alice", "alice", "alice", "bob")]
        assert [one.status_code for one in answers] == [200, 200, 503, 200]
        for one in answers:
            await one.aclose()
