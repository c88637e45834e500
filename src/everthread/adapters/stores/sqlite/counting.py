"""Tokens of what was written lately, counted when the index is brought up to date, or when somebody reads first.

Counting alone, between two commits, takes five times as long as counting some hundred together: the vocabulary has
left the processor's caches by then. So `indexing` counts a batch at a time, and a count that a reader needed earlier
is remembered until then.
"""

from __future__ import annotations

from everthread.adapters.stores.layout import text_of
from everthread.context.tokens import count_tokens
from everthread.core.entries import UNCOUNTED, Entry
from everthread.core.errors import StoreDamaged

_MOST_KNOWN = 20_000
"""Counts remembered; several times what the index may fall behind."""
_known: dict[bytes, int] = {}
"""By the entry's place in its chain, which no other entry has."""


def counted(entry: Entry) -> Entry:
    """The entry with its tokens."""
    if entry.tokens != UNCOUNTED:
        return entry
    tokens = _known.get(entry.chain)
    if tokens is None:
        tokens = _count(entry)
        _remember(entry.chain, tokens)
    return entry._replace(tokens=tokens)


def _count(entry: Entry) -> int:
    try:
        return count_tokens(text_of(entry.raw or b"{}"))
    except StoreDamaged:  # of which `verify` tells, and which must not hide the others
        return 0


def known_tokens(chain: bytes) -> int | None:
    """What a reader had counted; forgotten here, since it is about to stand in the entry's row."""
    return _known.pop(chain, None)


def _remember(chain: bytes, tokens: int) -> None:
    if len(_known) >= _MOST_KNOWN:
        _known.clear()
    _known[chain] = tokens
