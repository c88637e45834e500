"""Graphs that a function makes for each use: which arguments it takes, and what it is told.

As on LangGraph's own server a function takes a config, a `ServerRuntime`, both in any order, or nothing, and is plain,
async or a context manager:

    async def make_graph(config: RunnableConfig, runtime: ServerRuntime[MyContext]): ...

The runtime says what the graph is for (`access_context`), for whom (`user`), and has the store; in a run also the
context.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager, AsyncExitStack
from dataclasses import dataclass
from inspect import Parameter
from typing import Any, get_args, get_origin

from langchain_core.runnables import RunnableConfig
from langgraph.store.base import BaseStore
from langgraph_sdk.runtime import AccessContext, ServerRuntime, _ExecutionRuntime, _ReadRuntime

from everthread.core.errors import EverthreadError, GraphFailed, Invalid
from everthread.core.ids import LOCAL
from everthread.http.protocol.run_context import build_context
from everthread.text.secrets import redact_secrets

_RUNTIMES = (_ExecutionRuntime, _ReadRuntime)
_NAMES = {"ServerRuntime": ServerRuntime, "RunnableConfig": RunnableConfig}
"""Names that an annotation may use although they were imported for type checkers only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """The owner of a request, as LangGraph shows users to graphs."""

    identity: str
    is_authenticated: bool = True
    permissions: tuple[str, ...] = ()

    @property
    def display_name(self) -> str:
        return self.identity

    def __getitem__(self, key: str) -> Any:
        if key not in self:
            raise KeyError(key)
        return getattr(self, key)

    def __contains__(self, key: object) -> bool:
        return key in tuple(self)

    def __iter__(self) -> Iterator[str]:
        return iter(("identity", "display_name", "is_authenticated", "permissions"))


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphUse:
    """What a graph is opened for."""

    access: AccessContext = "threads.read"
    owner: str = LOCAL
    context: Mapping[str, Any] | None = None
    """The run's context."""

    def runtime(self, store: BaseStore | None, config: Mapping[str, Any], schema: Any) -> Any:
        """The runtime for a function; `schema` is the type it declares for the context."""
        common: dict[str, Any] = {"access_context": self.access, "user": User(identity=self.owner), "store": store}
        if self.access != "threads.create_run":
            return _ReadRuntime(**common)
        return _ExecutionRuntime(**common, context=build_context(schema, self.context, config["configurable"]))


def check_factory(factory: Callable[..., Any]) -> None:
    """Raise Invalid for a function with parameters other than a config and a runtime."""
    _parameters(factory)


async def make_graph(
    stack: AsyncExitStack,
    factory: Callable[..., Any],
    config: Mapping[str, Any],
    store: BaseStore | None,
    use: GraphUse,
) -> Any:
    """The graph that a function makes, open until the stack ends. Whatever it raises becomes GraphFailed, with its
    message."""
    config = {**config, "configurable": dict(config.get("configurable") or {})}
    try:
        given, named = [], {}
        for parameter, is_runtime, schema in _parameters(factory):
            value = use.runtime(store, config, schema) if is_runtime else config
            if parameter.kind is Parameter.POSITIONAL_ONLY:
                given.append(value)
            else:
                named[parameter.name] = value
        made = factory(*given, **named)
        if isinstance(made, AbstractAsyncContextManager):
            return await stack.enter_async_context(made)
        if isinstance(made, AbstractContextManager):
            return stack.enter_context(made)
        return await made if inspect.isawaitable(made) else made
    except EverthreadError:
        raise
    except Exception as problem:
        raise GraphFailed(redact_secrets(f"{type(problem).__name__}: {problem}")) from problem


def _parameters(factory: Callable[..., Any]) -> list[tuple[Parameter, bool, Any]]:
    """The parameters to pass, each with whether it is the runtime, and the type of its context."""
    hints = _hints(factory)
    found: list[tuple[Parameter, bool, Any]] = []
    for parameter in inspect.signature(factory).parameters.values():
        if parameter.kind in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD):
            continue
        hint = hints.get(parameter.name, parameter.annotation)
        is_runtime = _is_runtime(hint) or (hint is Parameter.empty and parameter.name == "runtime")
        if all(other != is_runtime for _, other, _ in found):
            found.append((parameter, is_runtime, next(iter(get_args(hint)), None) if is_runtime else None))
        elif parameter.default is Parameter.empty:
            raise Invalid(
                f"may take a config and a runtime (`runtime: ServerRuntime`), and nothing else: {parameter.name!r} "
                "is neither"
            )
    return found


def _hints(factory: Callable[..., Any]) -> dict[str, Any]:
    function = factory if inspect.isroutine(factory) else getattr(factory, "__call__", factory)  # noqa: B004
    try:
        return typing.get_type_hints(function, localns=_NAMES)
    except Exception:  # noqa: BLE001 - a name that only a type checker knows
        return {}


def _is_runtime(hint: Any) -> bool:
    origin = get_origin(hint)
    if hint is ServerRuntime or origin is ServerRuntime:
        return True
    cls = origin or hint
    return isinstance(cls, type) and issubclass(cls, _RUNTIMES)
