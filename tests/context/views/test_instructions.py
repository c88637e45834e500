"""The instructions that a conversation begins with are in every request, whatever else is."""

from __future__ import annotations

import asyncio

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import everthread
from everthread import Budget
from tests.contracts.views import check, tell


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(
    leading=st.integers(1, 8),
    given_one=st.sampled_from((None, "Extra.", "Rule 0.")),
    has_memory=st.booleans(),
    steps=st.lists(st.sampled_from(("talk", "system", "pin", "compact", "revise", "remember", "ask")), max_size=8),
)
def test_the_instructions_a_conversation_begins_with_are_in_every_request(
    leading: int, given_one: str | None, has_memory: bool, steps: list[str]
) -> None:
    async def go() -> None:
        async with everthread.open("memory://", worker=False) as et:
            if has_memory:
                await et.memories.add("local", "The user has a nut allergy.", pinned=True)
            conv = await et.conversations.create()
            rules = [f"Rule {at}." for at in range(leading)]
            await conv.append([{"role": "system", "content": text, "id": f"s{at}"} for at, text in enumerate(rules)])
            await tell(conv, 1)
            for at, step in enumerate(steps):
                if step == "talk":
                    await tell(conv, 12, first=1 + 12 * at)
                elif step == "system":
                    await conv.append([{"role": "system", "content": f"The user is on page {at}."}])
                elif step == "pin":
                    await conv.pin("s0")
                elif step == "compact":
                    await conv.compact()
                elif step == "revise":
                    rules[0] = f"Rule 0, version {at}."
                    await conv.append([{"role": "system", "content": rules[0], "id": "s0"}])
                elif step == "remember":
                    await et.memories.add("local", f"The user likes dish {at}.", pinned=True)
                query = "What did the user say?" if step == "ask" else None
                context = await conv.context(system=given_one, query=query, budget=Budget(window=6_000))
                assert set(rules) <= {one["content"] for one in context.messages if one["role"] == "system"}, step
                await check(conv, context)

    asyncio.run(go())
