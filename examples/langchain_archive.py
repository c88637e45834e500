"""Keep everything a LangChain agent says, although its own middleware summarises it away.

Run it: python examples/langchain_archive.py [database], by default sqlite:///agent.db in the working folder.
The model is scripted, so that it runs anywhere; any chat model may stand in its place.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.messages import BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

import everthread
from everthread.langchain import to_langchain
from everthread.langgraph import archive_stream
from everthread.testing import Reply, ScriptedModel

TOWNS = ("Kunming", "Dali", "Lijiang", "Xichang", "Chengdu", "Guiyang")


@tool
async def altitude(town: str) -> str:
    """How high a town lies, in metres."""
    return f"{town}: {1000 + 100 * len(town)} m"


def answer(messages: Sequence[BaseMessage]) -> Reply:
    """Look it up, then say it."""
    newest = messages[-1]
    if isinstance(newest, ToolMessage):
        return Reply(text=f"It is {newest.text.split(': ')[1]} high.")
    return Reply(calls=[("altitude", {"town": newest.text.split()[-1].strip("?")})])


def forgetful_agent() -> Any:
    """An agent whose state never holds more than ten messages for long."""
    summariser = SummarizationMiddleware(
        ScriptedModel(lambda messages: "Some towns were asked about."), trigger=("messages", 10), keep=("messages", 4)
    )
    return create_agent(ScriptedModel(answer), [altitude], middleware=[summariser], checkpointer=InMemorySaver())


async def main(database: str) -> None:
    agent = forgetful_agent()
    config: Any = {"configurable": {"thread_id": "towns"}}
    async with everthread.open(database) as et:
        for town in TOWNS:
            question = {"messages": [HumanMessage(f"How high is {town}?")]}
            stream = agent.astream(question, config, stream_mode="values", subgraphs=True)
            async for _namespace, _state in archive_stream(et, stream, "towns"):
                pass  # each event as the graph sent it; what it says is in the log by now

        snapshot = await agent.aget_state(config)
        print("in the checkpoint:", len(snapshot.values["messages"]))

        conversation = await et.conversations.get("towns")
        history = to_langchain([message async for message in conversation.messages()])
        print("in the log:", len(history))
        print("first question:", history[0].text)
        print("chain verified:", (await et.verify()).ok)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "sqlite:///agent.db"))
