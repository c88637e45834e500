"""Writes on their way to the store. A checkpoint waits for those on its parent.

LangGraph saves a task's writes and the next checkpoint in the background, begun in this order but not ended in it. A
write that came after the checkpoint which applies it would be held for a list that never names it, and the next fork
from its checkpoint would take it for something new.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from everthread.adapters.checkpoints.spots import Spot


class Underway:
    """The writes that have begun and not ended, by the checkpoint they are made on."""

    def __init__(self) -> None:
        self._begun: dict[Spot, list[asyncio.Event]] = {}

    @contextmanager
    def on(self, spot: Spot) -> Iterator[None]:
        """While writes on this checkpoint are being stored."""
        ended = asyncio.Event()
        self._begun.setdefault(spot, []).append(ended)
        try:
            yield
        finally:
            ended.set()
            self._begun[spot].remove(ended)
            if not self._begun[spot]:
                del self._begun[spot]

    async def ended(self, spot: Spot) -> None:
        """When those that have begun on this checkpoint are stored."""
        for event in [*self._begun.get(spot, ())]:
            await event.wait()
