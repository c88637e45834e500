"""What was computed of a text, kept for the next time the same text is met: a window is counted, ranked and summarised
again and again, and all but its newest messages are what they were.

A text is known by a hash of it, so an answer is right whichever process changed a message in between: nothing has to
be told that it is out of date. The texts themselves are not kept.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from typing import Generic, TypeVar

from everthread.core.recent import Recent

T = TypeVar("T")


class TextMemo(Generic[T]):
    """A function of nothing but a text, with its results for the texts met lately. Any number of threads may call."""

    def __init__(self, compute: Callable[[str], T], *, min_chars: int, max_chars: int, capacity: int) -> None:
        """Texts below `min_chars` are computed as quickly as they are looked up, results of those above `max_chars` may
        be large: neither are kept. Between `capacity` and twice as many results are."""
        self._compute = compute
        self._min_chars = min_chars
        self._max_chars = max_chars
        self._known: Recent[bytes, tuple[T]] = Recent(capacity)

    def __call__(self, text: str) -> T:
        if not self._min_chars <= len(text) <= self._max_chars:
            return self._compute(text)
        key = blake2b(text.encode(errors="surrogatepass"), digest_size=16).digest()
        known = self._known.get(key)
        if known is None:
            known = (self._compute(text),)
            self._known.put(key, known)
        return known[0]

    def clear(self) -> None:
        """Forget all results: what they were computed from is erased."""
        self._known.clear()

    def __len__(self) -> int:
        return len(self._known)
