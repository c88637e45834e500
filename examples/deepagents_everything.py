"""A deep agent with everthread in the place of its own summarisation: its subagents and its large results are kept too.

Run it: python examples/deepagents_everything.py [database], by default sqlite:///agent.db in the working folder.
The model is scripted, so that it runs anywhere; any chat model may stand in its place.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from typing import Any

from deepagents import create_deep_agent
from langchain_core.messages import BaseMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

import everthread
from everthread.langchain import DEEPAGENTS_SLOT, EverthreadMiddleware
from everthread.langgraph import ArchivingSaver
from everthread.testing import Reply, ScriptedModel

CONFIG: Any = {"configurable": {"thread_id": "report"}}


@tool
def read_archive(year: int) -> str:
    """All records of a year."""
    return "\n".join(f"{year}, record {number}: nothing unusual" for number in range(6_000))


def answer(messages: Sequence[BaseMessage]) -> Reply:
    """Leave it to a subagent, which reads the archive."""
    newest = messages[-1]
    if isinstance(newest, ToolMessage):
        return Reply(text="Nothing unusual that year.")
    if newest.text.startswith("Read"):
        return Reply(calls=[("read_archive", {"year": 1911})])
    task = {"description": "Read the archive of 1911.", "subagent_type": "general-purpose"}
    return Reply(calls=[("task", task)])


async def main(database: str) -> None:
    async with everthread.open(database) as et:
        agent: Any = create_deep_agent(
            ScriptedModel(answer),
            [read_archive],
            middleware=[EverthreadMiddleware(et, compact=True, name=DEEPAGENTS_SLOT)],
            checkpointer=ArchivingSaver(InMemorySaver(), et),
        )
        await agent.ainvoke({"messages": [{"role": "user", "content": "Was there anything in 1911?"}]}, CONFIG)

        conversation = await et.conversations.get("report")
        print("in the thread:", len([message async for message in conversation.messages()]))
        async for child in conversation.children():
            said = [message async for message in child.messages()]
            print("in its subagent:", len(said))
            print("characters of the tool's result:", max(len(message.text) for message in said))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "sqlite:///agent.db"))
