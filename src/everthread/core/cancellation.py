"""Waiting and cancelling: wait at most so long, was it ours that was cancelled, and finish what must be finished."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")


def cancel_count() -> int:
    """How often the running task was asked to end. Where this has not grown, a CancelledError came from inside: from a
    client's own task group or an abandoned future, and is an error like any other."""
    task = asyncio.current_task()
    return 0 if task is None else task.cancelling()


async def finish_despite_cancel(work: Coroutine[Any, Any, T]) -> T:
    """Run this to its end, however often the waiting task is cancelled: the end of a run must be written."""
    task = asyncio.create_task(work)
    while not task.done():
        with suppress(asyncio.CancelledError):
            await asyncio.shield(task)
    return task.result()


async def wait_for_event(event: asyncio.Event, seconds: float) -> bool:
    """Wait until an event is set, at most so long; returns whether it is."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
    return event.is_set()
