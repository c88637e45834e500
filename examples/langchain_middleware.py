"""A LangChain agent whose model sees what fits, whose state keeps all, and which can search its own past.

Run it: python examples/langchain_middleware.py [database], by default sqlite:///agent.db in the working folder.
The model is scripted, so that it runs anywhere; any chat model may stand in its place.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import BaseMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver

import everthread
from everthread import Budget
from everthread.langchain import EverthreadMiddleware
from everthread.testing import Reply, ScriptedModel

CONFIG: Any = {"configurable": {"thread_id": "diary"}}


def answer(messages: Sequence[BaseMessage]) -> Reply:
    """Note what is said; search for what is asked."""
    newest = messages[-1]
    if isinstance(newest, ToolMessage):
        return Reply(text="It is zebra." if "zebra" in newest.text else "I do not know.")
    if newest.text.endswith("?"):
        return Reply(calls=[("history_search", {"query": "locker word"})])
    return Reply(text="Noted.")


async def main(database: str) -> None:
    model = ScriptedModel(answer)
    async with everthread.open(database) as et:
        keeps = EverthreadMiddleware(et, compact=True, budget=Budget(window=4_000, output_reserve=500))
        agent: Any = create_agent(model, [], middleware=[keeps], checkpointer=InMemorySaver())
        await agent.ainvoke({"messages": [{"role": "user", "content": "The locker word is zebra."}]}, CONFIG)
        for day in range(60):
            entry = f"Day {day}: " + "rain in the morning, sun in the afternoon, " * 6
            await agent.ainvoke({"messages": [{"role": "user", "content": entry}]}, CONFIG)
        question = {"role": "user", "content": "Which locker word did I tell you?"}
        result = await agent.ainvoke({"messages": [question]}, CONFIG)

        print("answer:", result["messages"][-1].text)
        print("messages in the state:", len(result["messages"]))
        print("the model saw fewer than 50:", len(model.requests[-1].messages) < 50)
        history = await et.full_history("diary")
        print("in the full history:", history["archived_count"])


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "sqlite:///agent.db"))
