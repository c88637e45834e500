"""A time limit that keeps nothing alive.

The loop holds a timer until its time comes, also one that was cancelled, and a timer holds the context it was made in.
For a turn that is the whole request: with two minutes for the model's silence, the windows of all turns of the last two
minutes stayed in memory. These timers are made in an empty context.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import Context


@asynccontextmanager
async def time_limit(seconds: float) -> AsyncIterator[asyncio.Timeout]:
    """As `asyncio.timeout`: raises TimeoutError if what is inside takes longer."""
    async with asyncio.timeout(None) as limit:
        restart(limit, seconds)
        yield limit


def restart(limit: asyncio.Timeout, seconds: float) -> None:
    """Let the time begin anew."""
    Context().run(limit.reschedule, asyncio.get_running_loop().time() + seconds)
