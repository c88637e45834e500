"""Back to an earlier state: a run is replayed from there, and forked with other values."""

from __future__ import annotations

import sys
from typing import Annotated, Any, TypedDict
from uuid import uuid4

from langchain_core.messages import AIMessage, AnyMessage
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages
from pydantic import BaseModel

from everthread.langgraph import EverthreadSaver


class Topic(BaseModel):
    name: str


class State(TypedDict, total=False):
    topic: Topic
    messages: Annotated[list[AnyMessage], add_messages]


def choose(state: State) -> State:
    return {"topic": Topic(name="cats")}


def joke(state: State) -> State:
    return {"messages": [AIMessage(f"a joke about {state['topic'].name}")]}


def main(url: str) -> None:
    with EverthreadSaver.from_url(url) as saver:
        builder = StateGraph(State).add_node(choose).add_node(joke)
        builder.add_edge(START, "choose").add_edge("choose", "joke")
        graph: Any = builder.compile(checkpointer=saver)
        config: Any = {"configurable": {"thread_id": str(uuid4())}}
        graph.invoke({}, config)
        before = next(state for state in graph.get_state_history(config) if state.next == ("joke",))
        assert before.values["topic"] == Topic(name="cats")
        forked = graph.update_state(before.config, {"topic": Topic(name="dogs")})
        told = graph.invoke(None, forked)["messages"][-1].text
        replayed = graph.invoke(None, before.config)["messages"][-1].text
        print(told, "/", replayed, "/", len(list(graph.get_state_history(config))), "states")


main(sys.argv[1])
