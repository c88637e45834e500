"""Checkpoints that savers were given and have not put into the log yet, so that other captures let them go first.

A checkpoint tells where a run goes on. LangGraph saves it in the background while the run goes on already: what the
middleware or a stream then hears first of an answer made again would stand after the answer that it replaces.

`underway` is for the calls of one saver, which share a baton; this is for all captures, in whichever thread or loop.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from weakref import WeakKeyDictionary

from everthread.core.nouns import Ref
from everthread.instance import Everthread

_PAUSE_SECONDS = 0.001
_PATIENCE_SECONDS = 10.0
"""A capture waits no longer: better in the wrong place than not in the log."""
_LOOKS = 2
"""LangGraph begins the next checkpoint when one has ended: it is gone when two looks in a row see none."""


class Arriving:
    """Those of one database, by thread."""

    def __init__(self) -> None:
        self._counts: Counter[Ref] = Counter()
        self._guard = threading.Lock()

    @contextmanager
    def of(self, ref: Ref) -> Iterator[None]:
        """While one of a thread is on its way."""
        with self._guard:
            self._counts[ref] += 1
        try:
            yield
        finally:
            with self._guard:
                self._counts[ref] -= 1
                if not self._counts[ref]:
                    del self._counts[ref]

    async def settled(self, ref: Ref) -> None:
        """Until none of a thread is on its way."""
        if ref not in self._counts:
            return
        quiet, until = 0, time.monotonic() + _PATIENCE_SECONDS
        while quiet < _LOOKS and time.monotonic() < until:
            await asyncio.sleep(_PAUSE_SECONDS)
            quiet = 0 if ref in self._counts else quiet + 1


_ARRIVING: WeakKeyDictionary[Everthread, Arriving] = WeakKeyDictionary()


def arriving(et: Everthread) -> Arriving:
    """Those that all savers over an open database have."""
    return _ARRIVING.setdefault(et, Arriving())
