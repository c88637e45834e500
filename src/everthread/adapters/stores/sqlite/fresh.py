"""What is searched of entries that wait for the index, known to the process that wrote them.

To read them again, unpacked and decoded, is a quarter of the work of indexing them. What another process wrote, or
this one before it was started anew, is read.
"""

from __future__ import annotations

from collections.abc import Sequence

from everthread.adapters.stores.layout import may_call
from everthread.core.entries import UNCOUNTED, Entry

_MOST_CHARS = 4_000_000
"""As many are remembered, several times what usually waits."""


Known = tuple[str, bytes | None]
"""What the index needs of an entry: its text, and its payload if it may call tools."""


class Fresh:
    """What the writer of a file knows of entries that are not indexed; touched only with the pen."""

    def __init__(self) -> None:
        self._known: dict[bytes, Known] = {}
        """By the entry's place in its chain, which no other entry has: what is rolled back nobody asks for."""
        self._chars = 0

    def note(self, entries: Sequence[Entry], texts: Sequence[str | None]) -> None:
        """Remember those that the index will count: short ones, on the record."""
        for entry, text in zip(entries, texts, strict=False):  # texts are all known, or none
            if text is not None and entry.tokens == UNCOUNTED:
                self._known[entry.chain] = text, entry.raw if may_call(entry.role, entry.how, entry.raw) else None
                self._chars += len(text)
        if self._chars > _MOST_CHARS:
            self.forget()

    def take(self, chain: bytes) -> Known | None:
        """What is known of an entry; not any more, since it is about to be indexed."""
        known = self._known.pop(chain, None)
        if known is not None:
            self._chars -= len(known[0])
        return known

    def forget(self) -> None:
        self._known.clear()
        self._chars = 0
