"""One bridge for callers that are not async: a loop in a thread of its own, where everything runs that the caller
cannot drive by itself.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from everthread.core.errors import DATABASE_CLOSED, Conflict, StoreError

R = TypeVar("R")


class Bridge:
    """The event loop in which a database is open, for callers in other loops and threads."""

    def __init__(self, loop: asyncio.AbstractEventLoop, thread: threading.Thread | None = None) -> None:
        self._loop = loop
        self._thread = thread

    @classmethod
    def here(cls) -> Bridge:
        """A bridge to the running loop, which its owner keeps running."""
        return cls(asyncio.get_running_loop())

    @classmethod
    def start(cls) -> Bridge:
        """A bridge to a loop in a thread of its own, which runs until `stop`."""
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever, name="everthread-bridge", daemon=True)
        thread.start()
        return cls(loop, thread)

    def call(self, work: Coroutine[Any, Any, R]) -> R:
        """Run it in the loop and wait. Refused inside that loop, which would wait for itself."""
        if running_loop() is self._loop:
            work.close()
            raise Conflict(
                "a call that blocks was made from the loop that has to answer it; use the async verb (aget_tuple, "
                "aput, ainvoke …); a program without asyncio opens the database with `with "
                "everthread.langgraph.open_sync(url) as et`, or a saver with `with EverthreadSaver.from_url(url)`"
            )
        return self._begin(work).result()

    async def run(self, work: Coroutine[Any, Any, R]) -> R:
        """Run it in the loop, from this loop or another."""
        if running_loop() is self._loop:
            return await work
        return await asyncio.wrap_future(self._begin(work))

    def _begin(self, work: Coroutine[Any, Any, R]) -> Future[R]:
        try:
            return asyncio.run_coroutine_threadsafe(work, self._loop)
        except RuntimeError as problem:  # the loop is closed, and the database that was open in it
            work.close()
            raise StoreError(DATABASE_CLOSED) from problem

    def stop(self) -> None:
        """End a loop of its own."""
        if self._thread is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()


def require_bridge(bridge: Bridge | None, who: str) -> Bridge:
    """The bridge; Conflict says how to get one."""
    if bridge is None:
        raise Conflict(
            f"{who} has no event loop to work in: use `with {who}.from_url(…)`, or open the database with `with "
            "everthread.langgraph.open_sync(url) as et`; in an async program create it inside the loop that opened it"
        )
    return bridge


def running_loop() -> asyncio.AbstractEventLoop | None:
    """The loop that runs in this thread, if any."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
