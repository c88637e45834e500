"""A database for programs that are not async: open in a loop of its own, and used from any thread.

    with opened("sqlite:///et.db") as et:
        saver = ArchivingSaver(SqliteSaver(...), et)
        middleware = EverthreadMiddleware(et)

Whoever works with an open database from elsewhere asks here which loop that is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

from everthread import bootstrap
from everthread.adapters.checkpoints.bridge import Bridge
from everthread.core.errors import Conflict
from everthread.instance import Everthread

_BRIDGES: WeakKeyDictionary[Everthread, Bridge] = WeakKeyDictionary()


@contextmanager
def opened(url: str | None = None, **options: Any) -> Iterator[Everthread]:
    """`everthread.open` for a `with` that is not async; takes the same options."""
    bridge = Bridge.start()
    et = bootstrap.open(url, **options)
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


def bridge_of(et: Everthread) -> Bridge:
    """The way to the loop that a database is open in: its own, or the running one that this is first asked in."""
    known = _BRIDGES.get(et)
    if known is None:
        try:
            known = _BRIDGES[et] = Bridge(asyncio.get_running_loop())
        except RuntimeError:
            raise Conflict(
                "it is not known in which loop the database is open; make this inside that loop, or open the "
                "database with `with everthread.langgraph.opened(url) as et`"
            ) from None
    return known
