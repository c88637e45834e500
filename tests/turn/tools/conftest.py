"""A context with its tools, and a way to call them as a model does."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from langchain_core.messages import ToolMessage
from langgraph.types import Command

import everthread
from everthread import Everthread
from everthread.core.tools import ToolPolicy
from everthread.turn.skills import SHIPPED_SKILLS, load_skills
from everthread.turn.tools import ToolContext, make_tools


class ToolCaller:
    """Calls tools by name, and gives what the model would read."""

    def __init__(self, context: ToolContext) -> None:
        self.context = context
        self.changes: dict[str, Any] = {}
        """What the graph's state would hold after the calls so far."""

    async def message(self, name: str, /, **arguments: Any) -> ToolMessage:
        """As the graph calls a tool: a `Command` changes the state and holds the message."""
        (tool,) = (one for one in make_tools(self.context) if one.name == name)
        outcome = await tool.ainvoke({"name": name, "args": arguments, "id": "call_1", "type": "tool_call"})
        if isinstance(outcome, Command):
            assert isinstance(outcome.update, dict)
            self.changes |= {key: value for key, value in outcome.update.items() if key != "messages"}
            (outcome,) = outcome.update["messages"]
        assert isinstance(outcome, ToolMessage)
        assert outcome.tool_call_id == "call_1"
        return outcome

    async def __call__(self, name: str, /, **arguments: Any) -> str:
        """What a call that works gives."""
        answer = await self.message(name, **arguments)
        assert answer.status == "success", answer.content
        return str(answer.content)

    async def refused(self, name: str, /, **arguments: Any) -> str:
        """What a call that does not work gives."""
        answer = await self.message(name, **arguments)
        assert answer.status == "error", answer.content
        return str(answer.content)


@pytest.fixture
async def memory_et() -> AsyncIterator[Everthread]:
    """What does not depend on a store runs on the quickest."""
    async with everthread.open("memory://", worker=False) as opened:
        yield opened


@pytest.fixture
async def make_toolbox(memory_et: Everthread) -> AsyncIterator[Callable[..., Any]]:
    """Makes toolbox at a context of one's own."""
    contexts: list[ToolContext] = []

    async def make(**more: Any) -> ToolCaller:
        context = ToolContext.create(memory_et, await memory_et.conversations.create(), **more)
        contexts.append(context)
        return ToolCaller(context)

    yield make
    for context in contexts:
        context.close()


@pytest.fixture
async def toolbox(make_toolbox: Callable[..., Any]) -> ToolCaller:
    """ToolCaller at an ordinary context, with the shipped skills."""
    made: ToolCaller = await make_toolbox(
        skills=load_skills(SHIPPED_SKILLS).skills, policy=ToolPolicy(timeout_seconds=20)
    )
    return made
