"""Graphs to be served in tests, named in a `langgraph.json` beside them: none needs a network."""

from __future__ import annotations

import asyncio
import itertools
from typing import Annotated, Any

from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, AnyMessage
from langgraph.config import get_stream_writer
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.runtime import Runtime
from langgraph.stream import StreamChannel, StreamTransformer
from langgraph.types import interrupt
from typing_extensions import TypedDict


class State(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], add_messages]
    step: int


async def ask(state: State) -> State:
    """Says three words, one token after the other."""
    get_stream_writer()({"progress": 1})
    model = GenericFakeChatModel(messages=itertools.cycle([AIMessage("one two three")]))
    return {"messages": [await model.ainvoke(state["messages"])], "step": 1}


async def bad(state: State) -> State:
    raise ValueError("boom")


def wait(state: State) -> State:
    answer = interrupt({"question": "sure?"})
    return {"messages": [AIMessage(f"got {answer}")]}


def route(state: State) -> str:
    asked = str(state["messages"][-2].content) if len(state["messages"]) > 1 else ""
    return "bad" if "fail" in asked else "wait" if "stop" in asked else END


_builder = StateGraph(State)
_builder.add_node("ask", ask)
_builder.add_node("bad", bad)
_builder.add_node("wait", wait)
_builder.add_edge(START, "ask")
_builder.add_conditional_edges("ask", route, ["bad", "wait", END])
graph = _builder.compile()

_inner = StateGraph(State).add_node("ask", ask).add_edge(START, "ask").compile()
nested = StateGraph(State).add_node("inner", _inner).add_edge(START, "inner").compile()


class Pace(TypedDict, total=False):
    ticks: int
    seconds: float


async def tick(state: State, runtime: Runtime[Pace]) -> dict[str, Any]:
    """Tells a number now and then, so that there is time to disconnect, to cancel, or to die."""
    pace = runtime.context or {}
    for number in range(pace.get("ticks", 20)):
        runtime.stream_writer({"i": number})
        await asyncio.sleep(pace.get("seconds", 0.05))
    return {"messages": [AIMessage("slow done")]}


slow = StateGraph(State, context_schema=Pace).add_node("slow", tick).add_edge(START, "slow").compile()


# A graph that asks inside of a subgraph, and then goes on.
_asked = StateGraph(State).add_node("wait", wait).add_edge(START, "wait").compile()
asking = (
    StateGraph(State).add_node("ask", _inner).add_node("wait", _asked).add_edge(START, "ask").add_edge("ask", "wait")
).compile()


class Steps(StreamTransformer):
    """Counts the states of a run, in a channel of its own."""

    def __init__(self, scope: tuple[str, ...] = ()) -> None:
        super().__init__(scope)
        self._steps: StreamChannel[int] = StreamChannel("steps")
        self._count = 0

    def init(self) -> dict[str, Any]:
        return {"steps": self._steps}

    def process(self, event: Any) -> bool:
        if event["method"] == "values":
            self._count += 1
            self._steps.push(self._count)
        return True


counting = StateGraph(State).add_node("ask", ask).add_edge(START, "ask").compile(transformers=[Steps])
