"""The newest page of a long conversation, and all of it with little memory."""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
import tracemalloc
from collections.abc import Sequence
from typing import Any

from benchmarks.report import Row
from benchmarks.systems import Ours, named

REFERENCE = "limit-sqlite"


def run(options: argparse.Namespace) -> Sequence[Row]:
    """The newest 50 of the longest length, in rotation with the plain SELECT; then everything, streamed."""
    from perf.data import Gen  # noqa: PLC0415 - importable only with the harness

    length = max(options.lengths)
    ours = Ours(tempfile.mkdtemp(prefix="bench-"))
    ours.open()
    systems: dict[str, Any] = {"everthread": ours, REFERENCE: named(REFERENCE), "agents-sqlite": named("agents-sqlite")}
    systems = {name: system for name, system in systems.items() if system is not None}
    for system in systems.values():
        system.seed("t", Gen(3).turns(length))
    spent: dict[str, list[float]] = {name: [] for name in systems}
    for _ in range(options.rounds * 5):
        for name, system in systems.items():
            began = time.perf_counter()
            system.load_page("t", 50)
            spent[name].append((time.perf_counter() - began) * 1e3)
    seconds, extra = ours.run_async(_everything(ours))
    for system in systems.values():
        system.close()
    rows: list[Row] = [_row(name, length, spent) for name in systems]
    return [{**rows[0], "all, s": seconds, "all, extra MB": extra}, *rows[1:]]


def _row(name: str, length: int, spent: dict[str, list[float]]) -> Row:
    ratios = [own / bare for own, bare in zip(spent[name], spent[REFERENCE], strict=True)]
    return {
        "system": name,
        "messages": length,
        "newest 50, ms": statistics.median(spent[name]),
        "least ms": min(spent[name]),
        "times the plain SELECT": statistics.median(ratios),
        "by least": min(spent[name]) / min(spent[REFERENCE]),
    }


async def _everything(ours: Ours) -> tuple[float, float]:
    """Seconds for all messages, and in a second pass the most memory that was held at once."""
    conversation = await ours.conversation("t")
    began = time.perf_counter()
    async for message in conversation.messages():
        assert message.payload
    seconds = time.perf_counter() - began
    tracemalloc.start()
    async for message in conversation.messages():
        assert message.payload
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return seconds, peak / 1e6
