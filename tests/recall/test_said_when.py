"""Messages by the time at which they were said: how many are taken, and what looking for them costs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import everthread
from everthread.core.entries import Entry
from everthread.core.ports import Log
from everthread.recall.said_when import seqs_said_within, spread
from everthread.testing import ManualClock
from everthread.text.dates import TimeRange

BEGIN = datetime(2026, 4, 6, 9, tzinfo=UTC)


class CountingLog:
    """A log that counts how often it is read."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self.reads = 0

    async def scan(self, *args: Any, **options: Any) -> Sequence[Entry]:
        self.reads += 1
        return await self._log.scan(*args, **options)


def days(first: int, count: int) -> TimeRange:
    return TimeRange(BEGIN + timedelta(days=first), BEGIN + timedelta(days=first + count))


async def found(times: Sequence[TimeRange], limit: int) -> tuple[list[int], int]:
    """The seqs among 200 messages, one a day, and how often the log was read for them."""
    clock = ManualClock(BEGIN)
    async with everthread.open("memory://", clock=clock, worker=False) as et:
        conv = await et.conversations.create()
        for day in range(200):
            await conv.append({"role": "user", "content": f"day {day}"})
            clock.move(timedelta(days=1))
        log = CountingLog(et.store.log)
        store: Any = SimpleNamespace(log=log, conversations=et.store.conversations)
        pairs = await seqs_said_within(store, conv.owner, conv.id, times, limit)
        return [seq for _, seq in pairs], log.reads


async def test_of_many_messages_some_from_everywhere_are_taken() -> None:
    seqs, _ = await found([days(100, 20), days(0, 100), days(90, 5)], 6)
    assert seqs == [1, 21, 41, 61, 81, 101]


async def test_messages_of_times_that_overlap_are_taken_once() -> None:
    assert (await found([days(10, 4), days(12, 4), days(11, 1)], 100))[0] == [11, 12, 13, 14, 15, 16]


async def test_a_pasted_table_of_dates_is_not_looked_up() -> None:
    seqs, reads = await found([days(3 * at, 1) for at in range(60)], 300)
    assert (seqs, reads) == ([], 0)


async def test_many_times_do_not_ask_the_same_place_twice() -> None:
    seqs, reads = await found([days(at, 1) for at in range(0, 40)], 300)
    assert seqs == list(range(1, 41))
    assert reads <= 60


def test_where_there_is_no_room_none_are_taken() -> None:
    pairs = [("c", seq) for seq in range(10)]
    assert spread(pairs, -4) == spread(pairs, 0) == spread([], 3) == []
    assert spread(pairs, 3) == [("c", 0), ("c", 3), ("c", 6)]
    assert spread(pairs, 99) == pairs
