"""Conversations that compact by themselves: off the turn's path, once, and with respect for what people did."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

import everthread
from everthread import Budget, Compaction, CompactionPolicy, Conversation, Everthread, Pace, Summariser
from everthread.compaction.sources import ConversationKind
from everthread.core.clock import system_clock
from everthread.runtime import Runtime
from tests.contracts.job_helpers import settled, until
from tests.contracts.message_helpers import history, says
from tests.contracts.views import check, live, tell, tight

MARK = CompactionPolicy().ahead_mark
TURNS_PAST_THE_MARK = MARK // 4 + 1
AHEAD = CompactionPolicy(compact_ahead=True)
PACE = Pace(poll_seconds=0.5, lease_seconds=5.0, stop_seconds=0.5)


class Slow:
    """A summary model that answers when it may."""

    name = "slow"

    def __init__(self) -> None:
        self.may_answer = asyncio.Event()
        self.asked = 0

    async def summarise(self, text: str, *, kind: ConversationKind, max_tokens: int, is_terse: bool) -> str:
        self.asked += 1
        await self.may_answer.wait()
        return "They spoke of orders, towns and euros, and decided to ship by rail."

    async def is_asked(self) -> bool:
        return self.asked > 0


class Raises:
    """A summary model that fails in a way nobody expects."""

    name = "raises"

    def __init__(self, problem: BaseException) -> None:
        self._problem = problem

    async def summarise(self, text: str, *, kind: ConversationKind, max_tokens: int, is_terse: bool) -> str:
        raise self._problem


@asynccontextmanager
async def opened(url: str, summariser: Summariser | None = None) -> AsyncIterator[tuple[Everthread, Conversation]]:
    """A database with a worker that compacts ahead, and a conversation in it."""
    async with everthread.open(url, summariser=summariser, worker=PACE, compaction=AHEAD) as et:
        yield et, await et.conversations.create(id="c")


async def kept(conv: Conversation) -> list[Compaction]:
    return [one async for one in conv.compactions()]


async def test_i10_a_long_conversation_compacts_by_itself_and_its_log_stays_as_it_was(url: str) -> None:
    budget = Budget(window=32_000)
    async with opened(url) as (et, conv):
        for number in range(120):
            await conv.append([says(f"Question {number}: what about order A-{number}?"), _answer(number)])
            if number % 10 == 9:
                context = await conv.context(budget=budget, system="You ship orders.")
                assert context.tokens <= budget.limit
                await settled(et)
        await check(conv, await conv.context(budget=budget))
        row = await live(conv)
        assert {one.trigger for one in row} <= {"messages", "threshold"}
        leaves = [one for one in row if one.level == 1]
        assert max(one.last_seq for one in leaves) > 240 - MARK - 20
        assert [message.seq for message in await history(conv)] == list(range(1, 241))
        assert (await et.verify()).ok


def _answer(number: int) -> dict[str, str]:
    text = f"Order A-{number} left Town {number} at 09:{number % 60:02d} and costs {number * 7} euro. " * 3
    return {"role": "assistant", "content": text}


async def test_the_mark_of_tokens_is_found_by_a_context_and_left_to_the_background(url: str) -> None:
    async with opened(url) as (et, conv):
        await tell(conv, 7)
        wanted = (await conv.context()).wanted_tokens
        assert (await et.jobs()).jobs == []
        context = await conv.context(budget=tight(int(wanted * 1.1)))
        assert context.tokens == wanted  # not shortened: it was handed out as it was
        await settled(et)
        assert [one.trigger for one in await kept(conv)] == ["threshold"]


async def test_the_system_prompt_counts_in_the_background_too(url: str) -> None:
    system = "Be brief and kind. " * 60
    async with opened(url) as (et, conv):
        await tell(conv, 7)
        with_system = await conv.context(system=system)
        without = (await conv.context()).wanted_tokens
        budget = tight(int(with_system.wanted_tokens * 1.1))
        assert without < 0.8 * budget.limit
        await conv.context(system=system, budget=budget)
        await settled(et)
        assert [one.trigger for one in await kept(conv)] == ["threshold"]


async def test_a_kept_context_writes_what_it_found_with_its_manifest(url: str) -> None:
    async with everthread.open(url, worker=False) as et:
        conv = await et.conversations.create()
        await tell(conv, 7)
        wanted = (await conv.context()).wanted_tokens
        context = await conv.context(budget=tight(int(wanted * 1.1)), to_keep=True)
        assert (await et.jobs()).waiting == 0
        await conv.keep_context(context)
        assert (await et.jobs()).waiting == 1


async def test_a_context_does_not_wait_for_a_summary_that_is_being_written(url: str) -> None:
    model = Slow()
    async with opened(url, model) as (et, conv):
        await tell(conv, TURNS_PAST_THE_MARK)
        await until(model.is_asked)
        context = await conv.context()
        assert await kept(conv) == []
        await check(conv, context)
        model.may_answer.set()
        await settled(et)
        assert [one.model for one in await kept(conv)] == ["slow"]


async def test_closing_does_not_wait_for_a_summary_and_the_next_to_open_writes_it(durable_url: str) -> None:
    model = Slow()
    async with opened(durable_url, model) as (_, conv):
        await tell(conv, TURNS_PAST_THE_MARK)
        await until(model.is_asked)
    async with everthread.open(durable_url, worker=PACE) as et:  # whatever is set there
        await settled(et)
        assert len(await kept(await et.conversations.get("c"))) == 1


@pytest.mark.parametrize(
    "problem",
    [ValueError("?"), KeyError("?"), TimeoutError(), OSError("?"), AssertionError(), asyncio.CancelledError()],
    ids=repr,
)
async def test_whatever_a_summary_model_raises_the_conversation_goes_on(url: str, problem: BaseException) -> None:
    async with opened(url, Raises(problem)) as (et, conv):
        await tell(conv, TURNS_PAST_THE_MARK)
        await settled(et)
        assert (await et.jobs()).dead == 0
        (made,) = await kept(conv)
        assert made.strategy.startswith("extract")
        await check(conv, await conv.context(budget=tight(1500)))
        await tell(conv, TURNS_PAST_THE_MARK, first=100)
        await conv.compact()
        await settled(et)
        assert len(await kept(conv)) > 1


async def test_a_compaction_that_is_cancelled_from_outside_ends(url: str) -> None:
    model = Slow()
    async with everthread.open(url, summariser=model, worker=False) as et:
        conv = await et.conversations.create()
        await tell(conv, TURNS_PAST_THE_MARK)
        by_hand = asyncio.create_task(conv.compact())
        await until(model.is_asked)
        by_hand.cancel()
        with pytest.raises(asyncio.CancelledError):
            await by_hand
        assert await kept(conv) == []


async def test_a_compaction_by_hand_comes_first_and_nothing_is_summarised_twice(url: str) -> None:
    model = Slow()
    async with opened(url, model) as (et, conv):
        await tell(conv, TURNS_PAST_THE_MARK)
        await until(model.is_asked)
        assert (await _without_model(et, conv).compact()).compacted
        model.may_answer.set()
        await settled(et)
        assert [one.trigger for one in await kept(conv)] == ["manual"]
        assert (await et.jobs()).dead == 0


async def test_a_compaction_by_hand_goes_on_where_one_by_itself_came_first(url: str) -> None:
    model = Slow()
    async with everthread.open(url, summariser=model, worker=False) as et:
        conv = await et.conversations.create()
        await tell(conv, TURNS_PAST_THE_MARK + 5)
        by_hand = asyncio.create_task(conv.compact(compaction={"keep_recent": 4}))
        await until(model.is_asked)
        assert (await _without_model(et, conv).compact_if_due()).compacted
        model.may_answer.set()
        assert (await by_hand).compacted
        assert [one.trigger for one in await live(conv)] == ["messages", "manual"]
        await check(conv, await conv.context())


def _without_model(et: Everthread, conv: Conversation) -> Conversation:
    """The same conversation for somebody who summarises without a model."""
    return Conversation(Runtime(store=et.store, clock=system_clock), conv.info)


async def test_what_a_person_has_undone_is_not_summarised_again_by_itself(url: str) -> None:
    async with opened(url) as (et, conv):
        await tell(conv, TURNS_PAST_THE_MARK)
        await settled(et)
        (made,) = await kept(conv)
        await conv.undo_compaction(made.id)
        await tell(conv, TURNS_PAST_THE_MARK, first=100)
        await conv.context()
        await settled(et)
        assert await live(conv) == []
        await conv.context(budget=tight(700))
        assert {one.trigger for one in await live(conv)} == {"hard_limit"}


async def test_what_is_undone_while_it_is_being_made_stays_undone(url: str) -> None:
    model = Slow()
    async with opened(url, model) as (et, conv):
        await tell(conv, TURNS_PAST_THE_MARK)
        await until(model.is_asked)
        done = (await _without_model(et, conv).compact()).compaction
        assert done is not None
        await conv.undo_compaction(done.id)
        model.may_answer.set()
        await settled(et)
        assert await live(conv) == []


async def test_a_conversations_own_settings_are_looked_at_with_its_next_message(url: str) -> None:
    async with opened(url) as (et, conv):
        await tell(conv, 5)
        await et.compaction_config.set({"max_message_history": 12, "keep_recent": 4}, conversation=conv)
        await conv.append(says("one more"))
        await settled(et)
        assert [one.trigger for one in await kept(conv)] == ["messages"]


async def test_a_long_history_that_came_at_once_is_summarised_to_its_end(url: str) -> None:
    async with opened(url) as (et, conv):
        await tell(conv, 60)
        await settled(et)
        row = await live(conv)
        assert len(row) > 2
        assert row[-1].last_seq > 240 - MARK
        await check(conv, await conv.context())
