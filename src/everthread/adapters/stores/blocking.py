"""Run a coroutine to its end in the caller's own thread, without an event loop. A measured trick, kept here alone.

What it gives: a call that hops to a loop's thread and back pays more for the hops than for what most verbs of SQLite
do. With the default settings a turn of `EverthreadSaver` takes 16 to 30 % less CPU than through the bridge, and
`conversation.context()` 4 to 20 % less (docs/decisions/0024). So where a store can block (`Store.can_block`), a caller
outside of any loop runs a verb's coroutine by itself; the store then blocks instead of waiting for a loop.

The rules stay those of a loop: of the coroutines that share a `RunLock`, in their callers' threads or in a loop, one
runs at a time, and another one goes on only where it waits.

To remove it: set `ENABLED` to False (everything goes through the bridge, as on PostgreSQL), then delete this module
and the `may_block()` branches of the SQLite engine.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Generator, Iterable
from concurrent.futures import Future
from contextlib import AbstractContextManager
from typing import Any, TypeVar

R = TypeVar("R")

ENABLED = True
"""Whether savers run coroutines in their callers' threads at all."""


class _Released:
    """Release the run lock around a blocking call, so that another coroutine can run meanwhile."""

    __slots__ = ("_lock",)

    def __init__(self, lock: threading.Lock) -> None:
        self._lock = lock

    def __enter__(self) -> None:
        self._lock.release()

    def __exit__(self, *_: object) -> None:
        self._lock.acquire()


class _Current(threading.local):
    released: _Released | None = None
    """Releases the run lock under which this thread runs a coroutine; None when it runs none."""


_current = _Current()


class RunLock:
    """Held by the one coroutine that runs, as the running task holds a loop."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._released = _Released(self._lock)

    def run(self, work: Coroutine[Any, Any, R]) -> R:
        """Run a coroutine in this thread. Where it waits, the thread blocks without holding the lock."""
        with self._lock:
            _current.released = self._released
            try:
                work.send(None)
            except StopIteration as end:
                result: R = end.value
                return result
            finally:
                _current.released = None
                work.close()
        raise RuntimeError("a coroutine that runs without a loop waited for one")

    def in_loop(self, work: Coroutine[Any, Any, R]) -> Coroutine[Any, Any, R]:
        """Run a coroutine in an event loop, holding the lock from one await to the next."""
        return _LockedSteps(work, self._lock)


class _LockedSteps(Coroutine[Any, Any, R], Generator[Any, Any, R]):
    def __init__(self, work: Coroutine[Any, Any, R], lock: threading.Lock) -> None:
        self._work = work
        self._lock = lock

    def send(self, value: Any) -> Any:
        with self._lock:
            return self._work.send(value)

    def throw(self, *problem: Any) -> Any:
        with self._lock:
            return self._work.throw(*problem)

    def close(self) -> None:
        self._work.close()

    def __await__(self) -> Generator[Any, Any, R]:
        return self


def may_block() -> bool:
    """Whether this thread runs a coroutine without an event loop, and so blocks where a loop would wait."""
    return _current.released is not None


def released() -> AbstractContextManager[None]:
    """Return a context that releases the run lock around a blocking call; only where `may_block()`."""
    assert _current.released is not None, "only where `may_block()`"
    return _current.released


class Completion:
    """An event that others wait for, in a loop or blocking. Only the holder of the run lock may touch it."""

    __slots__ = ("_future", "_is_set")

    def __init__(self) -> None:
        self._is_set = False
        self._future: Future[None] | None = None
        """Created by the first waiter, because mostly there is none."""

    def set(self) -> None:
        self._is_set = True
        if self._future is not None:
            self._future.set_result(None)

    async def wait(self) -> None:
        if self._is_set:
            return
        if self._future is None:
            self._future = Future()
            self._future.set_running_or_notify_cancel()  # one who is cancelled while waiting must not cancel it
        if not may_block():
            await asyncio.wrap_future(self._future)
            return
        with released():
            self._future.result()


async def wait_for_all(completions: Iterable[Completion]) -> None:
    for completion in completions:
        await completion.wait()
