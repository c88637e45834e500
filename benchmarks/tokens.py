"""Tokens and money per turn on recorded conversations, beside the newest 40 messages and the full history.

Each conversation is gone through request by request (`everthread.replay`), once for each policy. In LoCoMo, where
two people talk, the one who begins is taken for the user. "cached %" is the share of all that was sent which stood,
message by message, at the beginning of the request before, so that a prompt cache has it; it is paid at the cached
price ("prices": of a million tokens sent / cached / answered). "kept %" is the share of all facts of the
conversation that its last request still says. "too long" are requests over the limit, which a model would have refused;
they are counted, and paid, all the same.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import reduce
from itertools import islice
from pathlib import Path
from typing import Any

import everthread
from benchmarks.facts_kept import DATA, Talk, beam, locomo
from benchmarks.report import Row
from everthread import Budget, CompactionPolicy
from everthread.core.clock import system_clock
from everthread.core.nouns import Ref
from everthread.replay import Figures, Prices, Trial, fixed_window, full_history, read_transcript

SETS: dict[str, tuple[str, Callable[[Path], Iterator[Talk]]]] = {
    "LoCoMo": ("locomo/dev.json", locomo),
    "BEAM": ("beam", beam),
}
POLICIES = {
    "everthread": CompactionPolicy(),
    "everthread, short summaries": CompactionPolicy(summary_max_tokens=300, max_message_history=30, keep_recent=10),
}
WINDOWS = (128_000, 16_000)
_SUMMED = ("turns", "requests", "tokens", "cached_tokens", "answer_tokens", "over_limit", "compactions",
           "facts_total", "facts_kept")  # fmt: skip


def run(options: argparse.Namespace) -> Sequence[Row]:
    """Every way over every conversation of every set that is there."""
    prices = Prices(input=options.price_in, output=options.price_out, cached=options.price_cached)
    rows: list[Row] = []
    for name, (place, load) in SETS.items():
        if not (DATA / place).exists():
            print(f"({name} is left out: {place} is not there)")
            continue
        talks = [messages_of(talk) for talk in islice(load(DATA / place), options.talks)]
        for window in WINDOWS:
            figures = asyncio.run(_all(talks, Budget(window=window)))
            rows += [_row(name, len(talks), window, one, prices) for one in figures]
    return rows


def messages_of(talk: Talk) -> list[dict[str, Any]]:
    """A recorded conversation as a chat between a user and an assistant."""
    first = talk.sources[0].name
    return [
        {
            "role": "assistant" if source.name != first else source.role,
            "content": source.text,
            "created_at": source.said_at and source.said_at.isoformat(),
        }
        for source in talk.sources
    ]


async def _all(talks: Sequence[Sequence[dict[str, Any]]], budget: Budget) -> list[Figures]:
    """The sums of each way over all conversations."""
    each = [await _ways(messages, budget) for messages in talks]
    return [reduce(_both, column) for column in zip(*each, strict=True)]


async def _ways(messages: Sequence[dict[str, Any]], budget: Budget) -> list[Figures]:
    async with everthread.open("memory://") as et:
        await et.compaction_config.set({"enabled": False})  # only the trials compact, each for itself
        conversation = await et.conversations.create()
        await conversation.append(list(messages))
        ref = Ref(conversation.owner, conversation.id)
        talk = await read_transcript(et.store, ref)
        trial = Trial(store=et.store, clock=system_clock, ref=ref, budget=budget)
        tried = [await trial.run(way, policy, talk) for way, policy in POLICIES.items()]
    return [*tried, fixed_window(talk, budget.limit), full_history(talk, budget.limit)]


def _both(one: Figures, other: Figures) -> Figures:
    return replace(one, **{name: getattr(one, name) + getattr(other, name) for name in _SUMMED})


def _row(name: str, talks: int, window: int, one: Figures, prices: Prices) -> Row:
    return {
        "system": one.way,
        "data": name,
        "window": window,
        "talks": talks,
        "turns": one.turns,
        "tokens a turn": one.tokens_per_turn,
        "cached %": 100 * one.stability,
        "cost of 1,000 turns": 1_000 * one.cost(prices) / max(1, one.turns),
        "prices": f"{prices.input:g} / {prices.cached:g} / {prices.output:g}",
        "facts": one.facts_total,
        "kept %": 100 * one.facts_kept / max(1, one.facts_total),
        "compactions": one.compactions,
        "too long": one.over_limit,
    }
