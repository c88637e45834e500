"""How many requests a provider would refuse: random tool histories, made into a request in different ways.

    python -m benchmarks invalid_requests [--histories 10000] [--turns 10] [--seed 1] [--out FILE.json]

The histories: nothing is wrong with `valid` ones; in `interrupted` one call in fifty has no result, as a killed run
leaves it; in `tangled` every fifth, and results come late, twice or of nobody, and ids are reused; `storm` adds all
else that goes wrong, in three dialects (only ours reads those). Each way is judged by OpenAI's rules, ours by
Anthropic's as well. "refused" counts requests with a fault and calls that raised.

The two papers' functions are written here from their description: cleaning and truncation (context, section "message
history"; once as written, once with its two crashes mended) and truncation at the hard limit (compaction, 2.3.2).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from random import Random
from typing import Any

from langchain_core.messages import convert_to_messages, convert_to_openai_messages, trim_messages

from benchmarks import report
from everthread.context import Budget, Provider, cut_window, find_violations, fit, repair, units
from tests.context.random_histories import (
    DIALECTS,
    INTERRUPTIONS_ONLY,
    STORM,
    TANGLED,
    Dialect,
    Message,
    Weather,
    random_history,
)

Way = Callable[[list[Message]], Sequence[Any]]

KEEP_MESSAGES = 40
KEEP_AT_HARD_LIMIT = 10
BUDGET = Budget(window=8_000, output_reserve=1_000)
WEATHERS = {
    "valid": replace(INTERRUPTIONS_ONLY, interrupted=0),
    "interrupted": replace(INTERRUPTIONS_ONLY, interrupted=0.02),
    "tangled": TANGLED,
}
OPENAI_ONLY: tuple[Dialect, ...] = ("openai",)


# --- the ways --------------------------------------------------------------------------------


def ours(history: list[Message]) -> Sequence[Any]:
    """Repair, cut to the window, fit into the budget."""
    window = cut_window(repair(history), KEEP_MESSAGES)
    return fit(units(window.messages), BUDGET).messages


def trimmed(history: list[Message]) -> Sequence[Any]:
    """LangChain's `trim_messages`, with the options its documentation recommends for chat histories."""
    kept = trim_messages(
        convert_to_messages(history),
        max_tokens=KEEP_MESSAGES,
        token_counter=len,
        strategy="last",
        start_on="human",
        include_system=True,
    )
    converted = convert_to_openai_messages(kept)
    return converted if isinstance(converted, list) else [converted]


def context_paper(history: list[Message]) -> Sequence[Any]:
    """The context paper: drop callers with an unanswered call, then keep the newest with the callers of their
    results, and every system message."""
    clean = _cleaned(history)
    caller = {call_id: at for at, message in enumerate(clean) for call_id in _call_ids(message)}
    kept = {at for at, message in enumerate(clean) if message["role"] == "system"}
    for at in range(len(clean) - KEEP_MESSAGES, len(clean)):
        kept.add(at)
        if clean[at]["role"] == "tool":
            kept.add(caller[clean[at]["tool_call_id"]])
    return [clean[at] for at in sorted(kept)]


def context_paper_mended(history: list[Message]) -> Sequence[Any]:
    """The same, but a short history is returned as it is and a result without a caller is no error."""
    clean = _cleaned(history)
    if len(clean) <= KEEP_MESSAGES:
        return clean
    known = {call_id for message in clean for call_id in _call_ids(message)}
    return context_paper([m for m in clean if m["role"] != "tool" or m["tool_call_id"] in known])


def _cleaned(history: list[Message]) -> list[Message]:
    answered = {message["tool_call_id"] for message in history if message["role"] == "tool"}
    return [message for message in history if all(call_id in answered for call_id in _call_ids(message))]


def first_and_newest(history: list[Message]) -> Sequence[Any]:
    """The compaction paper at the hard limit: the first message and the newest ten."""
    return history if len(history) <= 2 else [history[0], *history[-KEEP_AT_HARD_LIMIT:]]


def _call_ids(message: Message) -> list[str]:
    return [call["id"] for call in message.get("tool_calls") or []]


OTHERS: dict[str, Way] = {
    "trim_messages": trimmed,
    "context paper": context_paper,
    "context paper, mended": context_paper_mended,
    "compaction paper": first_and_newest,
}

# --- the count -------------------------------------------------------------------------------


def histories(options: argparse.Namespace, weather: Weather, dialects: tuple[Dialect, ...]) -> Iterator[list[Message]]:
    for number in range(options.histories):
        rng = Random(f"{options.seed} {number}")
        yield random_history(rng, turns=options.turns, weather=weather, dialects=dialects)


def counted(
    system: str, weather: str, way: Way, given: Sequence[list[Message]], providers: tuple[Provider, ...]
) -> report.Row:
    """One row: how many of the histories this way makes into a request that is refused."""
    refused = raised = 0
    seconds = 0.0
    for history in given:
        began = time.process_time()
        try:
            request = way(history)
        except (IndexError, KeyError, ValueError, TypeError):
            raised += 1
            continue
        finally:
            seconds += time.process_time() - began
        refused += any(find_violations(request, provider) for provider in providers)
    return {
        "system": system,
        "histories": weather,
        "refused %": 100 * (refused + raised) / len(given),
        "invalid": refused,
        "raised": raised,
        "ms each": 1_000 * seconds / len(given),
    }


def run(options: argparse.Namespace) -> list[report.Row]:
    """All ways over the same histories."""
    rows: list[report.Row] = []
    for name, weather in WEATHERS.items():
        given = list(histories(options, weather, OPENAI_ONLY))
        rows.append(counted("everthread", name, ours, given, ("openai", "anthropic")))
        rows += [counted(system, name, way, given, ("openai",)) for system, way in OTHERS.items()]
    stormy = list(histories(options, STORM, DIALECTS))
    rows.append(counted("everthread", "storm", ours, stormy, ("openai", "anthropic")))
    if bad := [row for row in rows if row["system"] == "everthread" and row["refused %"]]:
        raise SystemExit(f"everthread made a request that a provider would refuse: {bad}")
    return rows


def add_options(parser: argparse.ArgumentParser) -> None:
    """What can be chosen."""
    parser.add_argument("--histories", type=int, default=10_000, help="invalid_requests: how many of each kind")
    parser.add_argument("--turns", type=int, default=10, help="invalid_requests: the most user turns in one")
    parser.add_argument("--seed", type=int, default=1, help="invalid_requests: for other histories")
