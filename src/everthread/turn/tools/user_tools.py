"""The users' own tools: functions registered with `@everthread.tool`, and packages' entry points `everthread.tools`.

An entry point names a function, a LangChain tool, or a list of these. One that cannot be loaded is logged and left out:
a broken package must not break every turn.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from logging import getLogger
from typing import NamedTuple

from langchain_core.tools import BaseTool

from everthread.core.errors import EverthreadError, Invalid
from everthread.core.tools import RegisteredTool, registered_tools, tool_from
from everthread.turn.tools.tool_context import ToolContext
from everthread.turn.tools.wrap import as_tool, guard

ENTRY_POINT_GROUP = "everthread.tools"
_LOG = getLogger("everthread.tools")
_IMPORT_ERRORS = (
    ArithmeticError, AssertionError, AttributeError, EverthreadError, ImportError, LookupError, NameError, OSError,
    RuntimeError, SyntaxError, TypeError, ValueError,
)  # fmt: skip
"""What a module may raise while it is imported."""


class EntryPointTools(NamedTuple):
    """The tools of all entry points, and what is wrong with those that gave none."""

    tools: tuple[RegisteredTool | BaseTool, ...]
    problems: tuple[str, ...]


def tools(tool_context: ToolContext) -> Sequence[BaseTool]:
    """Registered ones come before those of packages."""
    return [_make(one, tool_context) for one in (*registered_tools().values(), *entry_point_tools().tools)]


def _make(one: RegisteredTool | BaseTool, tool_context: ToolContext) -> BaseTool:
    if isinstance(one, BaseTool):
        return guard(one, tool_context.policy.timeout_seconds)
    return as_tool(
        one.function,
        name=one.name,
        description=one.description,
        tool_context=tool_context,
        offered=one.offered,
        timeout_seconds=one.timeout_seconds,
    )


@cache
def entry_point_tools() -> EntryPointTools:
    """Read once: packages do not come and go while a process runs."""
    return load_entry_points(entry_points(group=ENTRY_POINT_GROUP))


def load_entry_points(points: Iterable[EntryPoint]) -> EntryPointTools:
    """The tools that these entry points name."""
    found: list[RegisteredTool | BaseTool] = []
    problems: list[str] = []
    for point in points:
        try:
            found += _flatten(point.load())
        except _IMPORT_ERRORS as problem:
            problems.append(f"the entry point {point.name} = {point.value} gives no tool: {problem}")
            _LOG.warning(problems[-1])
    return EntryPointTools(tuple(found), tuple(problems))


def _flatten(given: object) -> Iterator[RegisteredTool | BaseTool]:
    if isinstance(given, RegisteredTool | BaseTool):
        yield given
    elif isinstance(given, list | tuple):
        for one in given:
            yield from _flatten(one)
    elif callable(given):
        yield tool_from(given)
    else:
        raise Invalid(f"it must name a function, a tool or a list of them, not {type(given).__name__}")
