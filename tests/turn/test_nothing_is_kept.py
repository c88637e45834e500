"""What a turn worked with is let go of when it has ended."""

from __future__ import annotations

import asyncio
import gc
from contextvars import ContextVar
from pathlib import Path
from weakref import ref

import pytest

import everthread
from everthread.core.timeouts import restart, time_limit
from everthread.turn.turn_context import TurnContext


async def test_the_windows_of_earlier_turns_do_not_stay_in_memory(tmp_path: Path) -> None:
    async with everthread.open(f"sqlite:///{tmp_path}/et.db", embedder=None) as et:
        agent = everthread.agent(et, model="scripted:echo")
        conv = await et.conversations.create()
        for number in range(8):
            async for _ in everthread.run_turn(conv, f"Say {number}.", agent=agent):
                pass
        gc.collect()
        kept = sum(type(one) is TurnContext and one.conversation is conv for one in gc.get_objects())
        assert kept <= 3  # the last, and what the loop has not yet come to


class _Thing:
    """What nobody should hold."""


async def test_a_time_limit_that_was_not_needed_holds_nothing() -> None:
    held: ContextVar[_Thing] = ContextVar("held")
    made = []

    async def work() -> None:
        thing = _Thing()
        made.append(ref(thing))
        held.set(thing)
        async with time_limit(600) as limit:
            restart(limit, 600)

    await asyncio.create_task(work())
    await asyncio.sleep(0)  # the loop itself holds a task until it has told who waits for it
    gc.collect()
    assert made[0]() is None


async def test_a_time_limit_ends_what_takes_longer() -> None:
    with pytest.raises(TimeoutError):
        async with time_limit(0.01):
            await asyncio.sleep(60)


async def test_one_that_begins_anew_ends_later() -> None:
    async with time_limit(0.2) as limit:
        for _ in range(5):
            await asyncio.sleep(0.1)
            restart(limit, 10)
