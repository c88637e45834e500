"""`EverthreadSaver` and `EverthreadStore`: the checkpointer and the document store to give to a graph."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Self

from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.store.base import IndexConfig, TTLConfig

from everthread import bootstrap
from everthread.adapters.checkpoints.calling_graph import calling_graph
from everthread.adapters.checkpoints.graph_types import types_of
from everthread.adapters.checkpoints.saver import LogSaver, OnDelete
from everthread.adapters.checkpoints.serde import Allowed, StateSerializer
from everthread.adapters.checkpoints.store import LogStore
from everthread.core.clock import Clock, system_clock
from everthread.core.ids import LOCAL
from everthread.instance import Everthread
from everthread.langgraph.lifecycle import OpensDatabase, current_bridge
from everthread.settings import load


class EverthreadSaver(OpensDatabase, LogSaver):
    """A checkpointer that stays small, over a log that keeps every message.

        async with everthread.open("sqlite:///et.db") as et:
            graph = builder.compile(checkpointer=EverthreadSaver(et))

        with EverthreadSaver.from_url("sqlite:///et.db") as saver:
            graph = builder.compile(checkpointer=saver)

    - A list of messages is stored as ranges over the conversation's log, so a checkpoint costs bytes.
    - The channel `messages` feeds history: a message enters the log in the transaction of the checkpoint that first
      has it. What the graph removes from its list, or replaces there, stays in the log.
    - `delete_thread` removes checkpoints; the log is kept (`on_delete="keep"`) or erased (`"erase"`). A later put to
      the same thread begins anew.
    - What is stored becomes only types that LangGraph calls safe, those that the schemas and the code of the graph
      name, and those in `allowed`. What could not be read back is refused when it is written.
    - Everything belongs to `owner`, or to the `everthread_owner` in a call's `configurable`.
    """

    def __init__(
        self,
        et: Everthread,
        *,
        owner: str = LOCAL,
        on_delete: OnDelete = "keep",
        allowed: Allowed = (),
        serde: SerializerProtocol | None = None,
    ) -> None:
        super().__init__(et, owner=owner, on_delete=on_delete, allowed=allowed, serde=serde, bridge=current_bridge(et))
        self._et = et

    @classmethod
    def from_url(
        cls,
        url: str,
        *,
        owner: str = LOCAL,
        on_delete: OnDelete = "keep",
        allowed: Allowed = (),
        serde: SerializerProtocol | None = None,
    ) -> Self:
        """Over the database at an address, as a context manager, async or not; takes the same options."""
        return cls(bootstrap.open(url), owner=owner, on_delete=on_delete, allowed=allowed, serde=serde)

    def _reading_serde(self) -> SerializerProtocol:
        graph = calling_graph()
        if graph is not None and isinstance(self.serde, StateSerializer):
            self.serde.learn(types_of(graph))
        return self.serde

    async def _begin(self) -> None:
        await self._remover.log_held(self.serde)


@asynccontextmanager
async def make_saver() -> AsyncIterator[EverthreadSaver]:
    """For `langgraph.json`: {"checkpointer": {"path": "everthread.langgraph:make_saver"}}.

    The database and the owner are those of the settings (`EVERTHREAD_DATABASE`, `EVERTHREAD_OWNER`).
    """
    settings = load({}).settings
    async with EverthreadSaver.from_url(settings.database, owner=settings.owner) as saver:
        yield saver


class EverthreadStore(OpensDatabase, LogStore):
    """LangGraph's long-term store in the database of the conversations.

        with EverthreadStore.from_url("sqlite:///et.db", index={"dims": 384, "embed": embeddings}) as store:
            graph = builder.compile(checkpointer=saver, store=store)

    - Namespaces, filters with `$eq $ne $gt $gte $lt $lte`, time to live; by meaning when `index` names an embedder.
    - Vectors carry the name of their model, and are never compared with those of another.
    - Everything belongs to `owner`, and goes when everything of that owner is erased.
    """

    def __init__(
        self,
        et: Everthread,
        *,
        owner: str = LOCAL,
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
        clock: Clock = system_clock,
    ) -> None:
        super().__init__(et, owner=owner, index=index, ttl=ttl, clock=clock, bridge=current_bridge(et))

    @classmethod
    def from_url(
        cls,
        url: str,
        *,
        owner: str = LOCAL,
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
        clock: Clock = system_clock,
    ) -> Self:
        """Over the database at an address, as a context manager, async or not; takes the same options."""
        return cls(bootstrap.open(url, clock=clock), owner=owner, index=index, ttl=ttl, clock=clock)
