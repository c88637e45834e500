"""What recall takes: a question in a long conversation and among many, making vectors, and appends beside it. SQLite.

    python -m benchmarks recall [--recall-shapes 1x10000,1000x1000] [--out FILE.json]

`recall_latency`: a recall in one of so many conversations of so many messages, by words alone and with each embedder
whose weights are here; 95 of 100 take no longer than p95. `recall_indexing`: messages a second that get their vectors.
`recall_appends`: what an append takes while vectors are made in the background, by one without an embedder, in turns of
some seconds, one append right after the other.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import everthread
from benchmarks.embedders import here
from benchmarks.report import Row
from everthread import Conversation, Everthread
from everthread.core.nouns import Ref
from everthread.settings import Settings
from everthread.text import related_words

SHAPES = "1x10000,1000x1000"
STATIC, MODEL = "wordllama", "minilm"
_MOST_FOR_MODEL = 20_000
"""So many messages at most are embedded by a model, which takes some ten milliseconds for each."""
_QUESTIONS = 100
_BATCH = 500
_TURN_SECONDS = 3.0
"""Long enough that vectors are made several times meanwhile."""
_WORDS = random.Random(11).sample(
    [line.split("\t")[0] for line in Path(related_words.__file__).with_name("english.tsv").read_text().splitlines()],
    2_197,
)
"""Words that have related ones, which are looked for as well."""
_OFTEN = [1 / (rank + 5) for rank in range(len(_WORDS))]
"""How often each is said: few words very often, most seldom, as in any language."""
_ENGLISH = "we moved the meeting with the new client to friday morning as the hotel had no room left for us".split()


# -- a question --------------------------------------------------------------------------------------------------


def latency(options: argparse.Namespace) -> Sequence[Row]:
    """A recall, in every shape."""
    shapes = [tuple(map(int, one.split("x"))) for one in options.recall_shapes.split(",")]
    return [
        asyncio.run(_latency(many, long, embedder))
        for many, long in shapes
        for embedder in (None, *_here())
        if embedder != MODEL or many * long <= _MOST_FOR_MODEL
    ]


def _here() -> list[str]:
    """The embedders whose weights are on this machine."""
    return [name for name in (STATIC, MODEL) if here(name)]


async def _latency(conversations: int, messages: int, embedder: str | None) -> Row:
    chance = random.Random(7)
    with tempfile.TemporaryDirectory(prefix="everthread-recall-") as folder:
        async with _opened(folder, embedder) as et:
            talks = [await _filled(et, chance, messages) for _ in range(conversations)]
            for conv in talks if embedder else ():
                await et.index_ready(conv)
            await talks[0].recall("warm up")
            taken = sorted([await _asked(chance.choice(talks), chance) for _ in range(_QUESTIONS)])
    cpus = sorted(cpu for _, cpu in taken)
    return {
        "system": f"everthread, {embedder or 'words'}",
        "conversations": conversations,
        "messages": messages,
        "p50 ms": taken[_QUESTIONS // 2][0],
        "p95 ms": taken[int(0.95 * _QUESTIONS)][0],
        "CPU p50 ms": cpus[_QUESTIONS // 2],
        "CPU p95 ms": cpus[int(0.95 * _QUESTIONS)],
    }


def _opened(folder: str, embedder: str | None, *, worker: bool = False) -> Everthread:
    url = f"sqlite:///{folder}/{embedder or 'words'}.db"
    return everthread.open(url, settings=Settings.load(), embedder=embedder, worker=worker)


async def _filled(et: Everthread, chance: random.Random, messages: int) -> Conversation:
    conv = await et.conversations.create()
    for at in range(0, messages, _BATCH):
        await conv.append([_said(chance) for _ in range(min(_BATCH, messages - at))])
    return conv


async def _asked(conv: Conversation, chance: random.Random) -> tuple[float, float]:
    """Milliseconds on the clock and of CPU that one question takes."""
    question = "what about " + " ".join(chance.choices(_WORDS, _OFTEN, k=5))
    wall, cpu = time.perf_counter(), time.process_time()
    await conv.recall(question)
    return 1e3 * (time.perf_counter() - wall), 1e3 * (time.process_time() - cpu)


def _said(chance: random.Random) -> dict[str, Any]:
    text = " ".join(chance.choices(_WORDS, _OFTEN, k=chance.randrange(8, 60)))
    at = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=chance.randrange(500_000))
    return {"role": chance.choice(["user", "assistant"]), "content": text, "created_at": at.isoformat()}


# -- vectors -----------------------------------------------------------------------------------------------------


def indexing(options: argparse.Namespace) -> Sequence[Row]:
    """Messages a second that get their vectors."""
    cases = {STATIC: ((40, 10_000),), MODEL: ((60, 300), (150, 150))}
    return [asyncio.run(_indexed(name, tokens, many)) for name in _here() for tokens, many in cases[name]]


async def _indexed(embedder: str, tokens: int, messages: int) -> Row:
    chance = random.Random(tokens)
    texts = [" ".join(chance.choices(_ENGLISH, k=tokens - 2)) for _ in range(messages)]
    with tempfile.TemporaryDirectory(prefix="everthread-recall-") as folder:
        async with _opened(folder, embedder) as et:
            conv = await et.conversations.create()
            await conv.append([{"role": "user", "content": "warm up"}])
            await et.index_ready(conv)
            for at in range(0, messages, _BATCH):
                await conv.append([{"role": "user", "content": text} for text in texts[at : at + _BATCH]])
            wall, cpu = time.perf_counter(), time.process_time()
            await et.index_ready(conv)
            wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return {
        "system": embedder,
        "tokens": tokens,
        "messages": messages,
        "a second": messages / wall,
        "a second of CPU": messages / cpu,
    }


# -- appends -----------------------------------------------------------------------------------------------------


def appends(options: argparse.Namespace) -> Sequence[Row]:
    """Appends while vectors are made beside those without an embedder."""
    return asyncio.run(_appends(STATIC, options.rounds)) if STATIC in _here() else []


async def _appends(embedder: str, rounds: int) -> list[Row]:
    """In turns, each to its end: what one has left to do must not slow the other."""
    chance = random.Random(3)
    taken: dict[str | None, list[float]] = {None: [], embedder: []}
    made = 0
    with tempfile.TemporaryDirectory(prefix="everthread-recall-") as folder:
        async with _opened(folder, None, worker=True) as off, _opened(folder, embedder, worker=True) as on:
            opened = {None: off, embedder: on}
            for et in opened.values():  # a compaction beside them would be in the way of both
                await et.compaction_config.set({"enabled": False})
            talks = {name: await et.conversations.create() for name, et in opened.items()}
            for _ in range(max(1, rounds // 3)):
                for name, conv in talks.items():
                    before = await _vectors(opened[name], conv)
                    taken[name] += await _appended_for(_TURN_SECONDS, conv, chance)
                    made += await _vectors(opened[name], conv) - before
                    await opened[name].index_ready(conv)
    medians = {name: statistics.median(times) for name, times in taken.items()}
    means = {name: statistics.mean(times) for name, times in taken.items()}
    return [
        {
            "system": "no embedder" if name is None else f"{name} in the background",
            "appends": len(times),
            "vectors made meanwhile": made if name else 0,
            "median ms": medians[name],
            "mean ms": means[name],
            "median by that without": medians[name] / medians[None],
            "mean by that without": means[name] / means[None],
        }
        for name, times in taken.items()
    ]


async def _vectors(et: Everthread, conv: Conversation) -> int:
    return sum(one.parts for one in (await et.vectors.indexed(Ref(conv.owner, conv.id))).values())


async def _appended_for(seconds: float, conv: Conversation, chance: random.Random) -> list[float]:
    end = time.perf_counter() + seconds
    taken: list[float] = []
    while time.perf_counter() < end:
        taken.append(await _appended(conv, chance))
    return taken


async def _appended(conv: Conversation, chance: random.Random) -> float:
    """Milliseconds that the append of a question with its answer takes."""
    pair = [_said(chance), _said(chance)]
    began = time.perf_counter()
    await conv.append(pair)
    return 1e3 * (time.perf_counter() - began)
