"""How conversations are compacted can be set for the server, a conversation and a request; nonsense is refused."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import everthread
from everthread import CompactionPolicy, Conversation, Everthread, Invalid
from tests.contracts.views import check, tell

BAD: list[tuple[str, Any, str]] = [
    ("keep_recent", 400, "1 to 99"),
    ("keep_recent", 0, "1 to 99"),
    ("keep_recent", 5.0, "1 to 99"),
    ("keep_recent", True, "1 to 99"),
    ("max_message_history", 9, "10 to 1,000"),
    ("max_message_history", 1_001, "10 to 1,000"),
    ("threshold", 0.01, "0.05 to 1.0"),
    ("threshold", float("nan"), "0.05 to 1.0"),
    ("summary_max_tokens", 1, "50 to 100,000"),
    ("summary_timeout_seconds", "soon", "0.01 to 3,600.0"),
    ("summary_timeout_seconds", 10**400, "0.01 to 3,600.0"),
    ("fan_in", 1, "2 to 100"),
    ("least_freed", -1, "0.0 to 1.0"),
    ("breaker_seconds", [], "0.0 to 86,400.0"),
    ("enabled", "yes", "true or false"),
    ("strategy", "poetic", "auto, chat, tool-heavy, coding"),
    ("summary_model", 7, "name"),
    ("keep_recnet", 5, "keep_recent"),
]


async def test_settings_are_laid_over_each_other(et: Everthread, conv: Conversation) -> None:
    assert await et.compaction_config.get() == CompactionPolicy()
    await et.compaction_config.set({"keep_recent": 6, "strategy": "coding"})
    await et.compaction_config.set({"keep_recent": 8}, conversation=conv)
    policy = await et.compaction_config.get(conv)
    assert (policy.keep_recent, policy.strategy) == (8, "coding")
    assert (await et.compaction_config.get()).keep_recent == 6
    other = await et.conversations.create()
    assert (await et.compaction_config.get(other)).keep_recent == 6


async def test_a_setting_taken_back_is_what_it_was_below(et: Everthread, conv: Conversation) -> None:
    await et.compaction_config.set({"keep_recent": 6})
    await et.compaction_config.set({"keep_recent": 8, "fan_in": 3}, conversation=conv)
    assert (await et.compaction_config.set({"keep_recent": None}, conversation=conv)).keep_recent == 6
    assert (await et.compaction_config.get(conv)).fan_in == 3
    await et.compaction_config.set({"fan_in": None}, conversation=conv)
    await et.compaction_config.set({"keep_recent": None})
    assert await et.compaction_config.get(conv) == CompactionPolicy()


async def test_each_level_is_what_a_compaction_goes_by(et: Everthread, conv: Conversation) -> None:
    await tell(conv, 20)

    async def kept(**request: Any) -> int:
        found = (await conv.compact(dry_run=True, compaction=request)).reason
        assert found is not None
        return 80 - int(found.split()[3])

    await et.compaction_config.set({"leaf_max_messages": 100})
    assert await kept() == 12
    await et.compaction_config.set({"keep_recent": 16})
    assert await kept() == 16
    await et.compaction_config.set({"keep_recent": 4}, conversation=conv)
    assert await kept() == 4
    assert await kept(keep_recent=20) == 20
    assert await kept(leaf_max_messages=8) == 4
    planned = (await conv.compact(dry_run=True, compaction={"leaf_max_messages": 8})).planned
    assert [one.last_seq - one.first_seq + 1 for one in planned][:2] == [8, 8]


async def test_settings_survive_a_restart(durable_url: str) -> None:
    async with everthread.open(durable_url, worker=False) as et:
        conv = await et.conversations.create()
        await et.compaction_config.set({"keep_recent": 6})
        await et.compaction_config.set({"fan_in": 3}, conversation=conv)
    async with everthread.open(durable_url, compaction=CompactionPolicy(threshold=0.5), worker=False) as et:
        policy = await et.compaction_config.get(await et.conversations.get(conv.id))
        assert (policy.keep_recent, policy.fan_in, policy.threshold) == (6, 3, 0.5)


@pytest.mark.parametrize(("field", "value", "allowed"), BAD, ids=lambda value: str(value)[:20])
async def test_a_bad_value_is_refused_with_its_field_and_what_is_allowed(
    et: Everthread, conv: Conversation, field: str, value: Any, allowed: str
) -> None:
    for attempt in (
        et.compaction_config.set({field: value}),
        et.compaction_config.set({field: value}, conversation=conv),
        conv.context(compaction={field: value}),
        conv.compact(compaction={field: value}),
    ):
        with pytest.raises(Invalid) as refused:
            await attempt
        assert refused.value.field == field
        assert allowed in str(refused.value)
    assert await et.compaction_config.get(conv) == CompactionPolicy()


async def test_a_setting_below_that_no_longer_goes_with_one_above_stops_no_turn(
    et: Everthread, conv: Conversation
) -> None:
    await tell(conv, 20)
    await et.compaction_config.set({"keep_recent": 30, "fan_in": 3}, conversation=conv)
    await et.compaction_config.set({"max_message_history": 20})
    await check(conv, await conv.context())
    policy = await et.compaction_config.get(conv)
    assert (policy.max_message_history, policy.keep_recent, policy.fan_in) == (20, 10, 3)


async def test_settings_that_are_changed_at_the_same_time_are_all_kept(et: Everthread, conv: Conversation) -> None:
    changes: dict[str, Any] = {"keep_recent": 8, "fan_in": 3, "threshold": 0.5, "summary_max_tokens": 700}
    for place in (None, conv):
        await asyncio.gather(*(et.compaction_config.set({name: changes[name]}, place) for name in changes))
        policy = await et.compaction_config.get(place)
        assert {name: getattr(policy, name) for name in changes} == changes
        changes = {name: value * 0.5 if name == "threshold" else value + 1 for name, value in changes.items()}


async def test_settings_of_one_conversation_are_erased_with_it(et: Everthread, conv: Conversation) -> None:
    await et.compaction_config.set({"keep_recent": 8}, conversation=conv)
    await et.erase(conversation=conv.id)
    with pytest.raises(everthread.NotFound):
        await et.compaction_config.get(conv)
