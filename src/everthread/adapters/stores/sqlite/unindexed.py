"""What this process still knows of entries that wait for the search index: their texts, and their tokens.

The index is brought up to date a batch at a time (`indexing`). To read again what was just written, unpacked and
decoded, is a quarter of that work, so the writer remembers it; what another process wrote, or this one before
a restart, is read.

Tokens are counted by the first reader that wants them: a context counts those of its window, and nobody those of a
conversation that is only archived. A count is remembered, and noted in the entry's row if the batch comes after it.
"""

from __future__ import annotations

from collections.abc import Sequence

from everthread.adapters.stores.layout import may_call, text_of
from everthread.context.tokens import count_tokens
from everthread.core.entries import UNCOUNTED, Entry
from everthread.core.errors import StoreDamaged

_MOST_CHARS = 8_000_000
"""So much text is remembered: several times what usually waits."""


Known = tuple[str, bytes | None]
"""What the index needs of an entry: its text, and its payload if it may call tools."""


class UnindexedTexts:
    """What the writer of a file knows of entries that are not indexed; touched only under the write lock."""

    def __init__(self) -> None:
        self._known: dict[bytes, Known] = {}
        """By the entry's place in its chain, which no other entry has: what is rolled back nobody asks for."""
        self._chars = 0

    def note(self, entries: Sequence[Entry], texts: Sequence[str | None]) -> None:
        """Remember those that the index will have: on the record."""
        for entry, text in zip(entries, texts, strict=False):  # texts are all known, or none
            if text is not None and entry.tokens == UNCOUNTED:
                self._known[entry.chain] = (
                    text,
                    entry.raw if may_call(entry.role, entry.change_kind, entry.raw) else None,
                )
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


_MOST_COUNTS = 20_000
"""Counts remembered: the windows of some hundred conversations."""
_counts: dict[bytes, int] = {}
"""By the entry's place in its chain, which no other entry has."""


def counted(entry: Entry) -> Entry:
    """The entry with its tokens."""
    if entry.tokens != UNCOUNTED:
        return entry
    tokens = _counts.get(entry.chain)
    if tokens is None:
        try:
            tokens = count_tokens(text_of(entry.raw or b"{}"))
        except StoreDamaged:  # `verify` reports it; it must not hide the others
            tokens = 0
        if len(_counts) >= _MOST_COUNTS:
            _counts.clear()
        _counts[entry.chain] = tokens
    return entry._replace(tokens=tokens)


def known_tokens(chain: bytes) -> int | None:
    """What a reader has counted, if one has; forgotten here, since it is about to stand in the entry's row."""
    return _counts.pop(chain, None)
