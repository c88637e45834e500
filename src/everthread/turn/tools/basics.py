"""Small tools of every turn: the time, the to-do list, reading a skill."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC
from typing import Annotated
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from langchain_core.tools import BaseTool
from pydantic import BaseModel, Field

from everthread.core.errors import Invalid, NotFound
from everthread.turn.skills import SkillSet, render_skill
from everthread.turn.tools.tool_context import Todo, TodoStatus, ToolContext
from everthread.turn.tools.wrap import as_tool

MAX_TODOS = 200
_STATUS_MARKS = {"pending": "[ ]", "in_progress": "[~]", "completed": "[x]"}


class TodoItem(BaseModel):
    """One item of the to-do list."""

    content: str = Field(min_length=1, max_length=1_000, description="what is to be done")
    status: TodoStatus = "pending"


def tools(tool_context: ToolContext) -> Sequence[BaseTool]:
    made = [as_tool(function, tool_context=tool_context) for function in (now, todo_write, todo_read)]
    if tool_context.skills:
        known = "\n".join(f"- {skill.name}: {skill.description}" for skill in tool_context.skills)
        made.append(as_tool(use_skill, tool_context=tool_context, description=f"{use_skill.__doc__}\n\n{known}"))
    return made


async def now(tool_context: ToolContext, timezone: Annotated[str, "such as Asia/Shanghai"] = "UTC") -> str:
    """The date, the weekday and the time now."""
    try:
        here = tool_context.now().astimezone(UTC if timezone == "UTC" else ZoneInfo(timezone))
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise Invalid(
            f"unknown time zone {timezone!r}; use a name such as Asia/Shanghai or UTC", field="timezone"
        ) from None
    return f"{here.isoformat(timespec='seconds')} ({here.strftime('%A')}, {timezone})"


async def todo_write(
    tool_context: ToolContext,
    todos: Annotated[list[TodoItem], Field(max_length=MAX_TODOS, description="the whole list, in order")],
) -> str:
    """Write down what is to be done, in the place of the former list. Keep at most one in progress."""
    tool_context.state_changes.set_todos([Todo(content=one.content, status=one.status) for one in todos])
    return format_todos(await tool_context.state_changes.todos())


async def todo_read(tool_context: ToolContext) -> str:
    """What was to be done, and how far it is."""
    return format_todos(await tool_context.state_changes.todos())


def format_todos(todos: Sequence[Todo]) -> str:
    """The list as people and models read it."""
    return "\n".join(f"{_STATUS_MARKS[todo.status]} {todo.content}" for todo in todos) or "Nothing is to be done."


async def use_skill(
    tool_context: ToolContext,
    name: str,
    file: Annotated[str, Field(description="a file in the folder of the skill; empty for the skill itself")] = "",
) -> str:
    """Read how to do one kind of work before doing it. The skills there are:"""
    skill = SkillSet(skills=tuple(tool_context.skills)).get(name.removeprefix("@"))
    if skill is None:
        known = ", ".join(one.name for one in tool_context.skills)
        raise NotFound(f"unknown skill {name!r}; available: {known}")
    if file:
        return await asyncio.to_thread(skill.read, file)
    tool_context.state_changes.set_active_skill(skill)
    return await asyncio.to_thread(render_skill, skill)
