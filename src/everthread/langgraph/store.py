"""`EverthreadStore`: the store of documents to give to a graph, over an open database or an address."""

from __future__ import annotations

from typing import Any, Self

from langgraph.store.base import IndexConfig, TTLConfig

from everthread import bootstrap
from everthread.adapters.checkpoints.store import LogStore
from everthread.core.clock import Clock, system_clock
from everthread.core.ids import LOCAL
from everthread.instance import Everthread
from everthread.langgraph.lifecycle import Opened, here


class EverthreadStore(Opened, LogStore):
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
        super().__init__(et, owner=owner, index=index, ttl=ttl, clock=clock, bridge=here())

    @classmethod
    def from_url(cls, url: str, **options: Any) -> Self:
        """Over the database at an address, as a context manager, async or not; takes the same options."""
        clock = options.get("clock", system_clock)
        return cls(bootstrap.open(url, clock=clock), **options)
