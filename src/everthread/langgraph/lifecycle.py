"""Open a database for a program that is not async, or for a saver that gets an address instead of a database.

    with open_sync("sqlite:///et.db") as et:
        graph = builder.compile(checkpointer=EverthreadSaver(et), store=EverthreadStore(et))
        saver, middleware = ArchivingSaver(SqliteSaver(...), et), EverthreadMiddleware(et)

The database is open in an event loop of its own, and may be used from any thread. What the database itself can do is
async; `run_sync` waits for it:

    with open_sync("sqlite:///et.db") as et:
        hits = run_sync(et, et.search("passport"))
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar, overload
from weakref import WeakKeyDictionary

from everthread import bootstrap
from everthread.adapters.checkpoints.bridge import Bridge, running_loop
from everthread.core.errors import Conflict, EverthreadError, Invalid
from everthread.instance import Everthread, check_everthread

P = ParamSpec("P")
R = TypeVar("R")


class OpensDatabase:
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


_BRIDGES: WeakKeyDictionary[Everthread, Bridge] = WeakKeyDictionary()


def current_bridge(et: Everthread) -> Bridge | None:
    """The loop of a database that `open_sync` opened, else the running one, when there is one."""
    known, loop = _BRIDGES.get(check_everthread(et)), running_loop()
    return known or (None if loop is None else Bridge(loop))


def _sync(open_: Callable[P, Everthread]) -> Callable[P, AbstractContextManager[Everthread]]:
    @contextmanager
    def open_sync(*args: P.args, **kwargs: P.kwargs) -> Iterator[Everthread]:
        bridge = Bridge.start()
        et = open_(*args, **kwargs)
        try:
            bridge.call(et.__aenter__())
            _BRIDGES[et] = bridge
            try:
                yield et
            finally:
                bridge.call(et.close())
        finally:
            _BRIDGES.pop(et, None)
            bridge.stop()

    options = inspect.cleandoc(open_.__doc__ or "").partition("Args:")[2]
    open_sync.__doc__ = f"{_OPEN_SYNC}\n\nArgs:{options}"
    signature = inspect.signature(open_).replace(return_annotation="AbstractContextManager[Everthread]")
    open_sync.__signature__ = signature  # type: ignore[attr-defined]
    return open_sync


_OPEN_SYNC = """Open a database of conversations in a program that is not async: `with open_sync(url) as et`.

It takes the options of `everthread.open`. What `et` can do is async; `run_sync` runs it and waits:

    with open_sync("sqlite:///et.db") as et:
        hits = run_sync(et, et.search("passport"))"""

open_sync = _sync(bootstrap.open)


@overload
def run_sync(et: Everthread, work: Coroutine[Any, Any, R]) -> R: ...
@overload
def run_sync(et: Everthread, work: AsyncIterator[R]) -> list[R]: ...
def run_sync(et: Everthread, work: Coroutine[Any, Any, R] | AsyncIterator[R]) -> R | list[R]:
    """Run something of a database that `open_sync` opened, and wait for its result; of an iterator, for all of it.

    ```py
    with open_sync("sqlite:///et.db") as et:
        conv = run_sync(et, et.conversations.get("trip"))
        for message in run_sync(et, conv.messages()):
            print(message.role, message.text)
    ```
    """
    if isinstance(work, AsyncIterator):
        return bridge_of(et).call(_all_of(work))
    if not inspect.iscoroutine(work):
        raise Invalid("must be a call that is not awaited yet, such as et.search('passport')", field="work")
    try:
        bridge = bridge_of(et)
    except EverthreadError:
        work.close()
        raise
    result: R = bridge.call(work)
    return result


async def _all_of(iterator: AsyncIterator[R]) -> list[R]:
    return [one async for one in iterator]


def bridge_of(et: Everthread) -> Bridge:
    """The bridge to the loop in which a database is open: its own, or the loop of the first call."""
    known = _BRIDGES.get(check_everthread(et))
    if known is None:
        try:
            known = _BRIDGES[et] = Bridge(asyncio.get_running_loop())
        except RuntimeError:
            raise Conflict(
                "the event loop of this database is unknown: create this inside the loop that opened it, or open the "
                "database with `with everthread.langgraph.open_sync(url) as et`"
            ) from None
    return known
