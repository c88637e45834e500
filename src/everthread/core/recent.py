"""Values met lately, by a key: what is computed again and again, and does not change, is kept for the next time.

Nearly all of it is made of texts, so an erase empties every cache of the process (`forget_texts`): a word of an erased
message must not wait in one of them for a core dump or a page of swap. A cache that is no `Recent` says how it is
emptied with `forget_on_erase`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar
from weakref import WeakSet

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

_clear_others: list[Callable[[], object]] = []
_all_recent: WeakSet[Recent[Any, Any]] = WeakSet()


def forget_on_erase(clear: Callable[[], object]) -> None:
    """Have a cache that lives as long as the process emptied whenever something is erased."""
    _clear_others.append(clear)


def forget_texts() -> None:
    """Empty every cache of this process that may hold words of messages: stores do that when they have erased."""
    for clear in _clear_others:
        clear()
    for recent in list(_all_recent):
        recent.clear()


class Recent(Generic[K, V]):
    """A dict that forgets what has not been asked for in a while. Any number of threads may use it."""

    def __init__(self, capacity: int) -> None:
        """Between `capacity` and twice as much is kept, counted by what each value weighs."""
        self._capacity = capacity
        self._weight = 0
        self._recent: dict[K, tuple[V, int]] = {}
        self._earlier: dict[K, tuple[V, int]] = {}
        _all_recent.add(self)

    def get(self, key: K) -> V | None:
        """The value; None where there is none."""
        found = self._recent.get(key)
        if found is None:
            # Nothing is ever taken out of it, while another thread may put another in its place.
            found = self._earlier.get(key)
            if found is None:
                return None
            self.put(key, *found)
        return found[0]

    def put(self, key: K, value: V, weight: int = 1) -> None:
        """Keep a value, as the newest."""
        if self._weight >= self._capacity:
            self._earlier, self._recent, self._weight = self._recent, {}, 0
        self._recent[key] = value, weight
        self._weight += weight

    def clear(self) -> None:
        """Forget everything."""
        self._recent, self._earlier, self._weight = {}, {}, 0

    def __len__(self) -> int:
        return len(self._recent) + len(self._earlier)
