"""MCP servers as tool sources: a real one on stdio."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import socket
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import psutil
import pytest

from everthread import Everthread, Invalid
from everthread.core.tools import TOOL_NAME, ToolPolicy
from everthread.turn.tools import ToolContext, make_tools
from everthread.turn.tools.mcp import MAX_DESCRIPTION_CHARACTERS, MAX_TOOLS, McpServers, load_servers
from everthread.turn.tools.mcp_transport import MAX_ANSWER_BYTES, _http_client, _lines
from tests.turn.tools.conftest import ToolCaller

SERVER = Path(__file__).with_name("mcp_server.py")
SHOP = {"command": sys.executable, "args": [str(SERVER)], "env": {"SHOP_KEY": "${SHOP_KEY}"}}


def written(folder: Path, **servers: object) -> Path:
    file = folder / "mcp.json"
    file.write_text(json.dumps({"mcpServers": servers}))
    return file


async def test_the_tools_of_a_server_are_called_and_its_errors_are_results(
    memory_et: Everthread, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_KEY", "opened")
    monkeypatch.setenv("EVERTHREAD_TEST_SECRET", "not for servers")
    async with McpServers(load_servers(written(tmp_path, shop=SHOP))) as servers:
        context = ToolContext.create(
            memory_et, await memory_et.conversations.create(), extra_tools=await servers.tools()
        )
        toolbox = ToolCaller(context)
        assert "5" in await toolbox("shop_add", a=2, b=3)
        assert "because" in await toolbox.refused("shop_fail", why="because")
        await toolbox.refused("shop_add", a="two")
        told = await toolbox("shop_secret")
        assert "opened" in told
        assert "not for servers" not in told
        context.close()


async def test_an_answer_that_is_too_long_is_never_kept_and_the_server_goes_on(
    memory_et: Everthread, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_KEY", "k")
    async with McpServers(load_servers(written(tmp_path, shop=SHOP))) as servers:
        conv = await memory_et.conversations.create()
        toolbox = ToolCaller(ToolContext.create(memory_et, conv, extra_tools=await servers.tools()))
        assert "longer than 8 MiB" in await toolbox.refused("shop_big", megabytes=20)
        assert len(await toolbox("shop_big", megabytes=2)) > 2_000_000
        assert "3" in await toolbox("shop_add", a=1, b=2)


async def _pieces(*pieces: bytes) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


async def test_a_line_is_read_whole_or_not_at_all_however_it_is_cut() -> None:
    long = b'{"id": 7, "x": "' + b"x" * MAX_ANSWER_BYTES + b'"}'
    text = b"one\n" + long + b"\n\ntwo\n"
    for step in (50_000, 3_000_000, len(text)):
        cut = [text[at : at + step] for at in range(0, len(text), step)]
        found = [(line, whole) async for line, whole in _lines(_pieces(*cut))]
        assert [line for line, whole in found if whole] == [b"one", b"", b"two"]
        (left,) = [line for line, whole in found if not whole]
        assert len(left) < 1000
        assert b'"id": 7,' in left


async def test_over_http_an_answer_is_bounded_unpacked_and_from_the_address_that_was_set() -> None:
    async def server(request: httpx.Request) -> httpx.Response:
        piece = b"x" * 1_000_000
        match request.url.path:
            case "/long":
                return httpx.Response(200, content=_pieces(*[piece] * 9))
            case "/events":  # each within the limit, all of them far over it
                headers = {"content-type": "text/event-stream"}
                return httpx.Response(200, headers=headers, content=_pieces(*[b"data: " + piece + b"\r\n\r\n"] * 20))
            case "/packed":
                return httpx.Response(200, headers={"content-encoding": "gzip"}, content=gzip.compress(piece))
            case _:
                return httpx.Response(307, headers={"location": "http://169.254.169.254/latest"})

    async with _http_client({"Authorization": "Bearer x"}) as client:
        client._transport = httpx.MockTransport(server)  # the wire
        with pytest.raises(httpx.ReadError, match="8 MiB"):
            await client.get("http://tools.example/long")
        assert len((await client.get("http://tools.example/events")).content) > 20_000_000
        with pytest.raises(httpx.DecodingError, match="packed"):
            await client.get("http://tools.example/packed")
        assert (await client.get("http://tools.example/elsewhere")).status_code == 307


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


async def test_a_server_over_http_is_used_and_bounded(memory_et: Everthread, tmp_path: Path) -> None:
    free_tcp_port = _free_port()
    environment = {**os.environ, "SHOP_PORT": str(free_tcp_port)}
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(SERVER), "http", env=environment, stderr=asyncio.subprocess.DEVNULL
    )
    try:
        web = {"url": f"http://127.0.0.1:{free_tcp_port}/mcp"}
        servers = McpServers(load_servers(written(tmp_path, shop=web)))
        async with servers, asyncio.timeout(60):
            while not (tools := await servers.tools()):  # noqa: ASYNC110 - of another process only asking tells
                await asyncio.sleep(0.1)
            conv = await memory_et.conversations.create()
            toolbox = ToolCaller(
                ToolContext.create(memory_et, conv, extra_tools=tools, policy=ToolPolicy(timeout_seconds=5))
            )
            assert "5" in await toolbox("shop_add", a=2, b=3)
            await toolbox.refused("shop_big", megabytes=20)
    finally:
        process.kill()
        await process.wait()


async def test_what_a_server_says_of_its_tools_is_bounded_and_takes_no_name_of_ours(
    memory_et: Everthread, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_KEY", "k")
    lying = {**SHOP, "args": [str(SERVER), "lying"]}
    async with McpServers(load_servers(written(tmp_path, read=lying))) as servers:
        tools = await servers.tools()
        assert len(tools) == MAX_TOOLS
        assert max(len(tool.description) for tool in tools) < MAX_DESCRIPTION_CHARACTERS + 10
        assert "left out" in servers.oddities["read"]
        context = ToolContext.create(memory_et, await memory_et.conversations.create(), extra_tools=tools)
        (ours,) = [tool for tool in make_tools(context) if tool.name == "read_file"]
        assert ours.description != "Reads a file of the workspace."
        assert not [tool.name for tool in make_tools(context) if not TOOL_NAME.fullmatch(tool.name)]
        context.close()


async def test_a_server_that_dies_is_an_error_and_is_started_again(
    memory_et: Everthread, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_KEY", "k")
    async with McpServers(load_servers(written(tmp_path, shop=SHOP))) as servers:
        conv = await memory_et.conversations.create()
        await ToolCaller(ToolContext.create(memory_et, conv, extra_tools=await servers.tools())).refused("shop_die")
        assert "3" in await ToolCaller(ToolContext.create(memory_et, conv, extra_tools=await servers.tools()))(
            "shop_add", a=1, b=2
        )


async def test_a_server_that_does_not_start_is_told_and_the_others_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_KEY", "k")
    pid = tmp_path / "pid"
    program = f"import os, pathlib, time; pathlib.Path({str(pid)!r}).write_text(str(os.getpid())); time.sleep(60)"
    silent = {"command": sys.executable, "args": ["-c", program]}
    absent = {"command": "no-such-program-anywhere"}
    file = written(tmp_path, shop=SHOP, absent=absent, silent=silent)
    async with McpServers(load_servers(file), start_seconds=15) as servers:
        names = {tool.name for tool in await servers.tools()}
    assert not psutil.pid_exists(int(pid.read_text()))
    assert "shop_add" in names
    assert set(servers.problems) == {"absent", "silent"}
    assert "did not answer" in servers.problems["silent"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "cannot be read"),
        ("[]", "mcpServers"),
        ('{"mcpServers": 7}', "mcpServers"),
        ('{"mcpServers": {"a": {}}}', "either"),
        ('{"mcpServers": {"a": {"command": "x", "url": "y"}}}', "either"),
        ('{"mcpServers": {"a b": {"command": "x"}}}', "letters"),
        ('{"mcpServers": {"a": {"command": "x", "comand": "y"}}}', "comand"),
        ('{"mcpServers": {"a": {"command": "${EVERTHREAD_NO_SUCH}"}}}', "EVERTHREAD_NO_SUCH"),
    ],
)
def test_a_file_that_is_wrong_says_where(text: str, why: str, tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    file.write_text(text)
    with pytest.raises(Invalid, match=why):
        load_servers(file)


def test_a_server_behind_an_address_is_reached_by_http(tmp_path: Path) -> None:
    file = written(
        tmp_path, web={"url": "http://127.0.0.1:1/mcp", "headers": {"X": "y"}}, old={"url": "u", "type": "sse"}
    )
    assert load_servers(file) == {
        "web": {"transport": "streamable_http", "url": "http://127.0.0.1:1/mcp", "headers": {"X": "y"}},
        "old": {"transport": "sse", "url": "u"},
    }


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="cannot be read"):
        load_servers(tmp_path / "gone.json")
