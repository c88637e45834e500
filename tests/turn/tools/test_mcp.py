"""MCP servers as tool sources: a real one on stdio."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from everthread import Everthread, Invalid
from everthread.turn.tools import ToolContext
from everthread.turn.tools.mcp import McpServers, load_servers
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
    silent = {"command": sys.executable, "args": ["-c", "import time; time.sleep(60)"]}
    absent = {"command": "no-such-program-anywhere"}
    file = written(tmp_path, shop=SHOP, absent=absent, silent=silent)
    async with McpServers(load_servers(file), start_seconds=15) as servers:
        names = {tool.name for tool in await servers.tools()}
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
