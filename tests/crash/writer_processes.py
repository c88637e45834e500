"""Children that append in plain loops: many at once to the same conversation, or one in large batches."""

from __future__ import annotations

import asyncio
import time

import everthread
from everthread import CompactionPolicy
from everthread.core import failpoints
from everthread.core.embeddings import VectorPart, unit
from everthread.core.nouns import Ref
from tests.crash.child import plug


def append_many(url: str, conversation: str, name: str, count: int, start_at: float) -> None:
    """From a moment on, append one message after the other."""
    time.sleep(max(0.0, start_at - time.time()))
    asyncio.run(append_batches(url, conversation, name, batches=count, size=1))


TALK_MESSAGES = 40
AHEAD = CompactionPolicy(compact_ahead=True)


def append_large_batches(url: str, conversation: str, name: str, batches: int, size: int, kill: str) -> None:
    """Append batches until the plug is pulled."""
    failpoints.arm(plug(kill))
    asyncio.run(append_batches(url, conversation, name, batches, size))


def compact_a_talk(url: str, kill: str) -> None:
    """Talk for a while, then compact until the plug is pulled."""
    asyncio.run(talk(url))
    failpoints.arm(plug(kill))
    asyncio.run(compact(url))


BIG = "a ledger of zirconium " * 5_000


def append_a_blob(url: str, blobs: str, kill: str) -> None:
    """Append something large until the plug is pulled."""
    failpoints.arm(plug(kill))
    asyncio.run(append_big(url, blobs))


def erase_a_blob(url: str, blobs: str, kill: str) -> None:
    """Append something large, then erase it until the plug is pulled."""
    asyncio.run(append_big(url, blobs))
    failpoints.arm(plug(kill))
    asyncio.run(erase(url, blobs))


def put_vectors(url: str, kill: str) -> None:
    """Talk for a while, then index it until the plug is pulled."""
    asyncio.run(talk(url))
    failpoints.arm(plug(kill))
    asyncio.run(index_talk(url))


async def index_talk(url: str) -> None:
    async with everthread.open(url, worker=False, embedder=None) as et:
        parts = [VectorPart(seq, 0, unit([seq, 1.0])) for seq in range(1, TALK_MESSAGES + 1)]
        await et.vectors.put(Ref("local", "c"), "fake/2", parts)


async def append_big(url: str, blobs: str) -> None:
    async with everthread.open(url, blobs=blobs) as et:
        conv = await et.conversations.ensure("c")
        await conv.append([{"role": "user", "content": BIG, "id": "big"}])


async def erase(url: str, blobs: str) -> None:
    async with everthread.open(url, blobs=blobs) as et:
        await et.erase(conversation="c", message="big")


async def talk(url: str) -> None:
    async with everthread.open(url, worker=False, compaction=AHEAD) as et:
        conv = await et.conversations.ensure("c")
        said = f"We keep the plan of day {{}} and pay 40 euros for it, as agreed with the hotel. {'And so on. ' * 20}"
        turns = [{"role": role, "content": said.format(day)} for day in range(20) for role in ("user", "assistant")]
        await conv.append(turns)


async def compact(url: str) -> None:
    async with everthread.open(url, worker=False) as et:
        await (await et.conversations.get("c")).compact()


async def append_batches(url: str, conversation: str, name: str, batches: int, size: int) -> None:
    async with everthread.open(url, worker=False, compaction=AHEAD) as et:
        conv = await et.conversations.ensure(conversation)
        for start in range(0, batches * size, size):
            numbers = range(start, start + size)
            await conv.append(
                [{"role": "user", "content": f"{name} says {number}", "id": f"{name}-{number}"} for number in numbers]
            )
