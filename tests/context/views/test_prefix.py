"""Between two compactions a request is the one before it and what has come since: prompt caches stay warm."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

import everthread
from everthread import Budget, Context, Conversation
from everthread.compaction.due import due_trigger
from everthread.context import read_view
from tests.contracts.views import IMAGE, call, check, result, tight

Payload = dict[str, Any]


@pytest.fixture
async def conv() -> AsyncIterator[Conversation]:
    async with everthread.open("memory://", worker=False) as et:
        yield await et.conversations.create()


def question(rng: Random, number: int) -> Payload:
    text = f"Question {number}: " + "and what about that? " * rng.randint(1, 12)
    image = {"type": "image_url", "image_url": {"url": IMAGE}}
    return {"role": "user", "content": [{"type": "text", "text": text}, image] if rng.random() < 0.05 else text}


def answer(rng: Random, number: int) -> list[Payload]:
    said: list[Payload] = []
    for step in range(rng.choice((0, 0, 1, 2))):
        ids = [f"c{number}.{step}.{at}" for at in range(rng.choice((1, 1, 2)))]
        said += [call(*ids), *(result(id, f"row of {id}\n" * rng.choice((3, 20, 300))) for id in ids)]
    return [*said, {"role": "assistant", "content": f"Answer {number}: it costs {number * 3} euro. " * 4}]


@pytest.mark.parametrize(
    ("budget", "turns"),
    [
        pytest.param(tight(6_000), 300, id="6k", marks=pytest.mark.long),
        pytest.param(tight(16_000), 150, id="16k"),
        pytest.param(tight(16_000), 300, id="16k, long", marks=pytest.mark.long),
        pytest.param(Budget(), 300, id="128k", marks=pytest.mark.long),
    ],
)
async def test_in_95_of_100_turns_between_compactions_a_request_extends_the_one_before(
    conv: Conversation, budget: Budget, turns: int
) -> None:
    rng = Random(7)
    before: Context | None = None
    kept = broken = 0
    for number in range(turns):
        await conv.append([question(rng, number)])
        context = await conv.context(system="Be brief.", budget=budget)
        if before is not None and context.manifest.summary_ids == before.manifest.summary_ids:
            is_extension = context.messages[: len(before.messages)] == before.messages
            kept, broken = kept + is_extension, broken + (not is_extension)
        before = context
        await conv.append(answer(rng, number))
        view = await read_view.read_view(conv._store, conv._ref, None, conv._runtime.policy)
        due = due_trigger(view, read_view.render(view, budget, system="Be brief."), budget)
        if due is not None:
            await conv.compact(trigger=due)
    assert kept + broken > 100
    assert broken <= 0.05 * (kept + broken), (kept, broken)
    await check(conv, await conv.context(budget=budget))


def runs(shared: Path) -> list[list[Payload]]:
    """Recorded agents: some of customer service, some of coding."""
    folder = shared / "data" / "trajectories"
    service = [run["traj"] for run in json.loads((folder / "tau-bench-airline.json").read_text())]
    coding = [json.loads(path.read_text())["history"] for path in sorted((folder / "swe-agent").glob("*.traj"))]
    by_length = sorted(service, key=len)
    return [by_length[-1], by_length[-20], by_length[len(by_length) // 2], *sorted(coding, key=len)[-2:]]


def is_looked_at(at: int, run: list[Payload]) -> bool:
    """Of a long run every turn near its two ends, and every third between: to check a request takes longer than to
    make it."""
    return at < 40 or at >= len(run) - 40 or at % 3 == 0


async def replay(run: list[Payload], limit: int) -> None:
    async with everthread.open("memory://", worker=False) as et:
        conv = await et.conversations.create()
        for at, message in enumerate(run):
            await conv.append([message])
            if message.get("role") == "assistant":
                continue
            context = await conv.context(budget=tight(limit))
            if is_looked_at(at, run):
                await check(conv, context)
        assert (await et.verify()).ok


@pytest.mark.parametrize("limit", [4_000, 8_000, 16_000])
async def test_recorded_runs_fit_turn_by_turn(shared: Path, limit: int) -> None:
    for run in runs(shared)[2:4]:
        await replay(run, limit)


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("limit", [4_000, 8_000, 16_000])
async def test_long_recorded_runs_fit_turn_by_turn(shared: Path, limit: int) -> None:
    for run in runs(shared):
        await replay(run, limit)
