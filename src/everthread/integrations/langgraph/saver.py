"""`EverthreadSaver`: the checkpointer to give to a graph, over an open database or an address."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Self

from langgraph.checkpoint.serde.base import SerializerProtocol

from everthread import bootstrap
from everthread.adapters.checkpoints.bridge import Bridge
from everthread.adapters.checkpoints.saver import LogSaver, OnDelete
from everthread.adapters.checkpoints.serde import Allowed
from everthread.core.ids import LOCAL
from everthread.instance import Everthread
from everthread.settings import load


class EverthreadSaver(LogSaver):
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
        super().__init__(et, owner=owner, on_delete=on_delete, allowed=allowed, serde=serde, bridge=_here())
        self._et = et
        self._opened: Bridge | None = None

    @classmethod
    def from_url(cls, url: str, **options: Any) -> Self:
        """Over the database at an address, as a context manager, async or not; takes the same options."""
        return cls(bootstrap.open(url), **options)

    async def __aenter__(self) -> Self:
        self._bridge = Bridge.here()
        await self._et.__aenter__()
        await self._threads.settle(self.serde)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._et.close()

    def __enter__(self) -> Self:
        self._bridge = self._opened = Bridge.start()
        try:
            self._opened.call(self.__aenter__())
        except BaseException:
            self._opened.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._opened is not None:
            bridge, self._opened = self._opened, None
            try:
                bridge.call(self._et.close())
            finally:
                bridge.stop()


def _here() -> Bridge | None:
    try:
        return Bridge(asyncio.get_running_loop())
    except RuntimeError:
        return None


@asynccontextmanager
async def make_saver() -> AsyncIterator[EverthreadSaver]:
    """For `langgraph.json`: {"checkpointer": {"path": "everthread.integrations.langgraph:make_saver"}}.

    The database and the owner are those of the settings (`EVERTHREAD_DATABASE`, `EVERTHREAD_OWNER`).
    """
    settings = load({}).settings
    async with EverthreadSaver.from_url(settings.database, owner=settings.owner) as saver:
        yield saver
