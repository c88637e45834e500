"""Requests as no client sends them: framing that two servers would read differently, heads without end, paths that
climb, and values that are no good anywhere. Each is refused or answered, nobody gets in, and nothing is a defect."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest
from fastapi import FastAPI

import everthread
from everthread import Everthread
from everthread.http.app import create_app
from everthread.http.connections import limited_protocol
from everthread.settings import Settings
from tests.http.conftest import client_of, key_for
from tests.http.served import API, listening

HOST = b"Host: 127.0.0.1\r\n"
CREATE = b"POST /api/v1/conversations HTTP/1.1\r\n" + HOST + b"Content-Type: application/json\r\nKEY"
LIST = b"/api/v1/conversations HTTP/1.1\r\n" + HOST
CHUNKED = b"Transfer-Encoding: chunked\r\n"
BODY = b"\r\n2\r\n{}\r\n0\r\n"
FRAMES = {
    "a length and chunks": CREATE + b"Content-Length: 2\r\n" + CHUNKED + BODY + b"\r\n",
    "chunks and a length": CREATE + CHUNKED + b"Content-Length: 2\r\n" + BODY + b"\r\n",
    "two lengths": CREATE + b"Content-Length: 2\r\nContent-Length: 5\r\n\r\n{}xxx",
    "two encodings": CREATE + CHUNKED + b"Transfer-Encoding: identity\r\n" + BODY + b"\r\n",
    "an encoding that is none": CREATE + b"Transfer-Encoding: xchunked\r\n" + BODY + b"\r\n",
    "a length with a sign": CREATE + b"Content-Length: +2\r\n\r\n{}",
    "a length below zero": CREATE + b"Content-Length: -2\r\n\r\n{}",
    "a length past 64 bits": CREATE + b"Content-Length: 99999999999999999999999\r\n\r\n{}",
    "a chunk below zero": CREATE + CHUNKED + b"\r\n-2\r\n{}\r\n0\r\n\r\n",
    "a chunk past 64 bits": CREATE + CHUNKED + b"\r\nffffffffffffffffff\r\n{}\r\n0\r\n\r\n",
    "bare line feeds": CREATE.replace(b"\r\n", b"\n") + b"Content-Length: 2\n\n{}",
    "a folded header": CREATE + b"X-A: b\r\n c\r\nContent-Length: 2\r\n\r\n{}",
    "a space before the colon": CREATE + b"Content-Length : 2\r\n\r\n{}",
    "a NUL in a header": CREATE + b"X-A: a\x00b\r\nContent-Length: 2\r\n\r\n{}",
    "a method that is none": b"FOO " + LIST + b"KEY\r\n",
    "bytes that are no text in the path": b"GET /\xff\xfe HTTP/1.1\r\n" + HOST + b"KEY\r\n",
    "another host as a tunnel": b"CONNECT a:443 HTTP/1.1\r\n" + HOST + b"KEY\r\n",
    "HTTP/2 without asking": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "TLS": bytes.fromhex("16030100050100000100"),
}
"""What no server may guess at: each is refused as a whole."""
PATHS = (
    b"//api/v1/conversations", b"/assets/../api/v1/conversations", b"/assets/%2e%2e/api/v1/conversations",
    b"/assets/..%2f..%2f..%2fsettings.py", b"/assets//etc/passwd", b"/assets/%00", b"/assets/" + b"x" * 5000,
    b"/shared%2f..%2fapi/v1/conversations", b"/shared/../api/v1/conversations", b"/shared/" + b"x" * 60_000,
    b"/shared/WyJhXHUwMDAwIiwiYiJd.x", b"/healthz/../api/v1/conversations", b"/ok;/api/v1/conversations",
    b"/API/v1/conversations", b"/api/v1/conversations/../../healthz", b"/api/v1/conversations%00", b"*", b"/%",
    b"http://127.0.0.1/api/v1/conversations",
)  # fmt: skip
HEADERS = (
    b"X-Original-URL: /healthz\r\nX-Rewrite-URL: /ok\r\n", b"X-HTTP-Method-Override: OPTIONS\r\n",
    b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n",
    b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: eA==\r\nSec-WebSocket-Version: 13\r\n",
    b"Authorization: Basic YTpi\r\n", b"Authorization: Bearer\r\n", b"Authorization: Bearer x\r\nKEY",
    b"Cookie: Authorization=Bearer\r\n", b"Connection: Authorization\r\n",
)  # fmt: skip
"""What some servers let decide who asks for what; the sixth has a good key, in the second place."""


@pytest.fixture
async def plain() -> AsyncIterator[Everthread]:
    """The doors are the same over any store."""
    async with everthread.open("memory://", worker=False) as opened:
        yield opened


@pytest.fixture
async def port(plain: Everthread) -> AsyncIterator[int]:
    app = create_app(plain, Settings(database="memory://"))
    async with listening(app, limited_protocol(100, 5.0)) as address:
        yield int(address.rpartition(":")[2])


async def answers(port: int, sent: bytes) -> list[int]:
    """The statuses of what is answered to these bytes, until the server ends it or says no more."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    said = b""
    with suppress(ConnectionError, TimeoutError):
        writer.write(sent)
        async with asyncio.timeout(15):
            await writer.drain()
            while piece := await reader.read(65_536):
                said += piece
    writer.close()
    return [int(found) for found in re.findall(rb"HTTP/1\.1 (\d+)", said)]


async def header(plain: Everthread) -> bytes:
    return b"Authorization: Bearer %s\r\n" % (await key_for(plain, "alice")).encode()


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
async def test_what_two_servers_would_read_differently_is_refused_whole(
    plain: Everthread, port: int, frame: bytes
) -> None:
    assert await answers(port, frame.replace(b"KEY", await header(plain))) == [400]
    assert list(await plain.conversations.list(owner="alice")) == []


async def test_no_path_leads_around_the_key(port: int) -> None:
    for path in PATHS:
        told = await answers(port, b"GET " + path + b" HTTP/1.1\r\nConnection: close\r\n" + HOST + b"\r\n")
        assert told in ([400], [401], [404]), path[:80]


async def test_no_header_stands_for_a_key(plain: Everthread, port: int) -> None:
    for more in HEADERS:
        sent = b"GET " + LIST + b"Connection: close\r\n" + more.replace(b"KEY", await header(plain)) + b"\r\n"
        assert await answers(port, sent) == [401], more


async def test_a_key_behind_the_body_is_none(plain: Everthread, port: int) -> None:
    """A proxy checks the head, and passes on what follows."""
    sent = CREATE.replace(b"KEY", b"Connection: close\r\n") + CHUNKED + BODY + await header(plain) + b"\r\n"
    assert await answers(port, sent) == [401]
    assert list(await plain.conversations.list(owner="alice")) == []


@pytest.mark.parametrize(
    "endless",
    [
        b"GET /healthz HTTP/1.1\r\n" + HOST + b"A: b\r\n" * 200_000,
        b"GET /healthz HTTP/1.1\r\n" + HOST + b"A: " + b"b" * 1_000_000,
        b"GET /healthz HTTP/1.1\r\n" + HOST + b"Cookie: " + b"a=b; " * 200_000,
        b"GET /" + b"a" * 1_000_000,
        b"GET /healthz HTTP/1.1\r\n" + HOST + b"A: b\r\n" * 501 + b"\r\n",
    ],
    ids=["headers", "a header", "cookies", "a path", "501 headers"],
)
async def test_a_head_without_end_is_not_read_on(port: int, endless: bytes) -> None:
    async with asyncio.timeout(4):  # before its time would be over
        assert await answers(port, endless) in ([], [400], [431])
    assert await answers(port, b"GET /healthz HTTP/1.1\r\nConnection: close\r\n" + HOST + b"\r\n") == [200]


async def test_what_is_refused_for_its_head_is_not_done(plain: Everthread, port: int) -> None:
    more = b"".join(b"A%d: b\r\n" % at for at in range(501))
    sent = CREATE.replace(b"KEY", await header(plain)) + more + b"Content-Length: 2\r\n\r\n{}"
    assert await answers(port, sent) in ([], [431])
    assert list(await plain.conversations.list(owner="alice")) == []


async def test_what_stands_behind_a_body_without_end_is_not_read_on(plain: Everthread, port: int) -> None:
    sent = CREATE.replace(b"KEY", await header(plain)) + CHUNKED + BODY + b"A: "
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    with suppress(ConnectionError):
        async with asyncio.timeout(4):  # before its time would be over
            writer.write(sent)
            while True:
                writer.write(b"b" * 100_000)
                await writer.drain()
                await asyncio.sleep(0)
    del reader
    writer.close()
    assert await answers(port, b"GET /healthz HTTP/1.1\r\nConnection: close\r\n" + HOST + b"\r\n") == [200]


async def test_many_requests_on_one_connection_are_answered_one_by_one(port: int) -> None:
    one = b"GET /healthz HTTP/1.1\r\n" + HOST
    sent = (one + b"\r\n") * 200 + one + b"Connection: close\r\n\r\n"
    assert await answers(port, sent) == [200] * 201


IDS = (
    "a/../b", "../../x", "a\nb", "a\r\nX-Evil: 1", "e\u0301", "\u00e9", "\u202eabc", "\u200b", "__proto__", "a%2fb",
    "a?b#c", "CON", "\U0001f600" * 128, " ", "\u2028", "\ufffe", "-rf", "*", "a\"b'c;--", "{{7*7}}", "${x}", "\x1b[31m",
)  # fmt: skip


async def test_whatever_an_id_is_made_of_everything_can_be_done_with_it_and_it_says_nothing_else(
    app: FastAPI, et: Everthread, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    app = create_app(et, Settings(database="memory://", requests_per_minute=0, model="scripted:echo"))
    caplog.set_level(logging.WARNING)
    async with client_of(app, await key_for(et, "alice")) as alice:
        for id in IDS:
            said = {"role": "user", "content": f"said in {IDS.index(id)}", "id": id}
            assert (await alice.post(f"{API}/conversations", json={"id": id})).status_code == 201, id
            at = f"{API}/conversations/{quote(id, safe='')}"
            put = await alice.post(f"{at}/files", files={"file": ("a.txt", id.encode())})
            asked = [
                await alice.post(f"{at}/messages", json={"messages": [said]}),
                await alice.get(f"{at}/messages/{quote(id, safe='')}"),
                await alice.get(f"{at}/files/{put.json()['path']}"),
                await alice.get(f"{at}/export?format=md"),
                await alice.post(f"{at}/share", json={}),
                await alice.post(f"{at}/regenerate", json={}),
                await alice.post(f"{API}/chat", json={"conversation_id": id, "message": "hello"}),
            ]
            assert [one.status_code for one in asked] == [201, 200, 200, 200, 201, 200, 200], id
            assert asked[2].content == id.encode()
            assert all("x-evil" not in one.headers for one in asked)
            assert (await alice.get(asked[4].json()["path"])).status_code == 200
            assert (await alice.get(f"{at}/messages")).json()["items"][0]["id"] == id
    assert not [one for one in caplog.records if "\x1b" in one.getMessage() or "\n" in one.getMessage()]


NUMBERS = ("9223372036854775807", "9223372036854775808", "9" * 30, "9" * 5000, "-1", "1e400", "NaN", "0x10", "\u0661")
NUMBERED = (
    "messages?after=", "messages?before=", "messages?limit=", "turns?limit=", "context?window=", "context?reserve=",
    "context?factor=", "compactions?cursor=", "compactions/", "recall?q=x&limit=", "recall?q=x&max_tokens=",
    "summary?level=", "messages?branch=",
)  # fmt: skip
CURSORS = ("x", "AAAA", "eyJhIjoxfQ", '"\x00"', "\x00", "Infinity", "W10", "bnVsbA", "WyIyMDI2LTAxLTAxIl0", "9" * 200)
VALUES = (
    b"1e999", b"-Infinity", b"NaN", b"9" * 5000, b"9" * 400, b'{"__proto__": {"x": 1}, "constructor": 1}', b'"\\u0000"',
    b'{"\\ud800": "\\udfff"}', b"0.1e-99999999", b'{"a": 1, "a": 2}', b"[" * 60 + b"]" * 60, b'{"": null}',
)  # fmt: skip
PLACES = (
    ("POST", "/api/v1/conversations", b'{"metadata": {"a": %s}}'),
    ("POST", "/threads", b'{"metadata": {"a": %s}}'),
    ("POST", "/threads/search", b'{"metadata": {"a": %s}}'),
    ("POST", "/threads/search", b'{"values": {"a": %s}}'),
    ("POST", "/assistants/search", b'{"metadata": {"a": %s}}'),
    ("PUT", "/store/items", b'{"namespace": ["a"], "key": "k", "value": {"a": %s}}'),
    ("PUT", "/store/items", b'{"namespace": [%s], "key": "k", "value": {}}'),
    ("PUT", "/store/items", b'{"namespace": ["a"], "key": %s, "value": {}}'),
    ("PUT", "/store/items", b'{"namespace": ["a"], "key": "k", "value": {}, "ttl": %s}'),
    ("DELETE", "/store/items", b'{"namespace": ["a"], "key": %s}'),
    ("POST", "/store/items/search", b'{"namespace_prefix": ["a"], "filter": {"a": %s}}'),
    ("POST", "/store/items/search", b'{"namespace_prefix": ["a"], "filter": {"a": {"$gt": %s}}}'),
    ("POST", "/store/namespaces", b'{"prefix": [%s]}'),
    ("POST", "/api/v1/memories", b'{"text": "x", "confidence": %s}'),
    ("POST", "/api/v1/memories", b'{"text": %s}'),
    ("PUT", "/api/v1/conversations/c/config/compaction", b'{"threshold": %s}'),
    ("PUT", "/api/v1/conversations/c/config/compaction", b'{"keep_recent": %s}'),
    ("POST", "/api/v1/conversations/c/messages", b'{"messages": [{"role": "user", "content": "x", "more": %s}]}'),
    ("POST", "/api/v1/conversations/c/messages", b'{"messages": [{"role": "user", "content": %s}]}'),
    ("POST", "/api/v1/conversations/c/messages", b'{"messages": [], "expected_head": %s}'),
    ("POST", "/api/v1/conversations/c/fork", b'{"at_seq": %s}'),
)


async def test_no_number_cursor_or_value_is_a_defect(app: FastAPI, et: Everthread) -> None:
    async with client_of(app, await key_for(et, "alice")) as alice:
        await alice.post(f"{API}/conversations", json={"id": "c"})
        paths = [f"{API}/conversations/c/{place}{quote(number)}" for place in NUMBERED for number in NUMBERS]
        paths += [f"{API}/{kind}?cursor={quote(one)}" for kind in ("conversations", "memories") for one in CURSORS]
        told = [(path[:80], (await alice.get(path)).status_code) for path in paths]
        for method, path, body in PLACES:
            for value in VALUES:
                answer = await alice.request(
                    method, path, content=body % value, headers={"Content-Type": "application/json"}
                )
                told.append((f"{method} {path} {value[:20]!r}", answer.status_code))
                if answer.content and answer.status_code < 300:
                    json.loads(answer.content, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert [one for one in told if one[1] >= 500] == []


FILES = (
    "scripted:{}",
    "SCRIPTED:{}",
    " scripted :{}",
    "scripted\n:{}",
    "gguf:{}",
    "local:{}",
    "scripted",
    "huggingface:{}",
)


@pytest.mark.parametrize("owner_is_admin", [False, True])
async def test_nobody_names_a_file_of_the_server_as_a_model(
    et: Everthread, tmp_path: Path, owner_is_admin: bool
) -> None:
    """Only the settings may."""
    script = tmp_path / "script.json"
    script.write_text(json.dumps({"steps": [{"text": "qzfile"}], "repeat": True}))
    app = create_app(et, Settings(database="memory://", requests_per_minute=0, model="scripted:echo"))
    async with client_of(app, await key_for(et, "alice", is_admin=owner_is_admin)) as alice:
        await alice.post(f"{API}/conversations", json={"id": "c"})
        said = [{"role": "user", "content": f"number {n}, which is said at some length"} for n in range(40)]
        await alice.post(f"{API}/conversations/c/messages", json={"messages": said})
        for name in (one.format(script) for one in FILES):
            asked = [
                await alice.post(f"{API}/chat", json={"message": "x", "model": name}),
                await alice.put(f"{API}/conversations/c/config/compaction", json={"summary_model": name}),
                await alice.post(f"{API}/conversations/c/compact", json={"compaction": {"summary_model": name}}),
                await alice.get(f"{API}/conversations/c/context?model={quote(name)}"),
                await alice.put(f"{API}/config/compaction", json={"summary_model": name}),
            ]
            assert {one.status_code for one in asked[:4]} == {422}, name
            assert asked[4].status_code == (422 if owner_is_admin else 403)
        for fine in ({"summary_model": None}, {"summary_model": "none"}, {"summary_model": "openai:gpt-5-mini"}):
            assert (await alice.put(f"{API}/conversations/c/config/compaction", json=fine)).status_code == 200


async def test_whoever_asks_for_much_and_reads_nothing_keeps_nobody_waiting(et: Everthread) -> None:
    """No connection to the database waits for a client, nor does a whole export in memory."""
    app = create_app(et, Settings(database="memory://", requests_per_minute=0))
    conversation = await et.conversations.create(id="big", owner="alice")
    await conversation.append([{"role": "user", "content": "word " * 60_000} for _ in range(12)])
    key = await key_for(et, "alice")
    async with listening(app, limited_protocol(200, 5.0)) as address, asyncio.timeout(120):
        port, held = int(address.rpartition(":")[2]), []
        for number in range(30):
            _, writer = await asyncio.open_connection("127.0.0.1", port, limit=1024)
            kind = ("archive", "json", "jsonl", "md", "html")[number % 5]
            at = f"/api/v1/conversations/big/export?format={kind}"
            writer.write(f"GET {at} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n\r\n".encode())
            held.append(writer)
        async with httpx.AsyncClient(
            base_url=address, headers={"Authorization": f"Bearer {key}"}, timeout=60
        ) as client:
            for _ in range(3):
                assert (await client.get(f"{API}/conversations")).status_code == 200
                assert (await client.post(f"{API}/conversations", json={})).status_code == 201
                assert (await client.get("/readyz")).status_code == 200
        for writer in held:
            writer.transport.abort()
