"""Work that takes the processor for a while, beside turns that must not wait for it.

A thread is not enough: Python's threads change hands every 5 ms, and a context is built in a dozen steps, each of which
would wait so long. While something is worked on here they change hands ten times as often.

What a worker does is also kept to a share of one core (`CpuShare`): one piece at a time, and after each a pause that is
as long as its time and the share say. A process of its own would keep clear of our threads altogether, and take 100 MB.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import partial
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

_SECONDS = 0.0005
_guard = threading.Lock()
_at_work = 0
_before = 0.0


async def run_in_background(work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Run it in a thread that lets the others go first; for a worker, within its share."""
    share = _share.get()
    if share is None:
        with _short_switch_interval():
            return await asyncio.to_thread(work, *args, **kwargs)
    return await share.run(partial(work, *args, **kwargs))


class CpuShare:
    """A share of one core, for all that a worker does in threads. Used in one event loop."""

    def __init__(self, share: float) -> None:
        self._pause_per_second = 1.0 / share - 1.0
        self._one_at_a_time = asyncio.Lock()
        self._next_at = 0.0

    @contextmanager
    def applied(self) -> Iterator[None]:
        """What is run in the background by this task, and by those that it starts, is kept to the share."""
        token = _share.set(self)
        try:
            yield
        finally:
            _share.reset(token)

    async def run(self, work: Callable[[], R]) -> R:
        """Run it when the pause after the last piece is over."""
        async with self._one_at_a_time:
            await asyncio.sleep(max(0.0, self._next_at - time.monotonic()))
            with _short_switch_interval():
                answer, seconds = await asyncio.to_thread(_with_cpu_seconds, work)
            self._next_at = time.monotonic() + seconds * self._pause_per_second
            return answer


_share: ContextVar[CpuShare | None] = ContextVar("everthread_cpu_share", default=None)


def _with_cpu_seconds(work: Callable[[], R]) -> tuple[R, float]:
    began = time.thread_time()
    answer = work()
    return answer, time.thread_time() - began


async def run_abandonable(work: Callable[[], R]) -> R:
    """Run what may block for ever in a thread that nobody waits for once this is cancelled, not even at the end of the
    process: that of a pool would be joined there."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[R] = loop.create_future()

    def run() -> None:
        try:
            answer = work()
        except BaseException as problem:  # noqa: BLE001 - handed over whole to who waits
            _hand_over(loop, done, partial(done.set_exception, problem))
        else:
            _hand_over(loop, done, partial(done.set_result, answer))

    threading.Thread(target=run, name="everthread-forsakable", daemon=True).start()
    return await done


def _hand_over(loop: asyncio.AbstractEventLoop, done: asyncio.Future[R], settle: Callable[[], None]) -> None:
    with suppress(RuntimeError):  # the loop is closed: nobody waits any more
        loop.call_soon_threadsafe(lambda: None if done.done() else settle())


def is_in_loop() -> bool:
    """Whether this thread runs an event loop. A reader's thread, where `Store.run_reads` may bring us, does not."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


@contextmanager
def _short_switch_interval() -> Iterator[None]:
    global _at_work, _before
    with _guard:
        if not _at_work:
            _before = sys.getswitchinterval()
            sys.setswitchinterval(min(_before, _SECONDS))
        _at_work += 1
    try:
        yield
    finally:
        with _guard:
            _at_work -= 1
            if not _at_work and sys.getswitchinterval() < _before:
                sys.setswitchinterval(_before)
