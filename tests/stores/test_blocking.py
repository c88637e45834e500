"""Coroutines run in their callers' threads: one at a time, and another one goes on where one waits."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from everthread.adapters.stores import blocking
from everthread.adapters.stores.blocking import Completion, RunLock


def test_a_coroutine_run_here_gives_its_result_and_its_error() -> None:
    async def half(number: int) -> int:
        if number % 2:
            raise ValueError(number)
        return number // 2

    assert RunLock().run(half(4)) == 2
    with pytest.raises(ValueError, match="3"):
        RunLock().run(half(3))
    assert not blocking.may_block()


def test_what_waits_for_a_loop_is_refused_and_closed() -> None:
    closed = []

    async def sleep() -> None:
        try:
            await asyncio.sleep(0)
        finally:
            closed.append(blocking.may_block())

    with pytest.raises(RuntimeError, match="waited for one"):
        RunLock().run(sleep())
    assert closed == [False]


def test_another_one_goes_on_while_one_blocks() -> None:
    lock, begun, let_go = RunLock(), threading.Event(), threading.Event()

    async def blocked() -> str:
        with blocking.released():
            begun.set()
            let_go.wait(60)
        return "first"

    async def quick() -> str:
        return "second"

    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(lock.run, blocked())
        begun.wait(60)
        assert lock.run(quick()) == "second"
        let_go.set()
        assert first.result(60) == "first"


def test_no_two_run_at_a_time_wherever_they_run() -> None:
    lock, counted = RunLock(), 0

    async def count(times: int) -> None:
        nonlocal counted
        for number in range(times):
            before = counted
            for _ in range(50):  # long enough for the interpreter to go on with another thread
                pass
            counted = before + 1
            if number % 50 == 0 and not blocking.may_block():
                await asyncio.sleep(0)

    async def in_a_loop() -> None:
        await asyncio.gather(*(lock.in_loop(count(2_000)) for _ in range(2)))

    with ThreadPoolExecutor(3) as pool:
        futures = [pool.submit(lock.run, count(2_000)) for _ in range(2)]
        futures.append(pool.submit(asyncio.run, in_a_loop()))
        for future in futures:
            future.result(60)
    assert counted == 8_000


async def test_who_is_cancelled_while_waiting_does_not_wake_the_others() -> None:
    completion = Completion()
    first, second = (asyncio.ensure_future(completion.wait()) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    assert not second.done()
    completion.set()
    await second
    await completion.wait()


async def test_what_a_loop_throws_into_a_coroutine_reaches_it() -> None:
    caught = []

    async def patient() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError as problem:
            caught.append(problem)
            raise

    task = asyncio.ensure_future(RunLock().in_loop(patient()))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(caught) == 1
