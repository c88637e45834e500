"""Run one scenario or all of them."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks import (
    answers_in_view,
    append,
    changed_minds,
    checkpoints,
    context_cost,
    embedders,
    facts_kept,
    front_door,
    front_door_served,
    invalid_requests,
    memory_sentences,
    reading,
    recall_cost,
    report,
    search,
    storage,
    summary_truth,
    tokens,
    turns,
    writers,
)
from benchmarks.systems import with_harness

Scenario = Callable[[argparse.Namespace], Sequence[report.Row]]

LOG: dict[str, Scenario] = {
    "append": append.run,
    "parts": append.parts,
    "writers": writers.run,
    "storage": storage.run,
    "reading": reading.run,
    "search": search.run,
}
"""Beside the bare databases and the peers, which need the harness."""
CONTEXT: dict[str, Scenario] = {
    "tokens": tokens.run,
    "context_cost": context_cost.run,
    "background": context_cost.background,
    "facts_kept": facts_kept.run,
    "invalid_requests": invalid_requests.run,
    "summary_truth": summary_truth.run,
    "changed_minds": changed_minds.run,
    "answers_in_view": answers_in_view.run,
    "memory_sentences": memory_sentences.run,
}
LANGGRAPH: dict[str, Scenario] = {"checkpoints": checkpoints.run, "checkpoints_alone": checkpoints.alone}
TURN: dict[str, Scenario] = {
    "turns": turns.run,
    "streaming": turns.streaming,
    "savings": turns.savings,
    "turn_storage": storage.turns,
}
MEANING: dict[str, Scenario] = {"embedders": embedders.run, "near": embedders.near, "chinese": embedders.chinese}
RECALL: dict[str, Scenario] = {
    "recall_latency": recall_cost.latency,
    "recall_indexing": recall_cost.indexing,
    "recall_appends": recall_cost.appends,
}
FRONT: dict[str, Scenario] = {
    "front_door": front_door.run,
    "front_door_lag": front_door.lag,
    "front_door_http": front_door_served.over_http,
    "front_door_import": front_door_served.large_import,
}
SCENARIOS = {**LOG, **CONTEXT, **LANGGRAPH, **TURN, **MEANING, **RECALL, **FRONT}
GROUPS = {
    "log": [*LOG],
    "context": [*CONTEXT],
    "langgraph": [*LANGGRAPH],
    "turn": [*TURN],
    "meaning": [*MEANING],
    "recall": [*RECALL],
    "front": [*FRONT],
}


def main() -> None:
    """Parse, run, show, and write when asked to."""
    parser = argparse.ArgumentParser(prog="benchmarks", description="What it costs, beside what others cost.")
    parser.add_argument(
        "scenario", nargs="*", choices=[*SCENARIOS, *GROUPS, []], help="which, or a group (all when none is named)"
    )
    parser.add_argument("--out", type=Path, help="write JSON here")
    parser.add_argument("--messages", type=int, default=200_000, help="search: how many messages")
    parser.add_argument("--store", choices=search.STORES, default="sqlite", help="search: in which database")
    parser.add_argument(
        "--lengths", type=_numbers, default=[100, 1_000, 100_000], help="append: lengths, comma-separated"
    )
    parser.add_argument("--conversations", type=int, default=1_000, help="storage: how many, of a hundred messages")
    parser.add_argument(
        "--turns-before", type=_numbers, default=[100, 1_000], help="turn_storage: turns before those measured"
    )
    parser.add_argument("--turns-measured", type=int, default=200, help="turn_storage: how many are measured")
    parser.add_argument("--rounds", type=int, default=40, help="rounds that each system takes in turn")
    parser.add_argument(
        "--context-lengths", type=_numbers, default=[200, 2_000, 20_000, 100_000], help="context_cost: lengths"
    )
    parser.add_argument("--turn-lengths", type=_numbers, default=[100, 10_000], help="turns: lengths")
    parser.add_argument("--talks", type=int, help="tokens: how many conversations of each set (all)")
    parser.add_argument("--price-in", type=float, default=2.5, help="tokens: of a million tokens sent")
    parser.add_argument("--price-cached", type=float, default=0.25, help="tokens: of a million that a cache has")
    parser.add_argument("--price-out", type=float, default=10.0, help="tokens: of a million tokens answered")
    parser.add_argument(
        "--recall-shapes", default=recall_cost.SHAPES, help="recall_latency: conversations x messages, comma-separated"
    )
    facts_kept.add_options(parser)
    front_door.add_options(parser)
    invalid_requests.add_options(parser)
    summary_truth.add_options(parser)
    options = parser.parse_args()
    results = {}
    for name in _chosen(options.scenario):
        results[name] = SCENARIOS[name](options)
        report.show(name, results[name])
    if options.out:
        report.write(options.out, results)


def _chosen(named: Sequence[str]) -> list[str]:
    """The scenarios to run, in order; those that need the harness only where it is."""
    wanted = [name for given in named or GROUPS for name in GROUPS.get(given, [given])]
    if any(name in LOG for name in wanted) and not with_harness():
        return [name for name in wanted if name not in LOG]
    return wanted


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",")]


if __name__ == "__main__":
    main()
