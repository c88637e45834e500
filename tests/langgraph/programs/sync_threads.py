"""A program without an event loop: many threads use one graph, beside the database itself."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from langchain.agents import create_agent
from langchain_core.tools import tool

from everthread.langgraph import EverthreadSaver, open_sync
from everthread.testing import Reply, ScriptedModel


@tool
def weather(city: str) -> str:
    """The weather in a city."""
    return f"rain in {city}"


def main(url: str) -> None:
    def script(messages: Any) -> Any:
        return "It rains." if messages[-1].type == "tool" else Reply(calls=[("weather", {"city": "Kunming"})])

    with open_sync(url) as et:
        agent: Any = create_agent(ScriptedModel(script), [weather], checkpointer=EverthreadSaver(et))

        def talk(number: int) -> int:
            config: Any = {"configurable": {"thread_id": f"t{number}"}}
            for _ in range(3):
                answer = agent.invoke({"messages": [("user", "What is the weather?")]}, config)
            return len(answer["messages"])

        with ThreadPoolExecutor(8) as pool:
            print(sorted(set(pool.map(talk, range(8)))), "messages in each of 8 threads")


main(sys.argv[1])
