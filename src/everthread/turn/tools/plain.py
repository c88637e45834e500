"""Small tools of every turn: the time, and a list of things to do."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC
from typing import Annotated, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from langchain_core.tools import BaseTool
from pydantic import BaseModel, Field

from everthread.core.errors import Invalid
from everthread.turn.tools.desk import Desk, Todo
from everthread.turn.tools.shaping import as_tool

MAX_TODOS = 200
_SIGNS = {"pending": "[ ]", "in_progress": "[~]", "completed": "[x]"}


class TodoItem(BaseModel):
    """One thing to do."""

    content: str = Field(min_length=1, max_length=1_000, description="what is to be done")
    status: Literal["pending", "in_progress", "completed"] = "pending"


def tools(desk: Desk) -> Sequence[BaseTool]:
    return [as_tool(function, desk=desk) for function in (now, todo_write, todo_read)]


async def now(desk: Desk, timezone: Annotated[str, "such as Asia/Shanghai"] = "UTC") -> str:
    """The date, the weekday and the time now."""
    try:
        here = desk.now().astimezone(UTC if timezone == "UTC" else ZoneInfo(timezone))
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise Invalid(
            f"{timezone!r} is no time zone; write one such as Asia/Shanghai or UTC", field="timezone"
        ) from None
    return f"{here.isoformat(timespec='seconds')} ({here.strftime('%A')}, {timezone})"


async def todo_write(
    desk: Desk, todos: Annotated[list[TodoItem], Field(max_length=MAX_TODOS, description="the whole list, in order")]
) -> str:
    """Write down what is to be done, in the place of the former list. Keep at most one in progress."""
    desk.notes.write_todos([Todo(content=one.content, status=one.status) for one in todos])
    return shown(await desk.notes.todos())


async def todo_read(desk: Desk) -> str:
    """What was to be done, and how far it is."""
    return shown(await desk.notes.todos())


def shown(todos: Sequence[Todo]) -> str:
    """The list as people and models read it."""
    return "\n".join(f"{_SIGNS[todo.status]} {todo.content}" for todo in todos) or "Nothing is to be done."
