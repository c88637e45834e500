"""The tools that the model called, side by side. Whatever becomes of one, the model gets a result, and the log has it
as soon as it is there: arguments that do not fit, an error, a time limit, all come back as words.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool
from langgraph.types import Command

from everthread.core.errors import EverthreadError
from everthread.core.turn_events import ToolCall, ToolResult
from everthread.turn.nodes.plan import calls_of
from everthread.turn.requests import offered_tools
from everthread.turn.scene import Scene
from everthread.turn.state import AppState

_SHOWN_CHARACTERS = 2_000
"""How much of a result an event shows; the log has the whole."""


class Answered(NamedTuple):
    """What became of a call."""

    message: ToolMessage
    changes: Mapping[str, Any]
    """Of the state."""


async def tools(state: AppState, scene: Scene, config: RunnableConfig) -> dict[str, Any]:
    """Every call of the newest message, answered."""
    asking = state["messages"][-1]
    offered = {tool.name: tool for tool in offered_tools(state, scene)}
    calls = [{**call, "id": call.get("id") or f"call_{place}"} for place, call in enumerate(calls_of(asking), 1)]
    answered = await asyncio.gather(
        *(_answered(scene, config, asking.id or "", place, call, offered) for place, call in enumerate(calls, 1))
    )
    changes: dict[str, Any] = {}
    for one in answered:
        changes |= one.changes
    return {**changes, "messages": [one.message for one in answered]}


async def _answered(
    scene: Scene,
    config: RunnableConfig,
    asking_id: str,
    place: int,
    call: Mapping[str, Any],
    offered: Mapping[str, BaseTool],
) -> Answered:
    arguments = call["args"] if isinstance(call["args"], dict) else {}
    scene.event_log.emit(
        lambda number: ToolCall(
            number=number, id=call["id"], name=call["name"] or "", arguments=arguments, message_id=asking_id
        )
    )
    began = time.monotonic()
    made = await _called(scene, config, call, offered)
    seconds = time.monotonic() - began
    made.message.id = f"{asking_id}-r{place}"
    await scene.say(made.message)
    scene.event_log.emit(
        lambda number: ToolResult(
            number=number,
            id=call["id"],
            name=call["name"] or "",
            ok=made.message.status == "success",
            text=made.message.text[:_SHOWN_CHARACTERS],
            message_id=made.message.id or "",
            seconds=round(seconds, 3),
        )
    )
    return made


async def _called(
    scene: Scene, config: RunnableConfig, call: Mapping[str, Any], offered: Mapping[str, BaseTool]
) -> Answered:
    tool = offered.get(call["name"] or "")
    if tool is None:
        return _failed(call, f"there is no tool {call['name']!r}; there are: {', '.join(offered) or 'none'}")
    if call.get("is_broken"):
        return _failed(call, f"the arguments are no JSON object: {call.get('error') or 'write them again'}")
    limit = (tool.metadata or {}).get("seconds") or scene.agent.limits.tool_seconds
    request = {"type": "tool_call", "name": call["name"], "args": call["args"], "id": call["id"]}
    # Tools may raise anything: gathered, it is a value. What is not an Exception (a cancellation) still goes through.
    (outcome,) = await asyncio.gather(_within(limit, tool, request, config), return_exceptions=True)
    if isinstance(outcome, TimeoutError):
        return _failed(call, f"{call['name']} did not answer within {limit:g} seconds and was stopped")
    if isinstance(outcome, Exception):
        return _failed(call, _said(outcome))
    if isinstance(outcome, BaseException):
        raise outcome
    return _made(call, outcome)


async def _within(seconds: float, tool: BaseTool, request: Any, config: RunnableConfig) -> object:
    async with asyncio.timeout(seconds):
        return await tool.ainvoke(request, config)


def _said(problem: Exception) -> str:
    """An error for the model: what is wrong, without where in the code it arose."""
    kind = "" if isinstance(problem, EverthreadError) else f"{type(problem).__name__}: "
    return f"{kind}{problem}"[:_SHOWN_CHARACTERS]


def _failed(call: Mapping[str, Any], text: str) -> Answered:
    message = ToolMessage(content=f"error: {text}", name=call["name"], tool_call_id=call["id"], status="error")
    return Answered(message, {})


def _made(call: Mapping[str, Any], outcome: object) -> Answered:
    """A result, and what it changes: a tool may return a LangGraph `Command`."""
    if isinstance(outcome, Command):
        update = dict(outcome.update) if isinstance(outcome.update, Mapping) else {}
        listed = update.pop("messages", None) or []
        found = [one for one in listed if isinstance(one, ToolMessage) and one.tool_call_id == call["id"]]
        message = found[0] if found else _message(call, "done")
        return Answered(message, update)
    if isinstance(outcome, ToolMessage):
        return Answered(outcome, {})
    return Answered(_message(call, outcome), {})


def _message(call: Mapping[str, Any], content: object) -> ToolMessage:
    text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False, default=str)
    return ToolMessage(content=text, name=call["name"], tool_call_id=call["id"])
