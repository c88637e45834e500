"""Tools of the users' own: functions registered with `@everthread.tool`, and packages' entry points `everthread.tools`.

An entry point names a function, a LangChain tool, or a list of these. One that cannot be loaded is told of and left
out: a broken package must not take every turn with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from logging import getLogger
from typing import NamedTuple

from langchain_core.tools import BaseTool

from everthread.core.errors import EverthreadError, Invalid
from everthread.core.tools import OwnTool, own_tool, registered
from everthread.turn.tools.calling import guarded
from everthread.turn.tools.desk import Desk
from everthread.turn.tools.shaping import as_tool

GROUP = "everthread.tools"
_LOG = getLogger("everthread.tools")
_BROKEN = (ArithmeticError, AssertionError, AttributeError, EverthreadError, ImportError, LookupError, NameError)
_BROKEN_TOO = (OSError, RuntimeError, SyntaxError, TypeError, ValueError)
"""What a module may raise while it is imported."""


class Loaded(NamedTuple):
    """What the entry points gave, and what is wrong with those that gave nothing."""

    tools: tuple[OwnTool | BaseTool, ...]
    problems: tuple[str, ...]


def tools(desk: Desk) -> Sequence[BaseTool]:
    """Registered ones go before those of packages."""
    return [_made(one, desk) for one in (*registered().values(), *loaded().tools)]


def _made(one: OwnTool | BaseTool, desk: Desk) -> BaseTool:
    if isinstance(one, BaseTool):
        return guarded(one, desk.policy.timeout_seconds)
    return as_tool(
        one.function,
        name=one.name,
        description=one.description,
        desk=desk,
        offered=one.offered,
        timeout_seconds=one.timeout_seconds,
    )


@cache
def loaded() -> Loaded:
    """Read once: packages do not come and go while a process runs."""
    return load(entry_points(group=GROUP))


def load(points: Iterable[EntryPoint]) -> Loaded:
    """The tools that these entry points name."""
    found: list[OwnTool | BaseTool] = []
    problems: list[str] = []
    for point in points:
        try:
            found += _tools_in(point.load())
        except (*_BROKEN, *_BROKEN_TOO) as problem:
            problems.append(f"the entry point {point.name} = {point.value} gives no tool: {problem}")
            _LOG.warning(problems[-1])
    return Loaded(tuple(found), tuple(problems))


def _tools_in(given: object) -> Iterator[OwnTool | BaseTool]:
    if isinstance(given, OwnTool | BaseTool):
        yield given
    elif isinstance(given, list | tuple):
        for one in given:
            yield from _tools_in(one)
    elif callable(given):
        yield own_tool(given)
    else:
        raise Invalid(f"it must name a function, a tool or a list of them, not {type(given).__name__}")
