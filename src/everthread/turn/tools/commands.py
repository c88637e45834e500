"""`run_command`: programs in the workspace, when whoever runs everthread allows it; off otherwise.

The command runs in a jail (`jail.py`), with none of this process's environment, for a limited time; of what it prints
the beginning and the end are kept.
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
from everthread.turn.tools.desk import Desk
from everthread.turn.tools.shaping import as_tool

_GRACE_SECONDS = 2.0
_READ_BYTES = 65_536
_MARGIN_SECONDS = 10.0


def tools(desk: Desk) -> Sequence[BaseTool]:
    if not desk.policy.run_command:
        return []
    return [as_tool(run_command, desk=desk, timeout_seconds=desk.policy.timeout_seconds + _MARGIN_SECONDS)]


async def run_command(
    desk: Desk,
    command: Annotated[str, Field(min_length=1, max_length=20_000, description="for sh, in the workspace")],
    timeout_seconds: Annotated[float, Field(gt=0, description="after which it is killed")] = 30.0,
) -> str:
    """Run a command in the workspace. It sees the workspace and what the system has installed, nothing else; it has no
    network to speak of and no terminal. What it leaves running is killed."""
    if "\x00" in command:
        raise Invalid("must not hold a NUL character", field="command")
    seconds = min(timeout_seconds, desk.policy.timeout_seconds)
    folder = await desk.files.path()
    code, output = await _run(command, folder, seconds, desk.policy.command_output_bytes)
    if code == jail.CANNOT_CONFINE and jail.version() < 1:
        raise Conflict("this system cannot hold a program in its folder (Landlock is missing); nothing was run")
    ended = f"killed after {seconds:g} seconds" if code is None else f"exit code {code}"
    return f"{output}\n[{ended}]" if output else f"[{ended}, nothing printed]"


async def _run(command: str, folder: Path, seconds: float, most: int) -> tuple[int | None, str]:
    """The exit code, None when its time was up, and what it printed."""
    process = await _started(command, folder, seconds)
    assert process.stdout is not None
    reading = asyncio.ensure_future(_kept(process.stdout, most))
    try:
        async with asyncio.timeout(seconds):
            await process.wait()
        code = process.returncode
    except TimeoutError:
        code = None
    finally:
        await _ended(process)
    return code, await reading


async def _started(command: str, folder: Path, seconds: float) -> asyncio.subprocess.Process:
    """The jail. A turn that is cancelled meanwhile waits until it can be told to end: asyncio would kill it, so that
    what it runs went on."""
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
        await _ended(await starting)
        raise


async def _ended(process: asyncio.subprocess.Process) -> None:
    """The jail kills what it started when it is told to end; it is killed itself when it does not."""
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
    """Nothing of ours: keys and addresses are in there."""
    own = str(Path(sys.executable).parent)
    return {
        "PATH": f"/usr/local/bin:/usr/bin:/bin:{own}",
        "HOME": str(folder),
        "TMPDIR": str(folder / ".tmp"),
        "LANG": "C.UTF-8",
    }


async def _kept(stream: asyncio.StreamReader, most: int) -> str:
    """The beginning and the end of what is printed; the middle is counted and let go."""
    head, tail, dropped = bytearray(), bytearray(), 0
    head_most, tail_most = most - most // 4, most // 4
    while chunk := await stream.read(_READ_BYTES):
        room = head_most - len(head)
        head += chunk[:room] if room > 0 else b""
        tail += chunk[max(room, 0) :]
        if len(tail) > tail_most:
            dropped += len(tail) - tail_most
            del tail[: len(tail) - tail_most]
    middle = f"\n[… {dropped:,} bytes left out …]\n".encode() if dropped else b""
    return (bytes(head) + middle + bytes(tail)).decode(errors="replace").rstrip("\n")
