"""Whatever the history, the budget and the summary model: the request is valid, it fits, and the log is as it was."""

from __future__ import annotations

import asyncio
import json
from itertools import pairwise
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import everthread
from everthread import CompactionPolicy, ContextOverflow
from tests.context.random_histories import Message, random_history
from tests.context.views.hostile import Hostile, Manner, manners
from tests.contracts.views import check, tight

POLICY = CompactionPolicy(
    summary_timeout_seconds=0.01, max_message_history=10, keep_recent=3, leaf_max_messages=6, fan_in=2,
    summary_max_tokens=200, breaker_failures=1000,
)  # fmt: skip
SEEDS = st.integers(0, 2**32)
LIMITS = st.sampled_from((120, 200, 400, 1_000, 3_000, 20_000))
PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


async def go_through(seed: int, turns: int, limit: int, model: Hostile) -> None:
    rng = Random(seed)
    async with everthread.open("memory://", compaction=POLICY, summariser=model, worker=False) as et:
        conv = await et.conversations.create()
        for said in parts_of(kept_by_the_log(random_history(rng, turns=turns)), rng):
            await conv.append(said)
            before = await conv._store.log.scan(conv._ref, after=0, limit=10_000)
            context = await conv.context(system="Be brief.", budget=tight(limit))
            await check(conv, context)
            asked = model.asked
            again = await conv.context(system="Be brief.", budget=tight(limit))
            await check(conv, again)
            assert model.asked - asked <= 2 * 4
            if rng.random() < 0.3:
                await conv.compact()
                await check(conv, await conv.context(budget=tight(limit)))
            assert await conv._store.log.scan(conv._ref, after=0, limit=10_000) == before
        assert (await et.verify()).ok


def kept_by_the_log(history: list[Message]) -> list[Message]:
    """Without what the log refuses: what is no JSON, and messages of users with neither text nor blocks."""
    clean: list[Message] = json.loads(json.dumps(history), parse_constant=lambda _: None)
    return [message for message in clean if not is_empty_of_a_user(message)]


def is_empty_of_a_user(message: Message) -> bool:
    content = message.get("data", message).get("content", "")
    return (message.get("role") or message.get("type")) in ("user", "human") and not isinstance(content, str | list)


def parts_of(history: list[Message], rng: Random) -> list[list[Message]]:
    """The history in a few appends, cut anywhere."""
    cuts = sorted({0, len(history), *(rng.randint(0, len(history)) for _ in range(3))})
    return [history[first:last] for first, last in pairwise(cuts)]


@settings(PATIENT, max_examples=40)
@given(SEEDS, LIMITS, manners())
def test_i13_the_turn_goes_on_whatever_the_history_the_budget_and_the_model(
    seed: int, limit: int, ways: list[Manner]
) -> None:
    asyncio.run(go_through(seed, 6, limit, Hostile(ways)))


@pytest.mark.long
@pytest.mark.timeout(1800)
@settings(PATIENT, max_examples=100)
@given(SEEDS, LIMITS, manners())
def test_i13_the_turn_goes_on_whatever_a_long_history_the_budget_and_the_model(
    seed: int, limit: int, ways: list[Manner]
) -> None:
    asyncio.run(go_through(seed, 20, limit, Hostile(ways)))


@settings(PATIENT, max_examples=15)
@given(SEEDS, st.integers(20, 400))
def test_i8_only_a_prompt_without_room_is_refused(seed: int, limit: int) -> None:
    async def go() -> None:
        async with everthread.open("memory://", compaction=POLICY, worker=False) as et:
            conv = await et.conversations.create()
            await conv.append(kept_by_the_log(random_history(Random(seed), turns=4)))
            try:
                await check(conv, await conv.context(system="Be brief.", budget=tight(limit)))
            except ContextOverflow:
                assert limit < 60

    asyncio.run(go())
