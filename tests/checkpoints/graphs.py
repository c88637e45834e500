"""Graphs that do what their input says: every way in which a graph can change its list of messages."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from itertools import count
from typing import Annotated, Any, TypedDict

from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES, _messages_delta_reducer, add_messages
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Overwrite, interrupt


class Shout(HumanMessage):
    """A message class of one's own."""

    volume: int = 0


class State(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], add_messages]
    notes: Annotated[list[str], operator.add]
    draft: list[AnyMessage]
    plain: Annotated[list[AnyMessage], operator.add]


class DeltaState(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], DeltaChannel(_messages_delta_reducer, snapshot_frequency=3)]
    notes: Annotated[list[str], operator.add]
    draft: list[AnyMessage]
    plain: Annotated[list[AnyMessage], operator.add]


OPERATIONS = (
    "say", "say-nameless", "say-twice", "tool", "artifact", "shout", "remove", "remove-all", "summarise", "replace",
    "overwrite", "edit-in-place", "reassign", "ask", "inner", "draft", "plain", "both", "quiet",
)  # fmt: skip
IN_PLACE = frozenset({"edit-in-place", "reassign"})
"""Compared under durability "sync" only: otherwise LangGraph itself varies."""


class Script:
    """The nodes of one graph; each run of one has its own counter, so that two graphs say the same."""

    def __init__(self) -> None:
        self._numbers = count(1)

    def act(self, state: State) -> dict[str, Any]:
        """Do what the last human message asks for."""
        messages: Sequence[BaseMessage] = state.get("messages", [])
        asked = next((str(m.content) for m in reversed(messages) if m.type == "human"), "quiet")
        perform = getattr(self, "_" + asked.partition(" ")[0].replace("-", "_"), self._quiet)
        done: dict[str, Any] = perform(list(messages))
        return done

    def _id(self) -> str:
        return f"m{next(self._numbers)}"

    def _ai(self, text: str = "well", **more: Any) -> AIMessage:
        return AIMessage(f"{text} {next(self._numbers)}", id=self._id(), **more)

    def _say(self, messages: list[BaseMessage]) -> dict[str, Any]:
        usage: Any = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}
        return {"messages": [self._ai(response_metadata={"model": "m"}, usage_metadata=usage)], "notes": ["said"]}

    def _say_nameless(self, messages: list[BaseMessage]) -> dict[str, Any]:
        return {"messages": [AIMessage("ok"), AIMessage("ok")]}

    def _say_twice(self, messages: list[BaseMessage]) -> dict[str, Any]:
        return {"messages": [self._ai(), ("ai", "shorthand")]}

    def _tool(self, messages: list[BaseMessage]) -> dict[str, Any]:
        call: Any = {"name": "look", "args": {"at": ["a", 1, None]}, "id": "c1", "type": "tool_call"}
        return {
            "messages": [
                self._ai(tool_calls=[call]),
                ToolMessage("seen", tool_call_id="c1", id=self._id(), name="look", status="error"),
            ]
        }

    def _artifact(self, messages: list[BaseMessage]) -> dict[str, Any]:
        artifact = {"bytes": b"\x00\xff", "pair": (1, 2), "set": {3}}
        return {"messages": ToolMessage("made", tool_call_id="c2", id=self._id(), artifact=artifact)}

    def _shout(self, messages: list[BaseMessage]) -> dict[str, Any]:
        return {"messages": [Shout(content="quiet HEY", id=self._id(), volume=11)]}

    def _remove(self, messages: list[BaseMessage]) -> dict[str, Any]:
        return {"messages": [RemoveMessage(id=str(messages[len(messages) // 2].id))]}

    def _remove_all(self, messages: list[BaseMessage]) -> dict[str, Any]:
        return {"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES)]}

    def _summarise(self, messages: list[BaseMessage]) -> dict[str, Any]:
        told = HumanMessage("quiet summary", id=self._id(), additional_kwargs={"lc_source": "summarization"})
        return {"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES), told, *messages[-2:]]}

    def _replace(self, messages: list[BaseMessage]) -> dict[str, Any]:
        old = messages[0]
        return {"messages": [type(old)(**{**old.model_dump(), "content": f"quiet v{next(self._numbers)}"})]}

    def _overwrite(self, messages: list[BaseMessage]) -> dict[str, Any]:
        return {"messages": Overwrite([messages[-1], SystemMessage("anew", id=self._id())])}

    def _edit_in_place(self, messages: list[BaseMessage]) -> dict[str, Any]:
        messages[0].additional_kwargs["edited"] = next(self._numbers)
        messages[0].content = f"quiet edited {next(self._numbers)}"
        return {"messages": [self._ai()]}

    def _reassign(self, messages: list[BaseMessage]) -> dict[str, Any]:
        for message in messages:
            if isinstance(message, AIMessage):
                call: Any = {"name": "other", "args": {}, "id": "c9", "type": "tool_call"}
                message.tool_calls = [call]
                return {"messages": [message]}
        return {}

    def _ask(self, messages: list[BaseMessage]) -> dict[str, Any]:
        answer = interrupt("really?")
        return {"messages": [self._ai(f"you said {answer}")]}

    def _inner(self, messages: list[BaseMessage]) -> dict[str, Any]:
        return {}

    def _draft(self, messages: list[BaseMessage]) -> dict[str, Any]:
        return {"draft": [messages[-1], AIMessage("a draft", id=self._id()), AIMessage("nameless")]}

    def _plain(self, messages: list[BaseMessage]) -> dict[str, Any]:
        return {"plain": [AIMessage("ok"), HumanMessage("ok", id=self._id())]}

    def _both(self, messages: list[BaseMessage]) -> dict[str, Any]:
        return {"messages": [self._ai("left")]}

    def _quiet(self, messages: list[BaseMessage]) -> dict[str, Any]:
        return {}

    def right(self, state: State) -> dict[str, Any]:
        """Runs beside `act` when both are asked for."""
        return {"messages": [AIMessage("right", id=f"r{len(state.get('messages', []))}")], "notes": ["right"]}

    def think(self, state: State) -> dict[str, Any]:
        """Inside the subgraph."""
        return {"messages": [AIMessage("thinking", id=f"t{next(self._numbers)}")]}

    def conclude(self, state: State) -> dict[str, Any]:
        return {
            "messages": [AIMessage(f"concluded from {len(state.get('messages', []))}", id=f"u{next(self._numbers)}")]
        }


def _asks(state: Any, word: str) -> bool:
    asked = next((str(m.content) for m in reversed(state.get("messages", [])) if m.type == "human"), "")
    return asked.partition(" ")[0] == word


def _targets(state: Any) -> list[str]:
    if _asks(state, "both"):
        return ["act", "right"]
    return ["inner"] if _asks(state, "inner") else ["act"]


def build(saver: BaseCheckpointSaver[Any], schema: type[Any] = State) -> CompiledStateGraph[Any, Any, Any, Any]:
    """START → act (beside right, or inner instead) → tail → END."""
    script = Script()
    inner = StateGraph(schema)
    inner.add_node("think", script.think, input_schema=schema)
    inner.add_node("conclude", script.conclude, input_schema=schema)
    inner.add_edge(START, "think")
    inner.add_edge("think", "conclude")
    inner.add_edge("conclude", END)
    graph = StateGraph(schema)
    graph.add_node("act", script.act, input_schema=schema)
    graph.add_node("right", script.right, input_schema=schema)
    graph.add_node("inner", inner.compile())
    graph.add_node("tail", lambda state: {"notes": ["tail"]})
    graph.add_conditional_edges(START, _targets, ["act", "right", "inner"])
    for node in ("act", "right", "inner"):
        graph.add_edge(node, "tail")
    graph.add_edge("tail", END)
    return graph.compile(checkpointer=saver)
