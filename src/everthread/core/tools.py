"""Tools that users give to every turn, and what tools are allowed. Plain Python: registering loads no framework.

    @everthread.tool
    async def weather(city: str) -> str:
        "What the weather is like in a city now."

The function's signature becomes the schema that a model sees, its docstring the description. A parameter
named `tool_context` is filled in by the turn (the conversation, its workspace) and not shown to the model.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, overload

from everthread.core.errors import Conflict, Invalid

WhenOffered = Literal["always", "when_named"]
"""Whether a model is offered a tool in every turn, or in those that name it: by `allowed_tools` or with an @."""
WHEN_NAMED = "when_named"
"""The tag of a tool that is offered only where it is named."""
Function = TypeVar("Function", bound=Callable[..., Any])
TOOL_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
"""The tool names that every provider accepts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolPolicy:
    """What the tools of a turn are allowed."""

    timeout_seconds: float = 60.0
    """A tool that takes longer is cancelled, and the model is told."""
    run_command: bool = False
    """Whether there is a tool that runs programs, inside the workspace and nowhere else."""
    command_output_bytes: int = 1_000_000
    """How much of a program's output is kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredTool:
    """A function that a user registered."""

    function: Callable[..., Any]
    name: str
    description: str
    offered: WhenOffered = "always"
    timeout_seconds: float | None = None


_registered: dict[str, RegisteredTool] = {}


def registered_tools() -> Mapping[str, RegisteredTool]:
    """The tools that this process has registered, by name."""
    return dict(_registered)


def unregister(name: str) -> None:
    """Remove a tool; does nothing when there is none by this name."""
    _registered.pop(name, None)


@overload
def tool(function: Function, /) -> Function: ...


@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    offered: WhenOffered = "always",
    timeout_seconds: float | None = None,
) -> Callable[[Function], Function]: ...


def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    offered: WhenOffered = "always",
    timeout_seconds: float | None = None,
) -> Any:
    """Register a function, async or not, as a tool that every turn of this process may call.

    The signature becomes the schema that the model sees, the docstring its description. A parameter named
    `tool_context` is filled in by the turn. The function itself stays usable as it is. With `offered="when_named"` the
    tool is offered only in turns that name it.

    ```python
    @everthread.tool
    async def weather(city: str) -> str:
        "Current weather in a city."
        return "sunny"
    ```
    """

    def register(given: Function) -> Function:
        own = tool_from(given, name=name, description=description, offered=offered, timeout_seconds=timeout_seconds)
        known = _registered.get(own.name)
        if known is not None and not _is_same(known.function, given):
            raise Conflict(f"a tool named {own.name!r} exists already; give this one another name")
        _registered[own.name] = own
        return given

    return register if function is None else register(function)


def tool_from(
    function: Callable[..., Any],
    *,
    name: str | None = None,
    description: str | None = None,
    offered: WhenOffered = "always",
    timeout_seconds: float | None = None,
) -> RegisteredTool:
    """A function as a tool; Invalid when a model could not be shown it."""
    if not callable(function):
        raise Invalid(f"must be a function, not {type(function).__name__}", field="tool")
    tool_name = str(getattr(function, "__name__", "")) if name is None else name
    if not TOOL_NAME.fullmatch(tool_name):
        raise Invalid(f"must be letters, digits, - and _, at most 64, not {tool_name!r}", field="name")
    text = inspect.cleandoc(description or function.__doc__ or "")
    if not text:
        raise Invalid(f"the tool {tool_name!r} needs a docstring: models use it to choose a tool", field="description")
    if timeout_seconds is not None and not timeout_seconds > 0:
        raise Invalid("must be more than 0", field="timeout_seconds")
    return RegisteredTool(
        function=function, name=tool_name, description=text, offered=offered, timeout_seconds=timeout_seconds
    )


def _is_same(one: Callable[..., Any], other: Callable[..., Any]) -> bool:
    """A module that is loaded anew registers the same function again."""
    return (one.__module__, getattr(one, "__qualname__", "")) == (other.__module__, getattr(other, "__qualname__", ""))
