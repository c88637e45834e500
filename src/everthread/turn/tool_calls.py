"""The `tools` node: the tools that the model called, side by side.

Whatever becomes of a call, the model gets a result, and the log has it as soon as it is there: invalid arguments, an
error, a timeout all come back as text.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool
from langgraph.types import Command

from everthread.core.entries import EntryOrigin
from everthread.core.errors import EverthreadError
from everthread.core.timeouts import time_limit
from everthread.core.turn_events import ToolCall, ToolResult
from everthread.turn.model_call import offered_tools
from everthread.turn.result import PLOT, merge_results, not_drawn
from everthread.turn.state import AppState
from everthread.turn.tools.wrap import OUTSIDE
from everthread.turn.turn_context import CALL_SUBAGENT, TurnContext

_ERROR = "error: "
_EVENT_CHARACTERS = 2_000
"""How much of a result an event shows; the log has the whole."""


class AnsweredCall(NamedTuple):
    """What became of a call."""

    message: ToolMessage
    changes: Mapping[str, Any]
    """Of the state."""


async def tools(state: AppState, ctx: TurnContext, config: RunnableConfig) -> dict[str, Any]:
    """Every call of the newest message, answered."""
    asking = state["messages"][-1]
    offered = {tool.name: tool for tool in offered_tools(state, ctx)}
    calls = [{**call, "id": call.get("id") or f"call_{place}"} for place, call in enumerate(requested_calls(asking), 1)]
    outcomes = await asyncio.gather(
        *(_answer_call(ctx, config, asking.id or "", place, call, offered) for place, call in enumerate(calls, 1))
    )
    changes: dict[str, Any] = {}
    for outcome in outcomes:
        result = merge_results(changes.get("result", {}), outcome.changes.get("result", {}))
        changes |= {**outcome.changes, **({"result": result} if result else {})}
    return {**changes, "messages": [outcome.message for outcome in outcomes]}


def requested_calls(message: object) -> list[dict[str, Any]]:
    """The tool calls of a message, including those whose arguments cannot be read."""
    if not isinstance(message, AIMessage):
        return []
    broken = [{"args": {}, **call, "is_broken": True} for call in message.invalid_tool_calls]
    return [*map(dict, message.tool_calls), *broken]


async def _answer_call(
    ctx: TurnContext,
    config: RunnableConfig,
    asking_id: str,
    place: int,
    call: Mapping[str, Any],
    offered: Mapping[str, BaseTool],
) -> AnsweredCall:
    """Run one call between its two events; its result enters the log."""
    arguments = call["args"] if isinstance(call["args"], dict) else {}
    ctx.event_log.emit(
        lambda number: ToolCall(
            number=number, id=call["id"], name=call["name"] or "", arguments=arguments, message_id=asking_id
        )
    )
    began = time.monotonic()
    outcome = await _run_call(ctx, config, call, offered)
    seconds = time.monotonic() - began
    message = outcome.message
    if call["name"] == PLOT and message.status == "error":
        outcome = AnsweredCall(message, {"result": not_drawn(arguments, message.text.removeprefix(_ERROR))})
    message.id = f"{asking_id}-r{place}"
    await ctx.append(message, origin=tool_origin(offered.get(call["name"] or "")))
    ctx.event_log.emit(
        lambda number: ToolResult(
            number=number,
            id=call["id"],
            name=call["name"] or "",
            ok=message.status == "success",
            text=message.text[:_EVENT_CHARACTERS],
            message_id=message.id or "",
            seconds=round(seconds, 3),
        )
    )
    return outcome


def tool_origin(tool: BaseTool | None) -> EntryOrigin:
    """Which door the results of a tool come through. None: what we say of a tool that does not exist."""
    if tool is None:
        return EntryOrigin.OWN_TOOL
    if tool.name == CALL_SUBAGENT:
        return EntryOrigin.SUBAGENT
    return EntryOrigin.OUTSIDE_TOOL if OUTSIDE in (tool.tags or ()) else EntryOrigin.OWN_TOOL


async def _run_call(
    ctx: TurnContext, config: RunnableConfig, call: Mapping[str, Any], offered: Mapping[str, BaseTool]
) -> AnsweredCall:
    tool = offered.get(call["name"] or "")
    if tool is None:
        return _failure(call, f"unknown tool {call['name']!r}; available: {', '.join(offered) or 'none'}")
    if call.get("is_broken"):
        return _failure(call, f"the arguments are not a JSON object: {call.get('error') or 'write them again'}")
    limit = (tool.metadata or {}).get("seconds") or ctx.agent.limits.tool_seconds
    request = {"type": "tool_call", "name": call["name"], "args": call["args"], "id": call["id"]}

    async def invoke() -> object:
        async with time_limit(limit):
            return await tool.ainvoke(request, config)

    # A tool may raise anything: gathered, it is a value. What is no Exception (a cancellation) still goes through.
    (result,) = await asyncio.gather(invoke(), return_exceptions=True)
    if isinstance(result, TimeoutError):
        return _failure(call, f"{call['name']} did not answer within {limit:g} seconds and was stopped")
    if isinstance(result, Exception):  # for the model: what is wrong, without where in the code it arose
        kind = "" if isinstance(result, EverthreadError) else f"{type(result).__name__}: "
        return _failure(call, f"{kind}{result}"[:_EVENT_CHARACTERS])
    if isinstance(result, BaseException):
        raise result
    return _success(call, result)


def _failure(call: Mapping[str, Any], text: str) -> AnsweredCall:
    message = ToolMessage(content=f"{_ERROR}{text}", name=call["name"], tool_call_id=call["id"], status="error")
    return AnsweredCall(message, {})


def _success(call: Mapping[str, Any], result: object) -> AnsweredCall:
    """A result, and what it changes: a tool may return a LangGraph `Command`."""
    changes: dict[str, Any] = {}
    if isinstance(result, Command):
        changes = dict(result.update) if isinstance(result.update, Mapping) else {}
        messages = changes.pop("messages", None) or []
        own = [one for one in messages if isinstance(one, ToolMessage) and one.tool_call_id == call["id"]]
        result = own[0] if own else "done"
    if isinstance(result, ToolMessage):
        return AnsweredCall(result, changes)
    text = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False, default=str)
    return AnsweredCall(ToolMessage(content=text, name=call["name"], tool_call_id=call["id"]), changes)
