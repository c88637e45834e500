"""`run_command` is off until somebody switches it on, and then it stays in its folder."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from everthread.core.tools import ToolPolicy
from everthread.turn.tools import jail, make_tools
from tests.turn.tools.conftest import ToolCaller

confined = pytest.mark.skipif(not jail.can_confine(), reason="this kernel has no Landlock")
ON = ToolPolicy(run_command=True, timeout_seconds=30, command_output_bytes=10_000)


@pytest.fixture
async def runner(make_toolbox: Callable[..., Any]) -> ToolCaller:
    made: ToolCaller = await make_toolbox(policy=ON)
    return made


async def test_it_is_off_by_default(toolbox: ToolCaller) -> None:
    assert "run_command" not in {tool.name for tool in make_tools(toolbox.context)}


@confined
async def test_a_command_runs_in_the_workspace(runner: ToolCaller) -> None:
    await runner("write_file", path="a.txt", text="hello")
    assert await runner("run_command", command="cat a.txt; echo; echo there > b.txt; exit 3") == "hello\n[exit code 3]"
    assert await runner("read_file", path="b.txt") == "there"
    assert await runner("run_command", command="true") == "[exit code 0, nothing printed]"


@confined
async def test_i26_a_command_writes_and_reads_nowhere_else(runner: ToolCaller, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("do not read me")
    for attempt in (
        f"cat {tmp_path}/secret",
        f"echo x > {tmp_path}/new",
        f"ln -s {tmp_path}/secret link; cat link",
        f"ls {tmp_path}",
        f"cp a {tmp_path}/; mkdir {tmp_path}/d; rm -f {tmp_path}/secret",
        f"cd / && cat .{tmp_path}/secret",
        "cat ../../../../../../etc/passwd /etc/shadow",
        "cat ../lease ../about.json",
        f"cat /proc/{os.getpid()}/environ",
    ):
        told = await runner("run_command", command=attempt)
        assert "do not read me" not in told, attempt
        assert "ermission denied" in told, attempt
    assert (tmp_path / "secret").read_text() == "do not read me"
    assert sorted(os.listdir(tmp_path)) == ["secret"]


@confined
async def test_i23_a_command_sees_none_of_our_environment(runner: ToolCaller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "not-for-commands")
    told = await runner("run_command", command="env; cat /proc/self/environ /proc/$PPID/environ")
    assert "not-for-commands" not in told
    assert "HOME=" in told


@confined
async def test_one_that_takes_too_long_is_killed_with_all_it_started(runner: ToolCaller) -> None:
    mark = f"everthread-test-{os.getpid()}"
    command = f"(setsid sh -c 'sleep 300; : {mark}' &) ; sleep 300; : {mark}"
    assert "killed after 0.5 seconds" in await runner("run_command", command=command, timeout_seconds=0.5)
    assert not _running(mark)


@confined
async def test_what_a_command_leaves_running_is_killed_when_it_ends(runner: ToolCaller) -> None:
    mark = f"everthread-left-{os.getpid()}"
    assert "exit code 0" in await runner(
        "run_command", command=f"nohup setsid sh -c 'sleep 300; : {mark}' >/dev/null 2>&1 &"
    )
    assert not _running(mark)


@confined
async def test_a_turn_that_is_cancelled_takes_its_command_with_it(runner: ToolCaller) -> None:
    await _cancel_one_and_see_it_end(runner, f"everthread-cancel-{os.getpid()}")


@confined
async def test_a_turn_that_is_cancelled_while_its_command_starts_takes_it_along(
    runner: ToolCaller, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = asyncio.create_subprocess_exec

    async def start_late(*arguments: Any, **options: Any) -> asyncio.subprocess.Process:
        """As where the loop is too busy to connect what it has started."""
        process = await start(*arguments, **options)
        await asyncio.sleep(0.3)
        return process

    monkeypatch.setattr(asyncio, "create_subprocess_exec", start_late)
    await _cancel_one_and_see_it_end(runner, f"everthread-early-{os.getpid()}")


@confined
async def test_a_command_ends_where_whoever_started_it_is_killed(tmp_path: Path) -> None:
    mark = f"everthread-starter-{os.getpid()}"
    script = (
        "import asyncio, pathlib, sys; from everthread.turn.tools import commands\n"
        "asyncio.run(commands.run_in_jail(sys.argv[2], pathlib.Path(sys.argv[1]), 60, 1000))"
    )
    command = f"echo > begun; sleep 300; : {mark}"
    starter = await asyncio.create_subprocess_exec(sys.executable, "-c", script, str(tmp_path), command)
    await _until((tmp_path / "begun").exists)
    starter.kill()
    await starter.wait()
    await _until(lambda: not _running(mark))


async def _cancel_one_and_see_it_end(runner: ToolCaller, mark: str) -> None:
    call = asyncio.create_task(runner.message("run_command", command=f"sleep 300; : {mark}"))
    await _until(lambda: _running(mark))
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await _until(lambda: not _running(mark))


async def _until(is_so: Callable[[], bool]) -> None:
    """Other processes ring no bell."""
    for _ in range(400):
        if is_so():
            return
        await asyncio.sleep(0.05)
    raise AssertionError("it never came so far")


def _running(mark: str) -> bool:
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    return any(mark in line and "sleep" in line for line in listed.splitlines())


@confined
async def test_of_endless_output_beginning_and_end_are_kept(runner: ToolCaller) -> None:
    told = await runner("run_command", command="echo first; yes | head -c 5000000; echo last")
    assert told.startswith("first\n")
    assert told.endswith("last\n[exit code 0]")
    assert "bytes left out" in told
    assert len(told) < 11_000


@confined
async def test_a_command_has_no_sockets(runner: ToolCaller, tmp_path: Path) -> None:
    def close(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    tcp = await asyncio.start_server(close, "127.0.0.1", 0)
    port = tcp.sockets[0].getsockname()[1]
    path = await asyncio.start_unix_server(close, str(tmp_path / "socket"))
    abstract = await asyncio.start_unix_server(close, f"\0everthread-{os.getpid()}")
    for attempt in (
        f"socket.create_connection(('127.0.0.1', {port}), 5)",
        f"socket.socket(socket.AF_UNIX).connect('{tmp_path}/socket')",
        f"socket.socket(socket.AF_UNIX).connect('\\0everthread-{os.getpid()}')",
        f"socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', {port}))",
    ):
        (await runner.context.files.path() / "try.py").write_text(f"import socket\n{attempt}\nprint('through')\n")
        told = await runner("run_command", command="python3 try.py")
        assert "through" not in told
        assert "ermission" in told, told
    for server in (tcp, path, abstract):
        server.close()
        await server.wait_closed()
    (await runner.context.files.path() / "try.py").write_text("import socket; socket.socketpair(); print('a pair')")
    assert "a pair" in await runner("run_command", command="python3 try.py")


async def test_what_is_no_command_is_refused(runner: ToolCaller) -> None:
    await runner.refused("run_command", command="")
    await runner.refused("run_command", command="a\x00b")
    await runner.refused("run_command", command="true", timeout_seconds=-1)
