"""What is on its way to the store, so that others can wait for it. A checkpoint waits for the writes on its parent.

LangGraph saves a task's writes and the next checkpoint in the background, begun in this order but not ended in it. A
write that came after the checkpoint which applies it would be held for a list that never names it, and the next fork
from its checkpoint would take it for something new.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Generic, TypeVar

from everthread.core.driving import Errand

K = TypeVar("K")


class Underway(Generic[K]):
    """What has begun and not ended, by what it is made on."""

    def __init__(self) -> None:
        self._begun: dict[K, list[Errand]] = {}

    @contextmanager
    def on(self, key: K) -> Iterator[Sequence[Errand]]:
        """While something on it is being stored; gives what has begun before."""
        before = self.begun(key)
        begun = Errand()
        self._begun[key] = [*before, begun]
        try:
            yield before
        finally:
            self._begun[key].remove(begun)
            if not self._begun[key]:
                del self._begun[key]
            begun.end()

    def begun(self, key: K) -> Sequence[Errand]:
        """What can be waited for with `driving.wait`."""
        return [*self._begun.get(key, ())]
