"""The messages that were said at the times that a question names: they need not have a word of it. Reads the log.

Messages mostly stand in the order in which they were said, so that the first of a time is found by halving: some twenty
reads in a million messages. Where they do not, fewer are found, and words find them as before.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from everthread.core.entries import Entry
from everthread.core.errors import StoreDamaged
from everthread.core.nouns import Message, Ref
from everthread.core.ports import Log, Store
from everthread.text.dates import TimeRange

_MOST_MARKS = 8
"""Deletions and revisions say when they were made: the next message after so many of them at most tells the time."""


async def seqs_said_within(
    store: Store, owner: str, conversation: str | None, times: Sequence[TimeRange], limit: int
) -> list[tuple[str, int]]:
    """At most `limit` entries of a conversation from these times, by its id and their seqs; of more than that some from
    everywhere in them. Of all that an owner has, none."""
    if not times or conversation is None:
        return []
    ref = Ref(owner, conversation)
    log, last = store.log, (await store.conversations.get(ref)).entry_count
    found: list[int] = []
    for one in times:
        begin = await _first_from(log, ref, one.start, last)
        if begin <= last:
            found += range(begin, await _first_from(log, ref, one.end, last))
    seqs = sorted(set(found))
    fewer = seqs if len(seqs) <= limit else [seqs[at * len(seqs) // limit] for at in range(limit)]
    return [(conversation, seq) for seq in fewer]


async def _first_from(log: Log, ref: Ref, moment: datetime, last: int) -> int:
    """The first seq from which on it is this late; after the last one if it never is."""
    low, high = 1, last + 1
    while low < high:
        middle = (low + high) // 2
        entries = await log.scan(ref, after=middle - 1, limit=_MOST_MARKS, with_tokens=False)
        place = next((one for one in entries if one.is_place), None)
        if place is not None and _said_at(place) < moment:
            low = place.seq + 1
        else:
            high = middle
    return low


def _said_at(entry: Entry) -> datetime:
    message = Message(entry)
    try:
        return message.said_at or message.created_at
    except StoreDamaged:
        return message.created_at
