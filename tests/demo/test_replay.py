"""`Watch it happen`: what the steps say is what the conversation holds."""

from __future__ import annotations

import everthread
from everthread.demo.replay import WINDOW, replay


async def test_a_replay_fills_the_window_folds_it_and_finds_the_beginning_again() -> None:
    async with everthread.open("memory://") as et:
        steps = [step async for step in replay(et, speed=1_000)]
        conversation = await et.conversations.get(steps[0].details["conversation_id"])
        kinds = [step.kind for step in steps]
        assert kinds[0] == "begun"
        assert kinds[-3:] == ["asked", "answered", "verified"]
        assert kinds.count("compacted") >= 2
        assert {made.trigger async for made in conversation.compactions() if made.level == 1} == {"threshold"}

        first = next(step.details for step in steps if step.kind == "compacted")
        assert first["first_seq"] == 1
        assert first["tokens_after"] < first["tokens_before"]

        answered = steps[-2].details
        reference = [one async for one in conversation.messages() if "QX-4417-PLUM" in one.text]
        assert reference[0].seq in answered["recalled"]  # what was said at the very beginning
        assert reference[-1].seq == answered["seq"]
        assert steps[-1].details == {"entries": answered["seq"], "ok": True}

        context = await conversation.context(budget=everthread.Budget(window=WINDOW))
        assert context.tokens <= context.limit


async def test_whoever_stops_watching_stops_the_writing() -> None:
    async with everthread.open("memory://") as et:
        steps = replay(et, speed=1_000)
        begun = await anext(steps)
        for _ in range(3):
            await anext(steps)
        await steps.aclose()
        written = await (await et.conversations.get(begun.details["conversation_id"])).tail(1000)
        assert 0 < len(written) < 40
