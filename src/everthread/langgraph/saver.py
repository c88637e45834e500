"""`EverthreadSaver`: the checkpointer to give to a graph, over an open database or an address."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Self

from langgraph.checkpoint.serde.base import SerializerProtocol

from everthread import bootstrap
from everthread.adapters.checkpoints.saver import LogSaver, OnDelete
from everthread.adapters.checkpoints.serde import Allowed
from everthread.core.ids import LOCAL
from everthread.instance import Everthread
from everthread.langgraph.lifecycle import Opened, here
from everthread.settings import load


class EverthreadSaver(Opened, LogSaver):
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
    - What is stored becomes only types that LangGraph calls safe, and those named in `allowed`.
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
        super().__init__(et, owner=owner, on_delete=on_delete, allowed=allowed, serde=serde, bridge=here())
        self._et = et

    @classmethod
    def from_url(cls, url: str, **options: Any) -> Self:
        """Over the database at an address, as a context manager, async or not; takes the same options."""
        return cls(bootstrap.open(url), **options)

    async def _begin(self) -> None:
        await self._ending.settle(self.serde)


@asynccontextmanager
async def make_saver() -> AsyncIterator[EverthreadSaver]:
    """For `langgraph.json`: {"checkpointer": {"path": "everthread.langgraph:make_saver"}}.

    The database and the owner are those of the settings (`EVERTHREAD_DATABASE`, `EVERTHREAD_OWNER`).
    """
    settings = load({}).settings
    async with EverthreadSaver.from_url(settings.database, owner=settings.owner) as saver:
        yield saver
