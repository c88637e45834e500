"""A LangGraph graph with any checkpointer: `ArchivingSaver` keeps what passes through it, forks and removals included.

Run it: python examples/langgraph_saver.py [database], by default sqlite:///agent.db in the working folder.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph

import everthread
from everthread.langgraph import ArchivingSaver

CONFIG: Any = {"configurable": {"thread_id": "towns"}}


def answer(state: MessagesState) -> dict[str, Any]:
    """Where a model would be asked."""
    return {"messages": [AIMessage(f"You asked: {state['messages'][-1].text}")]}


async def main(database: str) -> None:
    builder = StateGraph(MessagesState)
    builder.add_node("answer", answer)
    builder.add_edge(START, "answer")
    async with everthread.open(database) as et:
        saver = ArchivingSaver(InMemorySaver(), et)  # any saver may stand in its place
        graph = builder.compile(checkpointer=saver)
        for town in ("Kunming", "Dali", "Lijiang"):
            await graph.ainvoke({"messages": [HumanMessage(f"How high is {town}?")]}, CONFIG)

        state = await graph.aget_state(CONFIG)
        gone: Any = [RemoveMessage(id=message.id) for message in state.values["messages"][:4]]
        await graph.aupdate_state(CONFIG, {"messages": gone})

        print("in the state:", len((await graph.aget_state(CONFIG)).values["messages"]))
        history = await et.full_history("towns", saver=saver)
        print("in the full history:", history["merged_count"], "from the", history["source"])
        print("complete:", history["complete"])


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "sqlite:///agent.db"))
