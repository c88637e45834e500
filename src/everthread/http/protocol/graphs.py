"""Which graphs are served, and how one is opened for an owner.

`langgraph.json` and the settings name graphs, each by a file or module and a name in it:

    {"graphs": {"agent": "./agent.py:graph", "writer": {"path": "my_app.graphs:make_writer"}}}

The name stands for a graph, compiled or not, or for a function that makes one for each use (`graph_factories`). A graph
never runs as it came: it gets a checkpointer and a store over the log of the owner it runs for.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import re
import sys
import zlib
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from langgraph.channels import BinaryOperatorAggregate, DeltaChannel
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import StateGraph
from langgraph.pregel import Pregel
from langgraph.store.base import BaseStore, TTLConfig
from langgraph_sdk.runtime import AccessContext

from everthread.adapters.checkpoints.bridge import Bridge
from everthread.adapters.checkpoints.graph_types import types_of
from everthread.adapters.checkpoints.saver import LogSaver
from everthread.adapters.checkpoints.store import LogStore, VectorSearch
from everthread.core.errors import GraphFailed, Invalid, NotFound
from everthread.http.protocol.graph_factories import GraphUse, check_factory, make_graph
from everthread.instance import Everthread

Graph = Pregel[Any, Any, Any, Any]
_MODULE_NAME = "everthread_served_{}"
_MAX_OWNERS = 256
_NAMELESS = "LangGraph"
"""What LangGraph calls a graph that was compiled without a name."""
V = TypeVar("V")


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphLocation:
    """Where the configuration says a graph is."""

    id: str
    path: str
    """`./agent.py:graph` or `package.module:graph`."""
    folder: Path
    """The folder that a file's path is relative to."""
    description: str | None = None


@dataclass(frozen=True, kw_only=True)
class GraphSpec:
    """A graph, or the function that makes one."""

    id: str
    source: Any
    description: str | None = None

    @asynccontextmanager
    async def open(
        self,
        config: Mapping[str, Any],
        checkpointer: BaseCheckpointSaver[Any] | None,
        store: BaseStore | None,
        use: GraphUse | None = None,
    ) -> AsyncIterator[Graph]:
        """The graph over this checkpointer and this store, for as long as it is used. GraphFailed when the function
        that makes it fails."""
        async with AsyncExitStack() as stack:
            built = self.source
            if not isinstance(built, Pregel | StateGraph):
                try:
                    built = await make_graph(stack, built, config, store, use or GraphUse())
                except GraphFailed as problem:
                    raise GraphFailed(f"graph {self.id!r} could not be made: {problem}") from problem.__cause__
            graph = built.compile() if isinstance(built, StateGraph) else built
            if not isinstance(graph, Pregel):
                raise Invalid(f"must make a graph, not {type(graph).__name__}", field=f"graphs.{self.id}")
            if isinstance(checkpointer, LogSaver):
                checkpointer = checkpointer.for_types(types_of(graph))
            name = self.id if graph.name == _NAMELESS else graph.name
            yield graph.copy(update={"checkpointer": checkpointer, "store": store, "name": name})


@dataclass(frozen=True, kw_only=True)
class GraphCatalog:
    """All graphs that are served, by name."""

    specs: Mapping[str, GraphSpec] = field(default_factory=dict)

    def get(self, id: str) -> GraphSpec:
        """A graph by its name; NotFound lists those there are."""
        found = self.specs.get(id)
        if found is None:
            raise NotFound(f"no graph {id!r}; available graphs: {', '.join(sorted(self.specs)) or 'none'}")
        return found

    def __contains__(self, id: object) -> bool:
        return id in self.specs

    def __iter__(self) -> Iterator[GraphSpec]:
        return iter(self.specs.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentOptions:
    """How the documents of every owner are searched and how long they are kept."""

    index: VectorSearch | None = None
    ttl: TTLConfig | None = None


class OpenGraphs:
    """The graphs over an open database: each opened with the checkpoints and documents of one owner."""

    def __init__(
        self,
        et: Everthread,
        catalog: GraphCatalog,
        allowed: Sequence[type] = (),
        documents: DocumentOptions | None = None,
    ) -> None:
        """`allowed`: types that states may hold, besides those that the graphs name."""
        self.et = et
        self.catalog = catalog
        self._allowed = allowed
        self._documents = documents or DocumentOptions()
        self._keeps_ids: dict[str, bool] = {}
        self._context_schemas: dict[str, Any] = {}
        self._outputs: dict[str, frozenset[str]] = {}
        self._bridge = Bridge.here()
        self._savers: OrderedDict[str, LogSaver] = OrderedDict()
        self._stores: OrderedDict[str, LogStore] = OrderedDict()

    def saver(self, owner: str) -> LogSaver:
        """The checkpoints of an owner."""
        return _cached(
            self._savers, owner, lambda: LogSaver(self.et, owner=owner, allowed=self._allowed, bridge=self._bridge)
        )

    def store(self, owner: str) -> LogStore:
        """The documents of an owner."""
        index, ttl = self._documents.index, self._documents.ttl
        return _cached(
            self._stores, owner, lambda: LogStore(self.et, owner=owner, index=index, ttl=ttl, bridge=self._bridge)
        )

    @asynccontextmanager
    async def open(
        self,
        graph_id: str,
        owner: str,
        config: Mapping[str, Any],
        access: AccessContext = "threads.read",
        context: Mapping[str, Any] | None = None,
    ) -> AsyncIterator[Graph]:
        """A graph for one owner; NotFound when there is none by this name. `access` and the `context` of a run are for
        the function that makes it, if one does."""
        use = GraphUse(access=access, owner=owner, context=context)
        async with self.catalog.get(graph_id).open(config, self.saver(owner), self.store(owner), use) as graph:
            self._keeps_ids.setdefault(graph_id, _keeps_message_ids(graph))
            self._context_schemas[graph_id] = graph.context_schema
            if not isinstance(graph.output_channels, str):
                self._outputs[graph_id] = frozenset(graph.output_channels)
            yield graph

    def context_schema(self, graph_id: str) -> Any:
        """The `context_schema` of a graph. For a graph that a function makes it is known once the graph was opened."""
        source = self.catalog.get(graph_id).source
        is_graph = isinstance(source, Pregel | StateGraph)
        return source.context_schema if is_graph else self._context_schemas.get(graph_id)

    def output_of(self, graph_id: str | None, values: Any) -> Any:
        """The values of a state that are in the graph's `output_schema`, if the graph was opened before; else all."""
        names = self._outputs.get(graph_id or "")
        return values if names is None else {name: value for name, value in values.items() if name in names}

    def keeps_message_ids(self, graph_id: str) -> bool:
        """Whether the messages of a graph's input are in its state under the ids they came with. For a graph that a
        function makes this is known once the graph was opened."""
        source = self.catalog.get(graph_id).source
        if graph_id not in self._keeps_ids and isinstance(source, Pregel | StateGraph):
            self._keeps_ids[graph_id] = _keeps_message_ids(source)
        return self._keeps_ids.get(graph_id, False)


def _keeps_message_ids(graph: Graph | StateGraph[Any, Any, Any, Any]) -> bool:
    """Whether the graph keeps the id of a message, tried with one: `add_messages` and what is built on it do, a
    plain list does not."""
    channel = graph.channels.get("messages")
    sample = {"role": "user", "content": "", "id": "sample"}
    try:
        if isinstance(channel, BinaryOperatorAggregate):
            merged = channel.operator([], [sample])
        elif isinstance(channel, DeltaChannel):
            merged = channel.reducer([], [[sample]])
        else:
            return False
    except Exception:  # noqa: BLE001 - the user's own function
        return False
    return isinstance(merged, list) and [getattr(message, "id", None) for message in merged] == ["sample"]


def _cached(cache: OrderedDict[str, V], owner: str, make: Callable[[], V]) -> V:
    """This owner's value; the least recently used ones are dropped."""
    found = cache.pop(owner, None) or make()
    cache[owner] = found
    while len(cache) > _MAX_OWNERS:
        cache.popitem(last=False)
    return found


# -- loading ---------------------------------------------------------------------------------------------------------


def read_config(path: Path) -> dict[str, Any]:
    """A `langgraph.json`."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise Invalid(f"file not found: {path}", field="langgraph_config") from None
    except ValueError as problem:
        raise Invalid(f"{path} is not valid JSON: {problem}", field="langgraph_config") from problem
    if not isinstance(found, dict):
        raise Invalid(f"{path} must be an object", field="langgraph_config")
    return found


def locations_in_file(path: Path) -> list[GraphLocation]:
    """The graphs of a `langgraph.json`. Folders among its `dependencies` become importable, its `env` is set."""
    config, folder = read_config(path), path.resolve().parent
    for dependency in config.get("dependencies", ()):
        _add_to_path(folder / dependency)
    _set_environment(config.get("env") or {}, folder)
    return [_location(id, given, folder) for id, given in config.get("graphs", {}).items()]


def locations_in_settings(graphs: Mapping[str, str], folder: Path) -> list[GraphLocation]:
    """The graphs of the setting `graphs`."""
    return [_location(id, path, folder) for id, path in graphs.items()]


def _location(id: str, given: Any, folder: Path) -> GraphLocation:
    path = given.get("path") if isinstance(given, dict) else given
    if not isinstance(path, str) or ":" not in path:
        raise Invalid('must look like "./file.py:name" or "package.module:name"', field=f"graphs.{id}")
    description = given.get("description") if isinstance(given, dict) else None
    return GraphLocation(id=id, path=path, folder=folder, description=description)


def _add_to_path(folder: Path) -> None:
    if folder.is_dir() and str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


def _set_environment(env: Any, folder: Path) -> None:
    """`env` is the path of a file of variables, or a table of them. Variables that are set already stay as they are."""
    if isinstance(env, str):
        lines = (folder / env).read_text(encoding="utf-8").splitlines() if (folder / env).is_file() else []
        pairs = [line.split("=", 1) for line in lines if "=" in line and not line.lstrip().startswith("#")]
        env = {name.strip().removeprefix("export "): value.strip().strip("\"'") for name, value in pairs}
    for name, value in env.items():
        os.environ.setdefault(name, str(value))


def load_graphs(locations: list[GraphLocation]) -> GraphCatalog:
    """Import every graph; Invalid names the one that cannot be found."""
    return GraphCatalog(specs={location.id: _load(location) for location in locations})


def _load(location: GraphLocation) -> GraphSpec:
    source = import_named(location.path, location.folder, f"graphs.{location.id}")
    if source is None or not (isinstance(source, Pregel | StateGraph) or callable(source)):
        raise Invalid(f"{location.path} must be a graph or a function that makes one", field=f"graphs.{location.id}")
    if not isinstance(source, Pregel | StateGraph):
        try:
            check_factory(source)
        except Invalid as problem:
            raise Invalid(f"{location.path} {problem}", field=f"graphs.{location.id}") from None
    return GraphSpec(id=location.id, source=source, description=location.description)


def import_named(place: str, folder: Path, field: str) -> Any:
    """What `./file.py:name` or `package.module:name` stands for; None if the module has nothing of that name. Invalid
    names this field of the configuration."""
    path, _, name = place.rpartition(":")
    is_file = path.endswith(".py") or "/" in path
    module = _module_from_file(folder, Path(path), field) if is_file else _module_by_name(path, field)
    return getattr(module, name, None)


def _module_from_file(folder: Path, path: Path, field: str) -> ModuleType:
    absolute = (folder / path).resolve()
    name = _module_name(path, absolute)
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, absolute)
    if spec is None or spec.loader is None or not absolute.is_file():
        raise Invalid(f"file not found: {path}", field=field)
    # Registered before it runs, as `import` does: dataclasses and pickling look their module up there.
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _module_name(path: Path, absolute: Path) -> str:
    """The same in every process and on every server, because stored values name their types by it: from the path in the
    configuration. Where another folder has a file of the same path, that of the second also says where it is."""
    readable = re.sub(r"\W", "_", str(path.with_suffix("")))
    name = _MODULE_NAME.format(f"{readable}_{zlib.crc32(path.as_posix().encode()):08x}")
    loaded = sys.modules.get(name)
    if loaded is None or loaded.__file__ == str(absolute):
        return name
    return f"{name}_{zlib.crc32(str(absolute).encode()):08x}"


def load_types(names: Sequence[str]) -> list[type]:
    """The types of the setting `allowed_types`; Invalid names the one that cannot be found."""
    return [_load_type(name) for name in names]


def _load_type(given: str) -> type:
    module, _, name = given.partition(":")
    try:
        found = getattr(importlib.import_module(module), name, None) if module and name else None
    except ModuleNotFoundError as problem:
        raise Invalid(f"cannot import {given}: {problem}", field="allowed_types") from problem
    if not isinstance(found, type):
        raise Invalid(f'{given!r} must be the name of a class, as "package.module:Name"', field="allowed_types")
    return found


def _module_by_name(name: str, field: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as problem:
        raise Invalid(f"cannot import {name}: {problem}", field=field) from problem
