"""What a user gets from `everthread.open("sqlite:///x.db")` and nothing else: the CPU of the whole process until all
background work is done, beside plain INSERTs of the same messages in the same run.

`front_door`: four turns, archived only (append) and in use (a context for each turn), in conversations of several
lengths. `front_door_lag`: how late the event loop is, and how long appends and contexts take, while the worker is at
full work on a long history.
"""

from __future__ import annotations

import argparse
import asyncio
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import orjson

import everthread
from benchmarks.report import Row
from benchmarks.seeded_talk import Message, Talk
from everthread import Conversation, Everthread

Turn = list[Message]

SHAPES: dict[str, Callable[[Talk], Turn]] = {
    "2 messages of 200 B": lambda talk: talk.turn(2, 200),
    "5 of 0.4 KB": lambda talk: talk.turn(5, 400),
    "5 of 2 KB": lambda talk: talk.turn(5, 2_000),
    "with a 100 KB result": lambda talk: talk.turn(5, 400, result=100_000),
}
_TURNS = 24
"""Turns in one round: several compactions are among them, so that each turn takes its share."""
_FEW_TURNS = 8
"""Of those with a large result."""
_SEED_BATCH = 500
_LOOK_SECONDS = 0.25
"""How often it is looked whether work is left: to look is itself CPU of the process that is measured."""
_LAG_TICK_SECONDS = 0.005
_SYSTEM = "You are a careful assistant."


class PlainSqlite:
    """What a program without us would do: one table, one durable transaction for each turn."""

    def __init__(self) -> None:
        self._connection = sqlite3.connect(new_file())
        self._connection.execute("PRAGMA journal_mode=WAL")
        self._connection.execute("PRAGMA synchronous=FULL")
        self._connection.execute(
            "CREATE TABLE messages (conversation TEXT, seq INTEGER, role TEXT, body BLOB, at REAL)"
        )
        self._connection.execute("CREATE INDEX by_conversation ON messages (conversation, seq)")
        self._seq = 0

    def append(self, turn: Turn) -> None:
        rows = [
            ("t", self._seq + at, message["role"], orjson.dumps(message), time.time())
            for at, message in enumerate(turn, 1)
        ]
        with self._connection:
            self._connection.executemany("INSERT INTO messages VALUES (?, ?, ?, ?, ?)", rows)
        self._seq += len(turn)


def run(options: argparse.Namespace) -> Sequence[Row]:
    """Every turn at every length, archived only and in use."""
    return [
        asyncio.run(_measured(shape, length, options, in_use=in_use))
        for length in options.front_lengths
        for shape in [*SHAPES][: options.front_shapes]
        for in_use in (False, True)
    ]


def _embedder(options: argparse.Namespace) -> dict[str, Any]:
    """The default, which is what weights there are, or none as where there are none."""
    return {"embedder": None} if options.front_without_weights else {}


async def _measured(shape: str, length: int, options: argparse.Namespace, *, in_use: bool) -> Row:
    talk, bare = Talk(length), PlainSqlite()
    count = _FEW_TURNS if "100 KB" in shape else _TURNS
    in_front: list[float] = []
    behind: list[float] = []
    plain: list[float] = []
    async with everthread.open(f"sqlite:///{new_file()}", **_embedder(options)) as et:
        conversation = await _seeded(et, talk, length)
        if in_use:
            await conversation.context(system=_SYSTEM)
            await until_idle(et)
        for number in range(options.front_rounds + 1):  # the first warms up
            turns = [SHAPES[shape](talk) for _ in range(count)]
            front_ms, behind_ms = await _round(et, conversation, turns, in_use=in_use)
            plain_ms = _plain_round(bare, turns)
            if number:
                in_front.append(front_ms)
                behind.append(behind_ms)
                plain.append(plain_ms)
        embedder = None if et.embedder is None else et.embedder.name
    whole = [one + other for one, other in zip(in_front, behind, strict=True)]
    return {
        "system": f"{shape}, {'a context each' if in_use else 'archived only'}",
        "messages before": length,
        "embedder": embedder or "none",
        "plain ms": statistics.median(plain),
        "calls ms": statistics.median(in_front),
        "background ms": statistics.median(behind),
        "CPU ms": statistics.median(whole),
        "times plain": statistics.median(one / other for one, other in zip(whole, plain, strict=True)),
        "by least": min(whole) / min(plain),
    }


async def _seeded(et: Everthread, talk: Talk, length: int) -> Conversation:
    conversation = await et.conversations.create(id="t")
    messages = [message for _ in range(length // 5) for message in talk.turn(5, 400)]
    for at in range(0, len(messages), _SEED_BATCH):
        await conversation.append(messages[at : at + _SEED_BATCH])
    await until_idle(et)
    return conversation


async def _round(
    et: Everthread, conversation: Conversation, turns: Sequence[Turn], *, in_use: bool
) -> tuple[float, float]:
    """CPU ms a turn of the calls, and of what is done after them. In use, each turn waits for the background of the one
    before, as a model's answer would let it; so what it does is not counted as the calls'."""
    in_front, began = 0.0, time.process_time()
    for turn in turns:
        at = time.process_time()
        await conversation.append(turn)
        if in_use:
            await conversation.context(system=_SYSTEM, query=turn[0]["content"][:200])
        in_front += time.process_time() - at
        if in_use:
            await until_idle(et)
    await until_idle(et)
    await et.search("nothing")  # what waits for the index is indexed now
    whole = time.process_time() - began
    return in_front / len(turns) * 1e3, (whole - in_front) / len(turns) * 1e3


def _plain_round(bare: PlainSqlite, turns: Sequence[Turn]) -> float:
    began = time.process_time()
    for turn in turns:
        bare.append(turn)
    return (time.process_time() - began) / len(turns) * 1e3


async def until_idle(et: Everthread) -> None:
    """Until no job waits or runs; one that gathers for a second is waited for too."""
    while await et.store.jobs.is_any_left():  # noqa: ASYNC110 - a state of the database
        await asyncio.sleep(_LOOK_SECONDS)


# -- out of the way ------------------------------------------------------------------------------------------------


def lag(options: argparse.Namespace) -> Sequence[Row]:
    """With an idle worker, then while a long history is summarised."""
    return asyncio.run(_lag(options))


async def _lag(options: argparse.Namespace) -> list[Row]:
    history, seconds = options.front_history, options.front_seconds
    talk = Talk(7)
    async with everthread.open(f"sqlite:///{new_file()}", **_embedder(options)) as et:
        live = await _seeded(et, talk, 100)
        long = await et.conversations.create(id="long")
        messages = [message for _ in range(history // 5) for message in talk.turn(5, 2_000)]
        for at in range(0, len(messages), _SEED_BATCH):
            await long.append(messages[at : at + _SEED_BATCH])
        rows = []
        for name in ("the worker idle", "the worker at full work"):
            if "full" in name:
                await long.context(system=_SYSTEM, query="Where is the invoice?")
            else:
                await until_idle(et)
            rows.append(await _lag_row(name, et, live, talk, seconds))
        return rows


async def _lag_row(name: str, et: Everthread, live: Conversation, talk: Talk, seconds: float) -> Row:
    late: list[float] = []
    busy_ms: list[float] = []
    ticking = asyncio.create_task(_tick(late, busy_ms))
    appends: list[float] = []
    contexts: list[float] = []
    cpu, began = time.process_time(), time.perf_counter()
    busy = 0
    while time.perf_counter() - began < seconds:
        turn = talk.turn(5, 400)
        appends.append(await _timed(live.append(turn)))
        contexts.append(await _timed(live.context(system=_SYSTEM, query=turn[0]["content"][:200])))
        busy += await et.store.jobs.is_any_left()
        await asyncio.sleep(0.02)
    ticking.cancel()
    took = time.perf_counter() - began
    return {
        "system": name,
        "loop late p99 ms": _p99(late),
        "at most ms": max(late),
        "loop busy p99 CPU ms": _p99(busy_ms),
        "at most CPU ms": max(busy_ms),
        "append p99 ms": _p99(appends),
        "context p99 ms": _p99(contexts),
        "cores used": (time.process_time() - cpu) / took,
        "at work %": 100 * busy / len(appends),
    }


async def _tick(late: list[float], busy_ms: list[float]) -> None:
    """How late each tick comes, and for how long the loop's thread has worked since the one before: on a machine that
    others use too, the first says how long they had it."""
    while True:
        due, worked = time.perf_counter() + _LAG_TICK_SECONDS, time.thread_time()
        await asyncio.sleep(_LAG_TICK_SECONDS)
        late.append(1e3 * (time.perf_counter() - due))
        busy_ms.append(1e3 * (time.thread_time() - worked))


async def _timed(call: Awaitable[object]) -> float:
    began = time.perf_counter()
    await call
    return 1e3 * (time.perf_counter() - began)


def _p99(samples: Sequence[float]) -> float:
    return sorted(samples)[int(0.99 * (len(samples) - 1))]


def new_file() -> str:
    return str(Path(tempfile.mkdtemp(prefix="bench-")) / "et.db")


def add_options(parser: argparse.ArgumentParser) -> None:
    """What can be chosen."""
    numbers = lambda text: [int(number) for number in text.split(",")]  # noqa: E731 - of one option
    parser.add_argument("--front-lengths", type=numbers, default=[100, 10_000], help="front_door: messages before")
    parser.add_argument("--front-rounds", type=int, default=5, help="front_door: rounds of each")
    parser.add_argument("--front-history", type=int, default=2_000, help="front_door_lag: messages to summarise")
    parser.add_argument("--front-without-weights", action="store_true", help="front_door: as if none were fetched")
    parser.add_argument("--front-shapes", type=int, default=len(SHAPES), help="front_door: the first so many turns")
    parser.add_argument("--front-calls", type=int, default=50, help="front_door_http: calls in a round")
    parser.add_argument("--front-turns", type=numbers, default=[200, 1_000], help="front_door_http: turns in between")
    parser.add_argument("--front-import", type=int, default=100_000, help="front_door_import: messages")
    parser.add_argument("--front-seconds", type=float, default=10.0, help="front_door_lag: how long each is measured")
