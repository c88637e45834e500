"""Which graphs are served: those that `langgraph.json` or the settings name, each by a file or module and a name in it.

    {"graphs": {"agent": "./agent.py:graph", "writer": {"path": "my_app.graphs:make_writer"}}}

What is named is a graph, compiled or not, or a function that makes one, for each run anew: plain, async, or a context
manager, with or without a config. A graph is never run as it came: it gets a checkpointer and a store over the log, of
the owner who asks.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import json
import os
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import StateGraph
from langgraph.pregel import Pregel
from langgraph.store.base import BaseStore

from everthread.core.errors import Invalid, NotFound

Graph = Pregel[Any, Any, Any, Any]
_MODULE = "everthread_served_{}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A graph as it was named."""

    id: str
    place: str
    """`./agent.py:graph` or `package.module:graph`."""
    folder: Path
    """What a file's path is relative to."""
    description: str | None = None


@dataclass(frozen=True, kw_only=True)
class Offer:
    """What is there under a name: a graph, or how to make one."""

    id: str
    made: Any
    description: str | None = None

    @cached_property
    def is_factory(self) -> bool:
        return not isinstance(self.made, Pregel | StateGraph)

    @asynccontextmanager
    async def opened(
        self, config: Mapping[str, Any], checkpointer: BaseCheckpointSaver[Any] | None, store: BaseStore | None
    ) -> AsyncIterator[Graph]:
        """The graph over this checkpointer and this store, for as long as it is used."""
        async with _made(self.made, config) as found:
            graph = found.compile() if isinstance(found, StateGraph) else found
            if not isinstance(graph, Pregel):
                raise Invalid(f"is no graph but {type(graph).__name__}", field=f"graphs.{self.id}")
            yield graph.copy(update={"checkpointer": checkpointer, "store": store})


@asynccontextmanager
async def _made(made: Any, config: Mapping[str, Any]) -> AsyncIterator[Any]:
    if isinstance(made, Pregel | StateGraph):
        yield made
        return
    result = made(config) if _takes_config(made) else made()
    if isinstance(result, AbstractAsyncContextManager):
        async with result as graph:
            yield graph
    elif isinstance(result, AbstractContextManager):
        with result as graph:
            yield graph
    else:
        yield await result if inspect.isawaitable(result) else result


def _takes_config(make: Callable[..., Any]) -> bool:
    return any(
        parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
        for parameter in inspect.signature(make).parameters.values()
    )


@dataclass(frozen=True, kw_only=True)
class Graphs:
    """All that are served, by their names."""

    offers: Mapping[str, Offer] = field(default_factory=dict)

    def get(self, id: str) -> Offer:
        """NotFound names those there are."""
        found = self.offers.get(id)
        if found is None:
            there = ", ".join(sorted(self.offers)) or "none"
            raise NotFound(f"no graph {id!r}; there are: {there}")
        return found

    def __contains__(self, id: object) -> bool:
        return id in self.offers

    def __iter__(self) -> Any:
        return iter(self.offers.values())


# -- reading what is named -------------------------------------------------------------------------------------------


def named_in_file(path: Path) -> list[Named]:
    """The graphs of a `langgraph.json`. Its `dependencies` that are folders can be imported from, its `env` is set."""
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise Invalid(f"there is no file {path}", field="langgraph_config") from None
    except ValueError as problem:
        raise Invalid(f"{path} is not JSON: {problem}", field="langgraph_config") from problem
    folder = path.resolve().parent
    for one in config.get("dependencies", ()):
        _add_to_path(folder / one)
    _set_environment(config.get("env") or {}, folder)
    return [_named(id, given, folder) for id, given in config.get("graphs", {}).items()]


def _named(id: str, given: Any, folder: Path) -> Named:
    place = given.get("path") if isinstance(given, dict) else given
    if not isinstance(place, str) or ":" not in place:
        raise Invalid('is written as "./file.py:name" or "package.module:name"', field=f"graphs.{id}")
    description = given.get("description") if isinstance(given, dict) else None
    return Named(id=id, place=place, folder=folder, description=description)


def named_in_settings(graphs: Mapping[str, str], folder: Path) -> list[Named]:
    """The graphs of the settings' table."""
    return [_named(id, place, folder) for id, place in graphs.items()]


def _add_to_path(folder: Path) -> None:
    if folder.is_dir() and str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


def _set_environment(env: Any, folder: Path) -> None:
    """A file of variables or a table of them; what is set already stays."""
    if isinstance(env, str):
        lines = (folder / env).read_text(encoding="utf-8").splitlines() if (folder / env).is_file() else []
        pairs = [line.split("=", 1) for line in lines if "=" in line and not line.lstrip().startswith("#")]
        env = {name.strip().removeprefix("export "): value.strip().strip("\"'") for name, value in pairs}
    for name, value in env.items():
        os.environ.setdefault(name, str(value))


def load(named: list[Named]) -> Graphs:
    """Import what is named; Invalid says which one is not there."""
    return Graphs(offers={one.id: _offer(one) for one in named})


def _offer(named: Named) -> Offer:
    place, _, name = named.place.rpartition(":")
    module = _from_file(named, Path(place)) if place.endswith(".py") or "/" in place else _from_module(named, place)
    made = getattr(module, name, None)
    if made is None or not (isinstance(made, Pregel | StateGraph) or callable(made)):
        raise Invalid(f"{named.place} is no graph and no function that makes one", field=f"graphs.{named.id}")
    return Offer(id=named.id, made=made, description=named.description)


def _from_file(named: Named, path: Path) -> ModuleType:
    whole = (named.folder / path).resolve()
    name = _MODULE.format(f"{abs(hash(str(whole))):x}")
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, whole)
    if spec is None or spec.loader is None or not whole.is_file():
        raise Invalid(f"there is no file {path}", field=f"graphs.{named.id}")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _from_module(named: Named, place: str) -> ModuleType:
    try:
        return importlib.import_module(place)
    except ModuleNotFoundError as problem:
        raise Invalid(f"cannot import {place}: {problem}", field=f"graphs.{named.id}") from problem
