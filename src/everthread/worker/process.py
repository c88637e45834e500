"""Working until somebody says stop: Ctrl-C, or the signal that process managers send.

The signal only ends the waiting. Closing the database then gives what runs its time to end, and gives back what does
not; a second signal does not cut that short.
"""

from __future__ import annotations

import asyncio
import signal

from everthread.instance import Everthread


async def until_told_to_stop(et: Everthread) -> None:
    """Take jobs, also those of other processes, until a signal comes."""
    told = asyncio.Event()
    loop = asyncio.get_running_loop()
    for one in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(one, told.set)
    et.start_worker()
    await told.wait()
