"""A conversation of any length is shown in little memory."""

from __future__ import annotations

import os
import subprocess

import everthread
from tests.cli.shell import Shell, user

MESSAGES = 4_000
PICTURE = "x" * 30_000
LITTLE_MEGABYTES = 75
"""Each of four readers has a page cache of 16 MB; the messages together have 120 MB."""


async def test_showing_a_long_conversation_takes_little_memory(shell: Shell) -> None:
    assert shell.database is not None
    async with everthread.open(shell.database) as et:
        few = await et.conversations.create(id="few")
        await few.append([user("see", picture=PICTURE)])
        many = await et.conversations.create(id="many")
        for _ in range(MESSAGES // 500):
            await many.append([user("see", picture=PICTURE) for _ in range(500)])
    lines, least = _shown(shell, "few")
    assert lines == 1
    lines, most = _shown(shell, "many")
    assert lines == MESSAGES
    assert most - least < LITTLE_MEGABYTES


def _shown(shell: Shell, conversation: str) -> tuple[int, float]:
    """How many lines a command wrote, and how many megabytes it held at most."""
    process = shell.start("show", conversation, "--json", stderr=subprocess.DEVNULL)
    assert process.stdout is not None
    lines = sum(PICTURE[:100].encode() in line for line in process.stdout)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stdout.close()
    assert process.stdin is not None
    process.stdin.close()
    assert process.returncode == 0
    return lines, used.ru_maxrss / 1024
