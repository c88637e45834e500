"""What building a context costs, and whether a compaction in the background is in the way of a model call.

`run`: `context()` of conversations from 200 to 100,000 messages on SQLite, compacted and not, taking turns; the least
and the median CPU time of the whole process, the most memory that one call holds, and the ratio to the shortest.
`background`: a context and a scripted model call of 200 ms, alone and while another conversation is being compacted.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Sequence
from typing import Any

import everthread
from benchmarks.report import Row
from everthread import Conversation, Everthread
from everthread.langchain import to_langchain
from everthread.testing import Reply, ScriptedModel

MODEL_SECONDS = 0.2
BACKGROUND_MESSAGES = 2_000
_BATCH = 500


def turn(number: int) -> list[dict[str, Any]]:
    """Four messages with a tool call, each unlike the others."""
    order = f"A-{number}00"
    call = {
        "id": f"c{number}",
        "type": "function",
        "function": {"name": "find", "arguments": f'{{"order": "{order}"}}'},
    }
    return [
        {"role": "user", "content": f"Question {number}: where is order {order} of 2024-05-{number % 28 + 1:02d}?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"c{number}", "content": f"Order {order} is in depot {number % 97}. " * 12},
        {"role": "assistant", "content": f"Order {order} costs {number * 7} euro; it goes by rail to town {number}."},
    ]


async def filled(et: Everthread, id: str, messages: int) -> Conversation:
    """A conversation of so many messages; nothing is compacted by itself while something else is measured."""
    await et.compaction_config.set({"enabled": False})
    conversation = await et.conversations.create(id=id)
    for start in range(0, messages // 4, _BATCH):
        turns = range(start, min(start + _BATCH, messages // 4))
        await conversation.append([message for number in turns for message in turn(number)])
    return conversation


# -- the cost ------------------------------------------------------------------------------------------------------


def run(options: argparse.Namespace) -> Sequence[Row]:
    """All lengths, in rotation."""
    return asyncio.run(_cost(options.context_lengths, options.rounds))


async def _cost(lengths: Sequence[int], rounds: int) -> list[Row]:
    async with everthread.open(f"sqlite:///{tempfile.mkdtemp(prefix='bench-')}/et.db") as et:
        kept: dict[tuple[str, int], Conversation] = {}
        for length in lengths:
            kept["not compacted", length] = await filled(et, f"plain-{length}", length)
            kept["compacted", length] = await filled(et, f"compacted-{length}", length)
            await kept["compacted", length].compact()
        await et.search("anything")  # indexed now, not while something is measured
        spent: dict[tuple[str, int], list[float]] = {key: [] for key in kept}
        for _ in range(rounds + 1):
            for key, conversation in kept.items():
                began = time.process_time()
                await conversation.context(system="Be brief.")
                spent[key].append(1e3 * (time.process_time() - began))
        return [await _row(key, conversation, spent, min(lengths)) for key, conversation in kept.items()]


async def _row(
    key: tuple[str, int], conversation: Conversation, spent: dict[tuple[str, int], list[float]], shortest: int
) -> Row:
    how, length = key
    own, base = spent[key][1:], spent[how, shortest][1:]  # the first call warms up
    return {
        "system": how,
        "messages": length,
        "compactions": len([one async for one in conversation.compactions()]),
        "least CPU ms": min(own),
        "median CPU ms": statistics.median(own),
        "times the shortest": min(own) / min(base),
        "by median": statistics.median(own) / statistics.median(base),
        **await _memory(conversation),
    }


async def _memory(conversation: Conversation) -> Row:
    """The most that a call holds, and what of it is the text of the request that it gives."""
    tracemalloc.start()
    context = await conversation.context(system="Be brief.")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    texts = sum(sys.getsizeof(message.get("content")) for message in context.messages)
    return {"peak KB": peak / 1e3, "of it text KB": texts / 1e3}


# -- beside a compaction -------------------------------------------------------------------------------------------


def background(options: argparse.Namespace) -> Sequence[Row]:
    """A turn alone and a turn beside a compaction, one after the other."""
    return asyncio.run(_beside(options.rounds))


async def _beside(rounds: int) -> list[Row]:
    async with everthread.open(f"sqlite:///{tempfile.mkdtemp(prefix='bench-')}/et.db") as et:
        conversation = await filled(et, "talk", 200)
        old = await filled(et, "old", BACKGROUND_MESSAGES)
        model = ScriptedModel([Reply(text="Yes.", delay_seconds=MODEL_SECONDS)] * (2 * rounds + 2))
        await _turn(conversation, model)
        alone: list[float] = []
        beside: list[float] = []
        for number in range(rounds):
            alone.append(await _turn(conversation, model))
            being_compacted = await old.copy(id=f"old-{number}")
            compaction = asyncio.create_task(being_compacted.compact())
            await asyncio.sleep(0.02)  # until it is at work
            beside.append(await _turn(conversation, model))
            was_running = not compaction.done()
            await compaction
            assert was_running, "the compaction ended before the turn: measure with more messages"
    return [_timed("alone", alone, alone), _timed("beside a compaction", beside, alone)]


async def _turn(conversation: Conversation, model: ScriptedModel) -> float:
    began = time.perf_counter()
    context = await conversation.context(system="Be brief.")
    await model.ainvoke(to_langchain(context))
    return 1e3 * (time.perf_counter() - began)


def _timed(name: str, own: list[float], base: list[float]) -> Row:
    return {
        "system": name,
        "model ms": 1e3 * MODEL_SECONDS,
        "least ms": min(own),
        "median ms": statistics.median(own),
        "p95 ms": sorted(own)[int(0.95 * (len(own) - 1))],
        "times alone": statistics.median(own) / statistics.median(base),
    }
