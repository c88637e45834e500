"""Telling a cancellation of the task that runs from one that somebody else's code merely raises."""

from __future__ import annotations

import asyncio


def cancels() -> int:
    """How often the running task was asked to end. Where this has not grown, a CancelledError came from inside: a
    client's own task group or a future that was dropped, and is an error like any other."""
    task = asyncio.current_task()
    return 0 if task is None else task.cancelling()
