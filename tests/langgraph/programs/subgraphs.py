"""A graph in a graph: the inner one has a state of its own, remembers its threads, and is interrupted."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, AnyMessage
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command, interrupt

from everthread.langgraph import EverthreadSaver


@dataclass
class Draft:
    text: str
    notes: list[str] = field(default_factory=list)


class Writing(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], add_messages]
    draft: Draft


class State(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], add_messages]


def write(state: Writing) -> Writing:
    before = state.get("draft", Draft(""))
    return {"draft": Draft(before.text + "word ", [*before.notes, "wrote"])}


def review(state: Writing) -> Writing:
    verdict = interrupt(state["draft"])
    return {"messages": [AIMessage(f"{state['draft'].text.strip()}: {verdict}")]}


def main(url: str) -> None:
    with EverthreadSaver.from_url(url) as saver:
        inner = StateGraph(Writing).add_node(write).add_node(review)
        inner.add_edge(START, "write").add_edge("write", "review")
        outer = StateGraph(State).add_node("writer", inner.compile(checkpointer=True)).add_edge(START, "writer")
        graph: Any = outer.compile(checkpointer=saver)
        config: Any = {"configurable": {"thread_id": "book"}}
        for number in range(2):
            graph.invoke({"messages": [("user", f"more {number}")]}, config)
            inside = graph.get_state(config, subgraphs=True).tasks[0].state.values["draft"]
            assert isinstance(inside, Draft)
            done = graph.invoke(Command(resume="good"), config)
        print(len(done["messages"]), "messages, the last:", done["messages"][-1].text)


main(sys.argv[1])
