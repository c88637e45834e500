"""What is served, and to whom: each graph over the checkpoints and documents of the owner who asks."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from everthread.adapters.checkpoints.bridge import Bridge
from everthread.adapters.checkpoints.saver import LogSaver
from everthread.adapters.checkpoints.store import LogStore
from everthread.http.protocol.graphs import Graph, Graphs
from everthread.instance import Everthread

_MOST_OWNERS = 256
V = TypeVar("V")


class Served:
    """Graphs over an open database."""

    def __init__(self, et: Everthread, graphs: Graphs) -> None:
        self.et = et
        self.graphs = graphs
        self._bridge = Bridge.here()
        self._savers: OrderedDict[str, LogSaver] = OrderedDict()
        self._stores: OrderedDict[str, LogStore] = OrderedDict()

    def saver(self, owner: str) -> LogSaver:
        """The checkpoints of an owner."""
        return _recent(self._savers, owner, lambda: LogSaver(self.et, owner=owner, bridge=self._bridge))

    def store(self, owner: str) -> LogStore:
        """The documents of an owner."""
        return _recent(self._stores, owner, lambda: LogStore(self.et, owner=owner, bridge=self._bridge))

    @asynccontextmanager
    async def opened(self, graph_id: str, owner: str, config: Mapping[str, Any]) -> AsyncIterator[Graph]:
        """A graph, for one owner; NotFound when there is none by this name."""
        offer = self.graphs.get(graph_id)
        async with offer.opened(config, self.saver(owner), self.store(owner)) as graph:
            yield graph


def _recent(kept: OrderedDict[str, V], owner: str, make: Callable[[], V]) -> V:
    """The one of this owner; those that nobody asked for lately are let go."""
    found = kept.pop(owner, None) or make()
    kept[owner] = found
    while len(kept) > _MOST_OWNERS:
        kept.popitem(last=False)
    return found
