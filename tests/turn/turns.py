"""Running turns in tests: an agent with a script, and what it told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, tool

import everthread
from everthread import Conversation, Everthread, TurnEvent
from everthread.testing.scripted import Script, ScriptedModel
from everthread.turn import Agent, run_turn

E = TypeVar("E")


def agent_for(et: Everthread, *, tools: Sequence[BaseTool] = (), **parts: Any) -> Agent:
    return everthread.agent(et, model="scripted:echo", tools=lambda _: tools, **parts)


async def told(
    conv: Conversation, message: object, agent: Agent, script: Script | None = None, **given: Any
) -> list[TurnEvent]:
    """Run a turn to its end; every event."""
    if script is not None:
        given["model"] = ScriptedModel(script)
    return [event async for event in run_turn(conv, message, agent=agent, **given)]


def only(events: Sequence[object], kind: type[E]) -> E:
    (found,) = of(events, kind)
    return found


def of(events: Sequence[object], kind: type[E]) -> list[E]:
    return [event for event in events if isinstance(event, kind)]


async def said(conv: Conversation) -> list[tuple[str, str]]:
    return [(message.role, message.text) async for message in conv.messages()]


def answers_in(request: Sequence[object]) -> list[str]:
    return [str(message.text) for message in request if isinstance(message, ToolMessage)]


@tool
async def add(a: int, b: int) -> str:
    """Add two numbers."""
    return str(a + b)


@tool
async def explode() -> str:
    """Raise."""
    raise ValueError("no such luck")


Check = Callable[[], bool]
