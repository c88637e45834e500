"""`run_command`: programs in the workspace; off unless the operator allows it.

The command runs in a jail (`jail.py`), with none of this process's environment, for a limited time; of its output the
beginning and the end are kept.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated

from langchain_core.tools import BaseTool
from pydantic import Field

from everthread.core.errors import Conflict, Invalid
from everthread.turn.tools import jail
from everthread.turn.tools.tool_context import ToolContext
from everthread.turn.tools.wrap import as_tool

_GRACE_SECONDS = 2.0
_READ_BYTES = 65_536
_MARGIN_SECONDS = 10.0


def tools(tool_context: ToolContext) -> Sequence[BaseTool]:
    if not tool_context.policy.run_command:
        return []
    return [
        as_tool(
            run_command,
            tool_context=tool_context,
            timeout_seconds=tool_context.policy.timeout_seconds + _MARGIN_SECONDS,
        )
    ]


async def run_command(
    tool_context: ToolContext,
    command: Annotated[str, Field(min_length=1, max_length=20_000, description="run by sh, in the workspace")],
    timeout_seconds: Annotated[float, Field(gt=0, description="the command is killed after this time")] = 30.0,
) -> str:
    """Run a command in the workspace. It sees the workspace and what the system has installed, nothing else; it has no
    network and no terminal. What it leaves running is killed."""
    if "\x00" in command:
        raise Invalid("must not hold a NUL character", field="command")
    seconds = min(timeout_seconds, tool_context.policy.timeout_seconds)
    folder = await tool_context.files.path()
    code, output = await run_in_jail(command, folder, seconds, tool_context.policy.command_output_bytes)
    if code == jail.CANNOT_CONFINE and not jail.can_confine():
        raise Conflict(
            "this system cannot sandbox commands (that needs Landlock, on x86_64 or aarch64); nothing was run"
        )
    ended = f"killed after {seconds:g} seconds" if code is None else f"exit code {code}"
    return f"{output}\n[{ended}]" if output else f"[{ended}, nothing printed]"


async def run_in_jail(command: str, folder: Path, seconds: float, max_bytes: int) -> tuple[int | None, str]:
    """The exit code, None after a timeout, and the output."""
    process = await _start(command, folder, seconds)
    assert process.stdout is not None
    reading = asyncio.ensure_future(_read_output(process.stdout, max_bytes))
    try:
        async with asyncio.timeout(seconds):
            await process.wait()
        code = process.returncode
    except TimeoutError:
        code = None
    finally:
        await _terminate(process)
    return code, await reading


async def _start(command: str, folder: Path, seconds: float) -> asyncio.subprocess.Process:
    """The jail. A turn that is cancelled meanwhile waits until the jail can be terminated: asyncio would kill it, and
    what it had started would go on."""
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(
            sys.executable, "-I", "-S", jail.__file__, str(folder), str(seconds), command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=_environment(folder),
            start_new_session=True,
        )
    )  # fmt: skip
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        await _terminate(await starting)
        raise


async def _terminate(process: asyncio.subprocess.Process) -> None:
    """On SIGTERM the jail kills what it started; if it does not end, it is killed itself."""
    with suppress(ProcessLookupError):
        process.terminate()
    try:
        async with asyncio.timeout(_GRACE_SECONDS):
            await process.wait()
    except TimeoutError:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


def _environment(folder: Path) -> dict[str, str]:
    """Nothing of our own environment: it holds keys and addresses."""
    own = str(Path(sys.executable).parent)
    return {
        "PATH": f"/usr/local/bin:/usr/bin:/bin:{own}",
        "HOME": str(folder),
        "TMPDIR": str(folder / ".tmp"),
        "LANG": "C.UTF-8",
    }


async def _read_output(stream: asyncio.StreamReader, max_bytes: int) -> str:
    """The beginning and the end of the output; of the middle only the size is kept."""
    head, tail, dropped = bytearray(), bytearray(), 0
    head_max, tail_max = max_bytes - max_bytes // 4, max_bytes // 4
    while chunk := await stream.read(_READ_BYTES):
        room = head_max - len(head)
        head += chunk[:room] if room > 0 else b""
        tail += chunk[max(room, 0) :]
        if len(tail) > tail_max:
            dropped += len(tail) - tail_max
            del tail[: len(tail) - tail_max]
    middle = f"\n[… {dropped:,} bytes left out …]\n".encode() if dropped else b""
    return (bytes(head) + middle + bytes(tail)).decode(errors="replace").rstrip("\n")
