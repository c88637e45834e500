"""The guards of compaction: one that freed little waits for the user, one that was undone for the hard mark."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

import everthread
from everthread import Budget, CompactionPolicy, Conversation
from everthread.compaction.due import Load, measure_load
from everthread.context import read_view
from tests.contracts.message_helpers import says
from tests.contracts.views import call, result, tell

COUNTED = CompactionPolicy(max_message_history=40)


@pytest.fixture
async def conv() -> AsyncIterator[Conversation]:
    async with everthread.open("memory://", worker=False) as et:
        conversation = await et.conversations.create()
        await tell(conversation, 12)
        assert (await conversation.compact()).compacted
        yield conversation


async def load(conv: Conversation, *, freed: int) -> Load:
    """What is known when the last compaction had freed so many tokens."""
    view = await read_view.read_view(conv._store, conv._ref, None, COUNTED)
    last = replace(view.summaries[-1], tokens_before=freed + 10, tokens_after=10)
    view = replace(view, summaries=[*view.summaries[:-1], last])
    return measure_load(view, read_view.render(view, Budget()), Budget())


async def test_a_compaction_that_freed_little_of_the_request_is_followed_by_none(conv: Conversation) -> None:
    assert (await load(conv, freed=10)).freed_little
    assert not (await load(conv, freed=5_000)).freed_little


async def test_what_the_agent_does_by_itself_is_no_new_turn_but_a_word_of_the_user_is(conv: Conversation) -> None:
    await conv.append([call("x"), result("x"), {"role": "assistant", "content": "It is there."}])
    assert (await load(conv, freed=10)).freed_little
    await conv.append([says("And now?")])
    assert not (await load(conv, freed=10)).freed_little


async def test_a_window_that_had_to_jump_over_messages_waits_for_nobody(conv: Conversation) -> None:
    await conv.append([message for at in range(30) for message in (call(f"y{at}"), result(f"y{at}"))])
    assert not (await load(conv, freed=10)).freed_little


async def test_an_undone_compaction_is_asked_back_until_its_messages_are_summarised_again(conv: Conversation) -> None:
    last = [one async for one in conv.compactions()][-1]
    assert not (await load(conv, freed=10)).was_undone
    await conv.undo_compaction(last.id)
    view = await read_view.read_view(conv._store, conv._ref, None, COUNTED)
    assert measure_load(view, read_view.render(view, Budget()), Budget()).was_undone
    await conv.compact()
    assert not (await load(conv, freed=10)).was_undone
