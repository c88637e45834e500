"""An agent whose past is destroyed: LangChain's own summarisation takes messages out of the state as it goes."""

from __future__ import annotations

from collections.abc import Sequence

from langchain.agents import create_agent
from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.messages import BaseMessage
from langchain_core.tools import tool

from everthread.testing import Reply, ScriptedModel


@tool
def look(place: str) -> str:
    """Look at a place."""
    return f"seen {place}"


def _answer(messages: Sequence[BaseMessage]) -> Reply:
    """Thinks and looks, then thinks and answers: four messages for each question."""
    last = messages[-1]
    if last.type == "tool":
        return Reply(text=f"answer: {last.text}", thinking=f"what follows from {last.text}")
    return Reply(text="let me look", calls=[("look", {"place": last.text})], thinking=f"what is {last.text}")


graph = create_agent(
    ScriptedModel(_answer),
    [look],
    middleware=[
        SummarizationMiddleware(
            ScriptedModel(lambda _: "They looked at places."), trigger=("messages", 20), keep=("messages", 8)
        )
    ],
)
