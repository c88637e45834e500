"""A database that a saver or a store opens for itself, by its address, in this loop or in one of its own."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self

from everthread.adapters.checkpoints.bridge import Bridge
from everthread.instance import Everthread


class Opened:
    """As a context manager, async or not, it opens the database and closes it."""

    _et: Everthread
    _bridge: Bridge | None
    _own: Bridge | None = None

    async def _begin(self) -> None:
        """What is to be done once the database is open."""

    async def __aenter__(self) -> Self:
        self._bridge = Bridge.here()
        await self._et.__aenter__()
        await self._begin()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._et.close()

    def __enter__(self) -> Self:
        self._own = Bridge.start()
        try:
            self._own.call(self.__aenter__())
        except BaseException:
            self._own.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._own is not None:
            bridge, self._own = self._own, None
            try:
                bridge.call(self._et.close())
            finally:
                bridge.stop()


def here() -> Bridge | None:
    """The running loop, when there is one."""
    try:
        return Bridge(asyncio.get_running_loop())
    except RuntimeError:
        return None
