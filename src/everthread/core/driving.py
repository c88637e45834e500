"""Coroutines of callers that may block, run to their end in the caller's own thread.

To hop to a loop's thread and back costs more than most of what a store is asked for. So where a store can block
(`Log.can_block`), a caller outside of any loop drives a coroutine by itself. The rules stay those of a loop: of the
coroutines that share a baton, driven or in a loop, one runs at a time, and another one goes on only where it waits.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Generator, Iterable
from concurrent.futures import Future
from contextlib import AbstractContextManager
from typing import Any, TypeVar

R = TypeVar("R")


class _Aside:
    """Around what blocks: whoever waits for the baton goes on meanwhile."""

    __slots__ = ("_lock",)

    def __init__(self, lock: threading.Lock) -> None:
        self._lock = lock

    def __enter__(self) -> None:
        self._lock.release()

    def __exit__(self, *_: object) -> None:
        self._lock.acquire()


class _Driven(threading.local):
    aside: _Aside | None = None
    """Of the baton by which this thread drives a coroutine."""


_driven = _Driven()


class Baton:
    """Whoever has it runs."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._aside = _Aside(self._lock)

    def drive(self, work: Coroutine[Any, Any, R]) -> R:
        """Run it here. Where it waits this thread blocks, without the baton."""
        with self._lock:
            _driven.aside = self._aside
            try:
                work.send(None)
            except StopIteration as end:
                result: R = end.value
                return result
            finally:
                _driven.aside = None
                work.close()
        raise RuntimeError("a coroutine that is driven waited for a loop")

    def in_steps(self, work: Coroutine[Any, Any, R]) -> Coroutine[Any, Any, R]:
        """The same for a loop: with the baton from one await to the next."""
        return _Steps(work, self._lock)


class _Steps(Coroutine[Any, Any, R], Generator[Any, Any, R]):
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


def is_driven() -> bool:
    """Whether this thread drives a coroutine, and may block where a loop would wait."""
    return _driven.aside is not None


def blocking() -> AbstractContextManager[None]:
    """Around what blocks, in a coroutine that is driven: another one goes on meanwhile."""
    assert _driven.aside is not None, "only where `is_driven`"
    return _driven.aside


class Errand:
    """Something that others wait for, in a loop or driven, until it ends. Touched by whoever has the baton."""

    __slots__ = ("_ended", "_is_over")

    def __init__(self) -> None:
        self._is_over = False
        self._ended: Future[None] | None = None
        """Made by the first who waits: mostly nobody does."""

    def end(self) -> None:
        self._is_over = True
        if self._ended is not None:
            self._ended.set_result(None)

    async def wait(self) -> None:
        """Until it has ended."""
        if self._is_over:
            return
        if self._ended is None:
            self._ended = Future()
            self._ended.set_running_or_notify_cancel()  # one who is cancelled while waiting must not cancel it
        if not is_driven():
            await asyncio.wrap_future(self._ended)
            return
        with blocking():
            self._ended.result()


async def wait(errands: Iterable[Errand]) -> None:
    """Until each has ended."""
    for errand in errands:
        await errand.wait()
