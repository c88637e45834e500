"""The messages that were said at the times that a question names: they need not have a word of it. Reads the log.

Messages mostly stand in the order in which they were said, so that the first of a time is found by halving: some twenty
reads in a million messages. Where they do not, fewer are found, and words find them as before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import accumulate

from everthread.core.entries import Entry
from everthread.core.errors import StoreDamaged
from everthread.core.nouns import Message, Ref
from everthread.core.ports import Log, Store
from everthread.text.dates import TimeRange

_MOST_MARKS = 8
"""Deletions and revisions say when they were made: the next message after so many of them at most tells the time."""
_MOST_TIMES = 40
"""Of more times no messages are looked for: a pasted table names hundreds, and asks for none of them."""


async def seqs_said_within(
    store: Store, owner: str, conversation: str | None, times: Sequence[TimeRange], limit: int
) -> list[tuple[str, int]]:
    """At most `limit` entries of a conversation from these times, by its id and their seqs; of more than that some from
    everywhere in them. Of all that an owner has, none; of very many times, none."""
    wanted = sorted(set(times))
    if not wanted or conversation is None or len(wanted) > _MOST_TIMES:
        return []
    ref = Ref(owner, conversation)
    places = _Places(store.log, ref, (await store.conversations.get(ref)).entry_count)
    found: list[range] = []
    for one in wanted:
        begin = await places.first_from(one.start)
        if found:
            begin = max(begin, found[-1].stop)
        if begin <= places.last:
            found.append(range(begin, max(begin, await places.first_from(one.end))))
    return [(conversation, seq) for seq in _spread(found, limit)]


def spread(found: Sequence[tuple[str, int]], limit: int) -> list[tuple[str, int]]:
    """At most `limit` of these, from everywhere among them."""
    return [found[at] for at in _spread([range(len(found))], limit)]


def _spread(ranges: Sequence[range], limit: int) -> Iterator[int]:
    """At most `limit` numbers of these ranges, evenly; none of what lies between is made."""
    ends = list(accumulate(map(len, ranges), initial=0))
    total, most = ends[-1], min(ends[-1], max(0, limit))
    at = 0
    for place in (number * total // most for number in range(most)):
        while place >= ends[at + 1]:
            at += 1
        yield ranges[at][place - ends[at]]


class _Places:
    """When the entries of a conversation were said, as far as it was asked."""

    def __init__(self, log: Log, ref: Ref, last: int) -> None:
        self.last = last
        self._log = log
        self._ref = ref
        self._known: dict[int, tuple[int, datetime] | None] = {}

    async def first_from(self, moment: datetime) -> int:
        """The first seq from which on it is this late; after the last one if it never is."""
        low, high = 1, self.last + 1
        while low < high:
            middle = (low + high) // 2
            place = await self._next_said(middle)
            if place is not None and place[1] < moment:
                low = place[0] + 1
            else:
                high = middle
        return low

    async def _next_said(self, seq: int) -> tuple[int, datetime] | None:
        """The seq of the next message from this one on, and when it was said."""
        if seq not in self._known:
            entries = await self._log.scan(self._ref, after=seq - 1, limit=_MOST_MARKS, with_tokens=False)
            place = next((one for one in entries if one.is_place), None)
            self._known[seq] = None if place is None else (place.seq, _said_at(place))
        return self._known[seq]


def _said_at(entry: Entry) -> datetime:
    message = Message(entry)
    try:
        return message.said_at or message.created_at
    except StoreDamaged:
        return message.created_at
