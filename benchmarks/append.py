"""One durable turn (5 messages, about 2 KB) against the length of its conversation, and where its CPU goes."""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.report import Row
from benchmarks.systems import Ours, Turn, named
from everthread.context.tokens import count_tokens
from everthread.core import payloads
from everthread.history import ingest
from everthread.text.secrets import find_secrets
from everthread.text.words import index_text

REFERENCE = "limit-sqlite"
PEERS = ("agents-sqlite", "langgraph-sqlite")
_TURNS = 80
"""Turns in one round: long enough for every part, the batched index included, to take its share."""
_IO = Path("/proc/self/io")


def run(options: argparse.Namespace) -> Sequence[Row]:
    """Every system at every length, in rotation; CPU of the whole process per turn, and what it writes (on Linux)."""
    return [row for length in options.lengths for row in _at_length(length, options.rounds)]


def _at_length(length: int, rounds: int) -> list[Row]:
    from perf.data import Gen  # noqa: PLC0415 - importable only with the harness

    systems = {"everthread": _opened(), REFERENCE: named(REFERENCE)}
    systems |= {name: named(name) for name in PEERS if length <= 1_000}
    systems = {name: system for name, system in systems.items() if system is not None}
    for system in systems.values():
        system.seed("t", Gen(3).turns(length))
    spent: dict[str, list[float]] = {name: [] for name in systems}
    written: dict[str, list[float]] = {name: [] for name in systems}
    made = Gen(8)
    for warm_up in [True] * 3 + [False] * rounds:
        for name, system in systems.items():
            slow = name.startswith("langgraph")
            turns = [system.prepare(made.turn()) for _ in range(2 if slow else _TURNS)]
            before = _written_bytes()
            cpu = _cpu_ms(system, turns)
            if not warm_up:
                spent[name].append(cpu)
                written[name].append((_written_bytes() - before) / len(turns))
    for system in systems.values():
        system.close()
    return [{**_row(name, length, spent), "bytes written": statistics.mean(written[name])} for name in systems]


def _written_bytes() -> int:
    """What this process has written so far, to whichever file: it does not depend on who else is at work."""
    if not _IO.exists():
        return 0
    return next(int(line.split()[1]) for line in _IO.read_text().splitlines() if line.startswith("wchar"))


def _opened() -> Ours:
    ours = Ours(tempfile.mkdtemp(prefix="bench-"))
    ours.open()
    return ours


def _cpu_ms(system: Any, turns: Sequence[Any]) -> float:
    """CPU of the whole process; an async system is driven inside its loop, as its users do."""
    began = time.process_time()
    if system.concurrency == "async":
        system.run_async(_append_all(system, turns))
    else:
        for turn in turns:
            system.append("t", turn)
    return (time.process_time() - began) / len(turns) * 1e3


async def _append_all(system: Any, turns: Sequence[Any]) -> None:
    for turn in turns:
        await system.aappend("t", turn)
    if isinstance(system, Ours):
        await system.acatch_up()  # everything included: the index too


def _row(name: str, length: int, spent: dict[str, list[float]]) -> Row:
    ratios = [own / bare for own, bare in zip(spent[name], spent[REFERENCE], strict=True)]
    return {
        "system": name,
        "messages before": length,
        "cpu ms": statistics.median(spent[name]),
        "least cpu ms": min(spent[name]),
        "times the bare insert": statistics.median(ratios),
        "by least": min(spent[name]) / min(spent[REFERENCE]),
    }


def parts(options: argparse.Namespace) -> Sequence[Row]:
    """Which part of a turn's CPU goes where; what is left is SQL, the hop to the writer and Python between."""
    from perf.data import Gen  # noqa: PLC0415

    turns: list[Turn] = [Gen(5).turn() for _ in range(400)]
    messages = [message for turn in turns for message in turn]
    texts = [payloads.searchable(message) for message in messages]
    prepared = [ingest.prepare_all(turn) for turn in turns]
    steps: dict[str, Callable[[], object]] = {
        "JSON, checked by reading it back": lambda: [ingest.encode(message, field="m") for message in messages],
        "tokens counted (o200k)": lambda: [count_tokens(text) for text in texts],
        "secrets looked for": lambda: [find_secrets(text) for text in texts],
        "all before the write": lambda: [ingest.prepare_all(turn) for turn in turns],
        "words for the index (stemming)": lambda: [index_text(text, ("o1",)) for text in texts],
    }
    rows: list[Row] = [
        {"system": name, "µs per turn": _least(step) / len(prepared) * 1e6} for name, step in steps.items()
    ]
    ours = _opened()
    ours.seed("t", Gen(3).turns(1_000))
    made = Gen(50)
    whole = min(_cpu_ms(ours, [made.turn() for _ in range(_TURNS)]) for _ in range(options.rounds))
    ours.close()
    return [*rows, {"system": "the whole turn", "µs per turn": whole * 1e3}]


def _least(step: Callable[[], object]) -> float:
    spent = []
    for _ in range(5):
        began = time.process_time()
        step()
        spent.append(time.process_time() - began)
    return min(spent)
