"""16 callers at once, each with its own conversation: durable turns a second."""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Sequence
from typing import Any

from benchmarks.report import Row
from benchmarks.systems import Ours, named

REFERENCE = "limit-sqlite"
INDEXED = "everthread, until all is indexed"
SYSTEMS = (REFERENCE, "limit-sqlite-group", "agents-sqlite")


def run(options: argparse.Namespace) -> Sequence[Row]:
    """Bursts in rotation; the reference is 16 connections that each commit for themselves."""
    from perf.callers import Callers  # noqa: PLC0415 - importable only with the harness

    ours = Ours(tempfile.mkdtemp(prefix="bench-"))
    ours.open()
    found: dict[str, Any] = {"everthread": ours} | {name: named(name) for name in SYSTEMS}
    systems = {name: system for name, system in found.items() if system is not None}
    callers = {name: Callers(system, 16) for name, system in systems.items()}
    rates: dict[str, list[float]] = {name: [] for name in (*systems, INDEXED)}
    for _ in range(max(options.rounds // 4, 5)):
        for name, crowd in callers.items():
            seconds, done, errors = crowd.burst(20)
            if errors:
                raise SystemExit(f"{name}: {errors[0]}")
            rates[name].append(len(done) / seconds)
            if name == "everthread":
                began = time.perf_counter()
                ours.run_async(ours.acatch_up())
                rates[INDEXED].append(len(done) / (seconds + time.perf_counter() - began))
    for name, system in systems.items():
        callers[name].close()
        system.close()
    return [
        {
            "system": name,
            "turns/s": statistics.median(found),
            "most turns/s": max(found),
            "times 16 connections": statistics.median(
                own / other for own, other in zip(found, rates[REFERENCE], strict=True)
            ),
        }
        for name, found in rates.items()
    ]
