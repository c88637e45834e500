"""A turn that runs in this process: the task, and what it tells."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from everthread.core.nouns import Ref
from everthread.core.turn_events import TurnEvent
from everthread.turn.telling import Teller


@dataclass(slots=True, eq=False)
class LiveTurn:
    """Detached from whoever began it: readers come and go, the turn goes on."""

    id: str
    ref: Ref
    teller: Teller
    task: asyncio.Task[None] | None = None
    has_begun: bool = False
    """Whether the task is where a stop ends it as cancelled: one that never ran would leave the turn open."""

    def listen(self, after: int = 0) -> AsyncIterator[TurnEvent]:
        """Every event after a number, to the end."""
        return self.teller.listen(after)

    def batches(self, after: int = 0, pause_seconds: float = 0.0) -> AsyncIterator[Sequence[TurnEvent]]:
        """The same, as many at a time as lie ready."""
        return self.teller.batches(after, pause_seconds)

    def stop(self) -> None:
        """End it as cancelled; what it has said is kept."""
        if self.task is None or self.task.done():
            return
        if self.has_begun:
            self.task.cancel()
        else:
            self.task.get_loop().call_soon(self.stop)

    async def ended(self) -> None:
        """Wait for its end."""
        if self.task is not None:
            await asyncio.wait([self.task])
