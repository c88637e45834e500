"""Children that all want the same database at once."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path

import everthread


def append_many(url: str, conversation: str, name: str, count: int, start_at: float, report: str) -> None:
    """Append one message after the other; tell how long the slowest call took."""
    time.sleep(max(0.0, start_at - time.time()))
    slowest = asyncio.run(_append_many(url, conversation, name, count))
    Path(report).write_text(json.dumps({"slowest_seconds": slowest}))


async def _append_many(url: str, conversation: str, name: str, count: int) -> float:
    slowest = 0.0
    async with everthread.open(url) as et:
        conv = await et.conversations.ensure(conversation)
        for number in range(count):
            before = time.monotonic()
            await conv.append([{"role": "user", "content": f"{name} says {number}", "id": f"{name}-{number}"}])
            slowest = max(slowest, time.monotonic() - before)
    return slowest
