"""Coroutines driven by their callers: one at a time, and another one goes on where one waits."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from everthread.core import driving
from everthread.core.driving import Baton, Errand


def test_a_driven_coroutine_gives_its_result_and_its_error() -> None:
    async def half(number: int) -> int:
        if number % 2:
            raise ValueError(number)
        return number // 2

    assert Baton().drive(half(4)) == 2
    with pytest.raises(ValueError, match="3"):
        Baton().drive(half(3))
    assert not driving.is_driven()


def test_what_waits_for_a_loop_is_refused_and_closed() -> None:
    closed = []

    async def sleep() -> None:
        try:
            await asyncio.sleep(0)
        finally:
            closed.append(driving.is_driven())

    with pytest.raises(RuntimeError, match="waited for a loop"):
        Baton().drive(sleep())
    assert closed == [False]


def test_another_one_goes_on_while_one_blocks() -> None:
    baton, begun, let_go = Baton(), threading.Event(), threading.Event()

    async def blocked() -> str:
        with driving.blocking():
            begun.set()
            let_go.wait(60)
        return "first"

    async def quick() -> str:
        return "second"

    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(baton.drive, blocked())
        begun.wait(60)
        assert baton.drive(quick()) == "second"
        let_go.set()
        assert first.result(60) == "first"


def test_no_two_run_at_a_time_wherever_they_run() -> None:
    baton, counted = Baton(), 0

    async def count(times: int) -> None:
        nonlocal counted
        for number in range(times):
            before = counted
            for _ in range(50):  # long enough for the interpreter to go on with another thread
                pass
            counted = before + 1
            if number % 50 == 0 and not driving.is_driven():
                await asyncio.sleep(0)

    async def in_a_loop() -> None:
        await asyncio.gather(*(baton.in_steps(count(2_000)) for _ in range(2)))

    with ThreadPoolExecutor(3) as pool:
        futures = [pool.submit(baton.drive, count(2_000)) for _ in range(2)]
        futures.append(pool.submit(asyncio.run, in_a_loop()))
        for future in futures:
            future.result(60)
    assert counted == 8_000


async def test_who_is_cancelled_while_waiting_does_not_wake_the_others() -> None:
    errand = Errand()
    first, second = (asyncio.ensure_future(errand.wait()) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    assert not second.done()
    errand.end()
    await second
    await errand.wait()


async def test_what_a_loop_throws_into_a_coroutine_reaches_it() -> None:
    caught = []

    async def patient() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError as problem:
            caught.append(problem)
            raise

    task = asyncio.ensure_future(Baton().in_steps(patient()))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(caught) == 1
