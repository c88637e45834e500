"""Tools that users give to every turn, and how far tools may go. Plain Python: no framework is loaded by registering.

    @everthread.tool
    async def weather(city: str) -> str:
        "What the weather is like in a city now."

The function's signature becomes the schema that a model sees, its docstring the description. A parameter named `desk`
is filled in by the turn (the conversation, its workspace) and shown to nobody.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, overload

from everthread.core.errors import Conflict, Invalid

Offered = Literal["always", "when_named"]
"""Whether a model is offered a tool in every turn, or in those that name it: by `allowed_tools` or with an @."""
WHEN_NAMED = "when_named"
"""The tag of a tool that is offered only where it is named."""
Function = TypeVar("Function", bound=Callable[..., Any])
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
"""What every provider takes as the name of a tool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolPolicy:
    """How far the tools of a turn may go."""

    timeout_seconds: float = 60.0
    """A tool that takes longer is given up, and the model is told."""
    run_command: bool = False
    """Whether there is a tool that runs programs, inside the workspace and nowhere else."""
    command_output_bytes: int = 1_000_000
    """How much of a program's output is kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnTool:
    """A function that somebody registered."""

    function: Callable[..., Any]
    name: str
    description: str
    offered: Offered = "always"
    timeout_seconds: float | None = None


_registered: dict[str, OwnTool] = {}


def registered() -> Mapping[str, OwnTool]:
    """What this process has registered, by name."""
    return dict(_registered)


def unregister(name: str) -> None:
    """Take a tool out again; nothing when there is none by this name."""
    _registered.pop(name, None)


@overload
def tool(function: Function, /) -> Function: ...


@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    offered: Offered = "always",
    timeout_seconds: float | None = None,
) -> Callable[[Function], Function]: ...


def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    offered: Offered = "always",
    timeout_seconds: float | None = None,
) -> Any:
    """Give a function, async or not, to every turn of this process. It stays the function it was."""

    def register(given: Function) -> Function:
        own = own_tool(given, name=name, description=description, offered=offered, timeout_seconds=timeout_seconds)
        known = _registered.get(own.name)
        if known is not None and not _is_same(known.function, given):
            raise Conflict(f"there is a tool {own.name!r} already; give this one another name")
        _registered[own.name] = own
        return given

    return register if function is None else register(function)


def own_tool(
    function: Callable[..., Any],
    *,
    name: str | None = None,
    description: str | None = None,
    offered: Offered = "always",
    timeout_seconds: float | None = None,
) -> OwnTool:
    """The tool that a function is; Invalid when a model could not be shown it."""
    if not callable(function):
        raise Invalid(f"must be a function, not {type(function).__name__}", field="tool")
    called = str(getattr(function, "__name__", "")) if name is None else name
    if not NAME.fullmatch(called):
        raise Invalid(f"must be letters, digits, - and _, at most 64, not {called!r}", field="name")
    told = inspect.cleandoc(description or function.__doc__ or "")
    if not told:
        raise Invalid(f"the tool {called!r} needs a docstring: a model chooses by it", field="description")
    if timeout_seconds is not None and not timeout_seconds > 0:
        raise Invalid("must be more than 0", field="timeout_seconds")
    return OwnTool(function=function, name=called, description=told, offered=offered, timeout_seconds=timeout_seconds)


def _is_same(one: Callable[..., Any], other: Callable[..., Any]) -> bool:
    """A module that is loaded anew registers the same function again."""
    return (one.__module__, getattr(one, "__qualname__", "")) == (other.__module__, getattr(other, "__qualname__", ""))
