"""What finding by meaning costs on this machine, and what it brings for Chinese.

    python -m benchmarks embedders near chinese [--out FILE.json]

`embedders`: CPU time a text by its length, of each embedder whose weights are here, the least of several; and how many
a second one thread makes. `near`: the nearest 200 among the vectors of one conversation on SQLite. `chinese`: the
questions of zh-dev asked through `conv.recall` beside words alone: the share of questions all of whose evidence is in
the first ten hits, and the share of the evidence that is.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

import everthread
from benchmarks import SHARED
from benchmarks.report import Row
from everthread import Conversation, Everthread
from everthread.adapters.embedders import embedder_named
from everthread.core.embeddings import Embedder, VectorPart, unit
from everthread.core.errors import MissingExtra
from everthread.core.nouns import Ref
from everthread.recall.embedding import SemanticIndex, catch_up
from everthread.settings import Settings
from everthread.testing import ManualClock

NAMES = ("minilm", "wordllama", "m3e")
ZH_DEV = SHARED / "data" / "recall" / "zh-dev.json"
LENGTHS = (12, 60, 150)
"""Tokens of a question, of a message, of a passage."""
ROUNDS = 7
TOP = 10

_WORDS = (
    "we moved the meeting with the new client to friday morning because the hotel in lisbon had no room left for "
    "all of us and the flight from berlin was late again so please send the report before that day"
).split()
_CHARACTERS = "我们把和新客户的会议改到周五上午因为里斯本的酒店没有足够的房间而且从柏林来的航班又晚点了所以请提前发报告"


def run(_: argparse.Namespace) -> Sequence[Row]:
    """CPU time a text."""
    return [row for name in NAMES if (embedder := here(name)) for row in asyncio.run(_speed(name, embedder))]


async def _speed(name: str, embedder: Embedder) -> list[Row]:
    began = time.perf_counter()
    await embedder.query("load")
    loaded = time.perf_counter() - began
    return [await _timed(name, embedder, tokens, loaded) for tokens in LENGTHS]


async def _timed(name: str, embedder: Embedder, tokens: int, loaded: float) -> Row:
    dice = random.Random(tokens)
    source: Sequence[str] = _CHARACTERS if name == "m3e" else _WORDS
    joint = "" if name == "m3e" else " "
    texts = [joint.join(dice.choices(source, k=tokens - 2)) for _ in range(20)]
    cpu, wall = await _least(lambda: embedder.passages(texts))
    return {
        "system": name,
        "tokens": tokens,
        "cpu_ms": 1000 * cpu / len(texts),
        "a_second_of_cpu": len(texts) / cpu,
        "a_second_of_wall": len(texts) / wall,
        "load_s": loaded,
        "dimension": embedder.dimension,
    }


async def _least(work: Callable[[], Awaitable[Any]]) -> tuple[float, float]:
    """The least CPU and the least wall time of several rounds."""
    times = []
    for _ in range(ROUNDS):
        cpu, wall = time.process_time(), time.perf_counter()
        await work()
        times.append((time.process_time() - cpu, time.perf_counter() - wall))
    return min(cpu for cpu, _ in times), min(wall for _, wall in times)


def near(_: argparse.Namespace) -> Sequence[Row]:
    """The nearest of a conversation's vectors."""
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(_near(f"sqlite:///{folder}/et.db"))


async def _near(url: str) -> list[Row]:
    rows: list[Row] = []
    async with everthread.open(url, worker=False, embedder=None) as et:
        for count in (1_000, 10_000, 50_000):
            find = partial(et.vectors.near, *await _filled(et, count), "random/384", _random(random.Random(count)), 200)
            cpu, wall = await _least(find)
            rows.append({"system": "sqlite", "vectors": count, "cpu_ms": 1000 * cpu, "wall_ms": 1000 * wall})
    return rows


async def _filled(et: Everthread, count: int) -> Ref:
    conversation = await et.conversations.create()
    ref = Ref(conversation.owner, conversation.id)
    dice = random.Random(count)
    some = [_random(dice) for _ in range(500)]
    await et.vectors.put(ref, "random/384", [VectorPart(seq, 0, some[seq % len(some)]) for seq in range(1, count + 1)])
    return ref


def _random(dice: random.Random) -> bytes:
    return unit([dice.gauss(0, 1) for _ in range(384)])


def chinese(_: argparse.Namespace) -> Sequence[Row]:
    """What each embedder brings on Chinese conversations, beside words alone."""
    if not ZH_DEV.is_file():
        print(f"not there, skipped: {ZH_DEV.name}")
        return []
    talks = json.loads(ZH_DEV.read_text(encoding="utf-8"))
    chosen = {"words alone": None, **{name: found for name in NAMES if (found := here(name))}}
    return [asyncio.run(_asked(name, embedder, talks)) for name, embedder in chosen.items()]


async def _asked(name: str, embedder: Embedder | None, talks: Sequence[dict[str, Any]]) -> Row:
    scores: list[tuple[bool, float]] = []
    for talk in talks:
        clock = ManualClock()
        async with everthread.open("memory://", worker=False, embedder=embedder, clock=clock) as et:
            conversation = await _told(et, clock, talk)
            if embedder is not None:
                ref = Ref(conversation.owner, conversation.id)
                await catch_up(et.store, SemanticIndex(embedder=embedder, vectors=et.vectors), ref)
            scores += [await _found(conversation, question) for question in talk["questions"]]
    return {
        "system": name,
        "questions": len(scores),
        "all_at_10": 100 * sum(whole for whole, _ in scores) / len(scores),
        "frac_at_10": 100 * sum(share for _, share in scores) / len(scores),
    }


async def _told(et: Everthread, clock: ManualClock, talk: dict[str, Any]) -> Conversation:
    conversation = await et.conversations.create()
    for message in talk["messages"]:
        clock.now = _moment(message["time"])
        said = {"role": message["role"], "content": message["text"], "id": message["id"]}
        if message["speaker"] != message["role"]:
            said["name"] = message["speaker"]
        await conversation.append([said])
    return conversation


async def _found(conversation: Conversation, question: dict[str, Any]) -> tuple[bool, float]:
    asked_at = question.get("asked_at")
    when = None if asked_at is None else _moment(asked_at)
    hits = await conversation.recall(question["text"], limit=TOP, max_tokens=100_000, asked_at=when)
    got = {id for hit in hits for id in hit.ids}
    evidence = set(question["evidence"])
    return evidence <= got, len(evidence & got) / len(evidence)


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def here(name: str) -> Embedder | None:
    """An embedder by its name, if its weights are on this machine."""
    embedder = embedder_named(name, lambda: Settings.load().models_dir)
    require = getattr(embedder, "require", lambda: None)
    try:
        require()
    except MissingExtra as problem:
        print(f"skipped: {problem}")
        return None
    return embedder
