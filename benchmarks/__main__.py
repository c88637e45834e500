"""Run one scenario or all of them."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks import append, reading, report, search, storage, writers
from benchmarks.systems import with_harness

SCENARIOS: dict[str, Callable[[argparse.Namespace], Sequence[report.Row]]] = {
    "append": append.run,
    "parts": append.parts,
    "writers": writers.run,
    "storage": storage.run,
    "reading": reading.run,
    "search": search.run,
}


def main() -> None:
    """Parse, run, show, and write when asked to."""
    parser = argparse.ArgumentParser(prog="benchmarks", description="What it costs, beside what others cost.")
    parser.add_argument("scenario", nargs="*", choices=[*SCENARIOS, []], help="which (all when none is named)")
    parser.add_argument("--out", type=Path, help="write JSON here")
    parser.add_argument("--messages", type=int, default=200_000, help="search: how many messages")
    parser.add_argument(
        "--lengths", type=_numbers, default=[100, 1_000, 100_000], help="append: lengths, comma-separated"
    )
    parser.add_argument("--rounds", type=int, default=40, help="rounds that each system takes in turn")
    options = parser.parse_args()
    if not with_harness():
        raise SystemExit(0)
    results = {}
    for name in options.scenario or SCENARIOS:
        results[name] = SCENARIOS[name](options)
        report.show(name, results[name])
    if options.out:
        report.write(options.out, results)


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",")]


if __name__ == "__main__":
    main()
