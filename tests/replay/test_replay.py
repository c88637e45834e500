"""A policy tried on a history says what it would have cost, and leaves no trace."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import asdict
from typing import Any

import pytest

import everthread
from everthread import Budget, CompactionPolicy, Conversation, Everthread, replay
from everthread.compaction.due import due_trigger
from everthread.compaction.policy import AUTOMATIC
from everthread.context import read_view
from everthread.core.clock import system_clock
from everthread.core.nouns import Ref
from everthread.replay import Figures, Prices, Trial
from tests.contracts.message_helpers import says
from tests.contracts.views import tell, tight, turn

POLICY = CompactionPolicy(max_message_history=20, keep_recent=6, fan_in=3, summary_max_tokens=300)
TURNS = 40
BY_HAND = {"enabled": False}
"""What really happens is not to happen by itself while it is compared with what is tried."""


@pytest.fixture
async def et() -> AsyncIterator[Everthread]:
    async with everthread.open("memory://") as opened:
        await opened.compaction_config.set(BY_HAND)
        yield opened


@pytest.fixture
async def conv(et: Everthread) -> Conversation:
    conversation = await et.conversations.create(id="c")
    await tell(conversation, TURNS)
    return conversation


async def tried(et: Everthread, policy: CompactionPolicy, budget: Budget) -> Figures:
    ref = Ref("local", "c")
    trial = Trial(store=et.store, clock=system_clock, ref=ref, budget=budget)
    return await trial.run("tried", policy, await replay.read_transcript(et.store, ref))


async def really_done(policy: CompactionPolicy, budget: Budget) -> tuple[int, int]:
    """The tokens of all requests and the number of compactions, when the conversation is really held."""
    tokens = 0
    async with everthread.open("memory://", compaction=policy) as et:
        await et.compaction_config.set(BY_HAND)
        conversation = await et.conversations.create(id="c")
        for message in [message for number in range(TURNS) for message in turn(number)]:
            if message["role"] == "assistant":
                view = await read_view.read_view(et.store, Ref("local", "c"), None, policy, {"enabled": True})
                due = due_trigger(view, read_view.render(view, budget), budget)
                tokens += (await conversation.context(budget=budget)).tokens
                if due in AUTOMATIC:
                    await conversation.compact_if_due(budget=budget, compaction={"enabled": True})
            await conversation.append([message])
        return tokens, len([one async for one in conversation.compactions()])


@pytest.mark.parametrize("budget", [Budget(), tight(3_000), tight(900)], ids=["128k", "3k", "900"])
async def test_a_trial_says_what_the_same_conversation_really_costs(
    et: Everthread, conv: Conversation, budget: Budget
) -> None:
    figures = await tried(et, POLICY, budget)
    assert (figures.tokens, figures.compactions) == await really_done(POLICY, budget)
    assert figures.requests == 2 * TURNS
    assert figures.compactions > 3


async def test_a_trial_writes_nothing_and_begins_without_summaries(et: Everthread, conv: Conversation) -> None:
    fresh = await tried(et, POLICY, Budget())
    await conv.compact()
    made = [one async for one in conv.compactions()]
    log = await et.store.log.scan(Ref("local", "c"), after=0, limit=10_000)
    assert await tried(et, POLICY, Budget()) == fresh
    assert [one async for one in conv.compactions()] == made
    assert await et.store.log.scan(Ref("local", "c"), after=0, limit=10_000) == log


async def test_a_trial_says_the_same_on_every_store(url: str, et: Everthread, conv: Conversation) -> None:
    expected = await tried(et, POLICY, tight(3_000))
    async with everthread.open(url) as other:
        await other.compaction_config.set(BY_HAND)
        conversation = await other.conversations.create(id="c")
        await tell(conversation, TURNS)
        assert await tried(other, POLICY, tight(3_000)) == expected
        assert [one async for one in conversation.compactions()] == []


async def test_settings_kept_in_the_database_do_not_disturb_a_trial(et: Everthread, conv: Conversation) -> None:
    fresh = await tried(et, POLICY, Budget())
    await et.compaction_config.set({"max_message_history": 100}, conversation=conv)
    assert await tried(et, POLICY, Budget()) == fresh


async def test_fewer_tokens_are_sent_under_a_smaller_window_and_fewer_facts(et: Everthread, conv: Conversation) -> None:
    wide, narrow = await tried(et, POLICY, Budget()), await tried(et, POLICY, tight(900))
    assert narrow.tokens < wide.tokens
    assert narrow.facts_kept < wide.facts_kept <= wide.facts_total


async def test_a_trial_goes_on_where_a_request_is_over_the_hard_mark(et: Everthread) -> None:
    conv = await et.conversations.create(id="c")
    await tell(conv, 4)
    await conv.append([says("a very long question " * 500), {"role": "assistant", "content": "a short answer"}])
    await tell(conv, 4)
    figures = await tried(et, POLICY, tight(900))
    assert figures.over_limit == 0
    assert figures.compactions > 0


async def test_ways_without_summaries_are_counted_message_by_message(et: Everthread) -> None:
    conv = await et.conversations.create(id="c")
    await conv.append([says("hello") if at % 2 == 0 else {"role": "assistant", "content": "hello"} for at in range(6)])
    transcript = await replay.read_transcript(et.store, Ref("local", "c"))
    (each,) = {one.tokens for one in transcript.messages}
    everything = replay.full_history(transcript, limit=4 * each)
    assert transcript.requests == [1, 3, 5]
    assert everything.tokens == (1 + 3 + 5) * each
    assert everything.cached_tokens == (1 + 3) * each
    assert everything.over_limit == 1
    newest = replay.fixed_window(transcript, limit=1_000, size=3)
    assert newest.tokens == (1 + 3 + 3) * each
    assert newest.cached_tokens == 1 * each  # the window of the third request begins two messages later
    assert (newest.turns, newest.answer_tokens, newest.over_limit) == (3, 3 * each, 0)


async def test_all_facts_are_in_the_full_history_and_the_newest_in_a_window(et: Everthread, conv: Conversation) -> None:
    transcript = await replay.read_transcript(et.store, Ref("local", "c"))
    everything, newest = replay.full_history(transcript, 10**9), replay.fixed_window(transcript, 10**9)
    assert everything.facts_kept == everything.facts_total > 100
    assert 0 < newest.facts_kept < everything.facts_kept / 2


@pytest.mark.parametrize(
    ("roles", "requests"),
    [
        ([], []),
        (["user"], [1]),
        (["user", "user"], [1, 2]),
        (["assistant"], []),
        (["user", "assistant"], [1]),
        (["user", "assistant", "user"], [1, 3]),
        (["assistant", "user", "assistant"], [2]),
    ],
)
async def test_a_request_goes_out_before_every_answer(et: Everthread, roles: list[str], requests: list[int]) -> None:
    conv = await et.conversations.create(id="c")
    await conv.append([{"role": role, "content": "said"} for role in roles])
    transcript = await replay.read_transcript(et.store, Ref("local", "c"))
    assert transcript.requests == requests
    for figures in (replay.full_history(transcript, 10), await tried(et, POLICY, Budget())):
        assert figures.requests == len(requests)
        assert 0 <= figures.stability <= 1


async def test_another_branch_is_another_conversation(et: Everthread, conv: Conversation) -> None:
    branch = await conv.fork(8)
    transcript = await replay.read_transcript(et.store, Ref("local", "c"), branch.id)
    assert [one.seq for one in transcript.messages] == list(range(1, 9))


def test_money_is_paid_for_what_is_new_what_is_cached_and_what_is_answered() -> None:
    zeros: dict[str, Any] = dict.fromkeys(Figures.__slots__, 0)
    figures = Figures(
        **{**zeros, "way": "x", "tokens": 3_000_000, "cached_tokens": 2_000_000, "answer_tokens": 500_000}
    )
    assert figures.cost(Prices(input=4, output=10, cached=1)) == 4 + 2 + 5
    assert asdict(figures)["turns"] == 0


async def test_each_step_is_told(et: Everthread, conv: Conversation) -> None:
    steps: list[int] = []
    ref = Ref("local", "c")
    transcript = await replay.read_transcript(et.store, ref, step=steps.append)
    assert sum(steps) == 4 * TURNS
    steps.clear()
    trial = Trial(store=et.store, clock=system_clock, ref=ref, budget=Budget(), step=steps.append)
    await trial.run("x", POLICY, transcript)
    assert (len(steps), sum(steps)) == (2 * TURNS, 4 * TURNS - 1)
