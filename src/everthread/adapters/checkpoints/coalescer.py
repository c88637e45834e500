"""Let a task's writes wait a moment for the checkpoint that applies them, to commit both at once. A measured trick.

LangGraph hands a task's writes over in one thread and the checkpoint that follows in another, a moment later. Stored
together they are one commit instead of two, and the messages in the writes are references from the beginning. With the
default settings that is 13 to 22 % of a turn's CPU and half of its fsyncs (docs/decisions/0024). Both calls return
when the one commit is on the disk.

Whether the moment is worth waiting for is learnt from the last time: a caller that hands over one after the other
waits once, and then not again.

To remove it: set `MAX_WAIT_SECONDS` to 0 (writes are then always a commit of their own), then delete this module and
the `with_writes` of `PutCheckpoint`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from everthread.adapters.checkpoints.checkpoint_intents import PutWrites
from everthread.adapters.checkpoints.threads import CheckpointAddress
from everthread.adapters.stores import blocking

MAX_WAIT_SECONDS = 0.02
"""Longer than a step of a graph takes on a thread of some hundred messages, with the checkpoint before it still on its
way to a slow disk. With 5 ms one set of writes in five gave up, and was a commit of its own. 0 switches it off."""


class _WaitingWrites:
    """Writes whose caller waits until they are stored or not. A lock signals it: a future would cost five times as
    much."""

    __slots__ = ("_outcome_unknown", "is_stored", "writes")

    def __init__(self, writes: PutWrites) -> None:
        self.writes = writes
        self.is_stored = False
        self._outcome_unknown = threading.Lock()
        self._outcome_unknown.acquire()

    def finish(self, *, is_stored: bool) -> None:
        self.is_stored = is_stored
        self._outcome_unknown.release()

    def wait(self, timeout_seconds: float = -1) -> bool:
        """Wait without the run lock; returns whether the outcome is known."""
        with blocking.released():
            return self._outcome_unknown.acquire(timeout=timeout_seconds)


class WriteCoalescer:
    """The writes that wait, by the checkpoint they belong to. Used only while holding the run lock."""

    def __init__(self, max_wait_seconds: float | None = None) -> None:
        self._max_wait_seconds = MAX_WAIT_SECONDS if max_wait_seconds is None else max_wait_seconds
        self._waiting: dict[CheckpointAddress, list[_WaitingWrites]] = {}
        self.is_worthwhile = False
        """Whether the last checkpoint came before the writes on its parent were stored."""

    def is_stored(self, address: CheckpointAddress, writes: PutWrites) -> bool:
        """Wait for a checkpoint; returns whether one was stored together with these writes. Only for callers that
        block."""
        if not self.is_worthwhile or not self._max_wait_seconds:
            return False
        waiting = _WaitingWrites(writes)
        self._waiting.setdefault(address, []).append(waiting)
        if not waiting.wait(self._max_wait_seconds):
            others = self._waiting.get(address, [])
            if waiting in others:  # nobody came: store them alone, and do not wait the next time
                self.is_worthwhile = False
                others.remove(waiting)
                if not others:
                    del self._waiting[address]
                return False
            waiting.wait()  # a checkpoint has taken them along, and is on its way to the disk
        return waiting.is_stored

    @contextmanager
    def take(self, address: CheckpointAddress) -> Iterator[Sequence[PutWrites]]:
        """The writes that wait for a checkpoint on this one. They go on waiting until it is stored, or is not."""
        taken = self._waiting.pop(address, [])
        is_stored = False
        try:
            yield [waiting.writes for waiting in taken]
            is_stored = True
        finally:
            for waiting in taken:
                waiting.finish(is_stored=is_stored)
