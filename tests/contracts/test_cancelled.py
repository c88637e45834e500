"""Whoever stops waiting, at any moment, leaves nothing half done and takes nothing away from the others."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress

import everthread
from tests.contracts.message_helpers import says

ACTS = 60


async def test_calls_that_are_cancelled_anywhere_are_done_whole_or_not_at_all(durable_url: str) -> None:
    async with everthread.open(durable_url, worker=False, embedder=None) as et:
        conv = await et.conversations.create(id="c")
        dice = random.Random(7)

        async def act(number: int) -> None:
            pair = [says(f"question {number}", id=f"q{number}"), says(f"answer {number}", id=f"a{number}")]
            match number % 4:
                case 0:
                    await conv.append(pair)
                case 1:
                    await et.conversations.create(id=f"new{number}")
                case 2:
                    await conv.search("question")
                case _:
                    await conv.append(pair)
                    await conv.delete_message(f"q{number}")

        cancelled = 0
        for number in range(ACTS):
            task = asyncio.create_task(act(number))
            await asyncio.sleep(dice.random() * 0.01)
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            cancelled += task.cancelled()
        assert cancelled
        said = [message.id async for message in conv.messages(include_deleted=True)]
        assert all((f"q{number}" in said) is (f"a{number}" in said) for number in range(ACTS))
        async with asyncio.timeout(60):  # no connection and no lock was lost
            await asyncio.gather(*(conv.append(says(f"after {number}")) for number in range(40)))
        assert (await et.verify()).ok


async def test_more_calls_at_once_than_connections_are_all_answered(durable_url: str) -> None:
    async with everthread.open(durable_url, worker=False, embedder=None) as et:
        conv = await et.conversations.create(id="c")
        async with asyncio.timeout(120):
            await asyncio.gather(
                *(conv.append(says(f"word {number}", id=f"m{number}")) for number in range(150)),
                *(conv.tail(3) for _ in range(150)),
                *(et.search("word") for _ in range(50)),
            )
        assert len([message async for message in conv.messages()]) == 150
