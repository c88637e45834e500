"""The window never begins in the middle of a turn without its question, and a tool's result keeps its name."""

from __future__ import annotations

import everthread
from everthread.langchain import to_langchain


async def test_a_window_after_a_summary_shows_the_question_that_its_answer_belongs_to() -> None:
    """A long turn of many steps: what is left of it after a compaction still begins with what was asked."""
    policy = everthread.CompactionPolicy(enabled=False)
    async with everthread.open("memory://", compaction=policy) as et:
        conversation = await et.conversations.create()
        await conversation.append([
            {"role": "user", "content": f"Earlier question {n} about the garden and the shed."} for n in range(4)
        ])  # fmt: skip
        await conversation.append({"role": "user", "content": "QUESTION: audit all forty shelves of the shop, please."})
        await conversation.append([
            {"role": "assistant", "content": f"Step {n}: shelf {n} was counted, it holds {n * 7} boxes of green tea."}
            for n in range(40)
        ])  # fmt: skip
        outcome = await conversation.compact()
        assert outcome.compacted
        context = await conversation.context()
        verbatim = [message["content"] for message in context.messages if "<record>" not in str(message["content"])]
        assert verbatim[0] == "QUESTION: audit all forty shelves of the shop, please."
        assert verbatim[1].startswith("Step ")


async def test_a_result_keeps_the_name_of_its_tool() -> None:
    async with everthread.open("memory://") as et:
        conversation = await et.conversations.create()
        call = {"id": "c1", "type": "function", "function": {"name": "look_up", "arguments": "{}"}}
        await conversation.append([
            {"role": "user", "content": "Look it up."},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "name": "look_up", "content": "42"},
        ])  # fmt: skip
        context = await conversation.context()
        assert context.messages[-1]["name"] == "look_up"
        assert to_langchain(context)[-1].name == "look_up"
