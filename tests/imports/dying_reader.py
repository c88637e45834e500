"""A program that reads a file into the log and is killed at some step of it: DATABASE FILE STEP."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import everthread
from everthread.core import failpoints
from everthread.imports.follow import Follower
from everthread.imports.write import ImportCounts


async def main(url: str, path: Path, last: int) -> None:
    steps = 0

    def trap(_: str) -> None:
        nonlocal steps
        steps += 1
        if steps == last:
            os.kill(os.getpid(), signal.SIGKILL)

    async with everthread.open(url, worker=False) as et:
        failpoints.arm(trap)
        await Follower(et, "local", ImportCounts()).catch_up(path, "claude-code")
        failpoints.arm(None)


asyncio.run(main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])))
