"""Writes that wait a moment for the checkpoint that applies them, and are stored with it.

LangGraph hands a task's writes over in one thread and the checkpoint that follows in another, a moment later. Stored
together they are one commit instead of two, and the messages in them are references from the beginning. Whether that
moment is worth waiting for is seen from the last time: who hands over one after the other never waits twice.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from everthread.adapters.checkpoints.checkpoint_intents import PutWrites
from everthread.adapters.checkpoints.threads import CheckpointAddress
from everthread.core import driving

MAX_WAIT_SECONDS = 0.02
"""Longer than a step of a graph takes on a thread of some hundred messages, with the checkpoint before it still on its
way to a slow disk. With 5 ms one set of writes in five gave up, and was a commit of its own."""


class _WaitingWrites:
    """Writes that wait to be told what became of them. A lock does it: a future would cost five times as much."""

    __slots__ = ("_untold", "is_stored", "writes")

    def __init__(self, writes: PutWrites) -> None:
        self.writes = writes
        self.is_stored = False
        self._untold = threading.Lock()
        self._untold.acquire()

    def tell(self, *, is_stored: bool) -> None:
        self.is_stored = is_stored
        self._untold.release()

    def is_told(self, patience_seconds: float = -1) -> bool:
        """Wait, without the baton, so long or until it is."""
        with driving.blocking():
            return self._untold.acquire(timeout=patience_seconds)


class WriteCoalescer:
    """The writes that wait, by the checkpoint they are made on. Touched by whoever has the baton."""

    def __init__(self, patience_seconds: float = MAX_WAIT_SECONDS) -> None:
        self._patience_seconds = patience_seconds
        self._offers: dict[CheckpointAddress, list[_WaitingWrites]] = {}
        self.is_worthwhile = False
        """Whether a checkpoint came last time before the writes on its parent were stored."""

    def is_stored(self, spot: CheckpointAddress, writes: PutWrites) -> bool:
        """Wait; whether a checkpoint has come and was stored with these writes. Only for callers that block."""
        if not self.is_worthwhile:
            return False
        offer = _WaitingWrites(writes)
        self._offers.setdefault(spot, []).append(offer)
        if not offer.is_told(self._patience_seconds):
            if offer in self._offers.get(spot, ()):
                self._withdraw(spot, offer)
                return False
            offer.is_told()  # a checkpoint has taken it along, and is on its way to the disk
        return offer.is_stored

    def _withdraw(self, spot: CheckpointAddress, offer: _WaitingWrites) -> None:
        self.is_worthwhile = False
        self._offers[spot].remove(offer)
        if not self._offers[spot]:
            del self._offers[spot]

    @contextmanager
    def taken(self, spot: CheckpointAddress) -> Iterator[Sequence[PutWrites]]:
        """The writes that wait for a checkpoint on this one. They go on waiting until it is stored, or is not."""
        offers = self._offers.pop(spot, [])
        is_stored = False
        try:
            yield [offer.writes for offer in offers]
            is_stored = True
        finally:
            for offer in offers:
                offer.tell(is_stored=is_stored)
