"""The index of message ids, written by the thousand: a measured trick that lives here alone.

Ids come in no order, so a plain index of them changes another page for each message. Instead the newest ids of a log
are pending: the writer knows them from memory, a reader looks through those entries. When enough are pending they are
written to `entry_ids` together and in order, in the transaction of the append that made them so many. For longer logs a
Bloom filter tells of nearly every new id that it is not in the table.

What it gives, against a plain index by hash in each append (`make bench ARGS="append"`): 13.9 KB written a turn instead
of 21.5 at 100 messages and 23.5 instead of 26.4 at 100,000, and 10 to 20 percent less CPU there. To remove it: write a
row of `entry_ids` for each new entry in `IdIndex.add`, and let `IdIndex.seqs` and `find` only look there
(MOST_PENDING = 1 already writes them at once).

What the writer remembers of a log goes up to one link of its chain, which no other log has. So whatever was rolled
back, or written by another process, is noticed, and the rest is read from the log again.
"""

from __future__ import annotations

import sqlite3
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from hashlib import blake2b
from typing import ClassVar, TypeVar

from everthread.adapters.stores.sqlite import statements as sql
from everthread.core.entries import SEQ_MASK, Entry, Kind, entry_key
from everthread.core.failpoints import reach
from everthread.core.log import LogHead

T = TypeVar("T")

MOST_PENDING = 2_048
"""So many ids of a log may be pending: a reader looks through them in a millisecond, and to write them takes 5."""
_MOST_PENDING_WHEN_COLD = 128
"""So many if they had to be read from the log: where somebody writes now and then, few stay pending."""
_MOST_IDS_OF_A_LOG = 20_000
"""Up to this many ids of one log are remembered after they were written to the table; for a longer log, a filter."""
_MOST_IDS = 40_000
"""Ids that the writer remembers of all logs together, some 10 MB."""
_IDS_AT_ONCE = 500
"""SQLite takes at least 999 parameters in one statement."""
_FILTER_STEP = 256
"""How many ids each append loads from the table into a new filter, so that no append waits for all of them."""


class BloomFilter:
    """Tells of most new ids that they are not in the table: one bit for each hash, in a megabyte. With 100,000 in it,
    one new id in 80 is looked up in vain."""

    MASK: ClassVar[int] = (1 << 23) - 1
    WEIGHT: ClassVar[int] = 4_000
    """So many ids take a megabyte."""

    def __init__(self) -> None:
        self._bits = bytearray(self.MASK // 8 + 1)
        self._reached = -1
        self.is_complete = False
        """Whether all ids of the table are in it: until then it tells nothing."""

    def fill(self, connection: sqlite3.Connection, number: int) -> None:
        rows = connection.execute(sql.INDEXED_HASHES_AFTER, (number, self._reached, _FILTER_STEP)).fetchall()
        self.add(row[0] for row in rows)
        self.is_complete = len(rows) < _FILTER_STEP
        self._reached = rows[-1][0] if rows else self._reached

    def add(self, hashes: Iterable[int]) -> None:
        for hash in hashes:
            self._bits[(hash & self.MASK) >> 3] |= 1 << (hash & 7)

    def may_contain(self, hash: int) -> int:
        return self._bits[(hash & self.MASK) >> 3] & 1 << (hash & 7)


@dataclass(slots=True)
class _LogIds:
    """The ids of one log, as far as the writer has them in memory."""

    last: int
    """The seq up to which they are known."""
    chain: bytes = b""
    """The link of the chain there."""
    has_all: bool = True
    """Whether `seqs` has every id of the log; else those before the pending ones are in the table only."""
    is_cold: bool = True
    """Whether they were read from the log, and nothing was appended since."""
    filter: BloomFilter | None = None
    """Of the ids in the table, unless all are known."""
    seqs: dict[str, tuple[int, ...]] = field(default_factory=dict)
    pending: list[tuple[str, int]] = field(default_factory=list)

    @property
    def weight(self) -> int:
        """Its size in memory, counted in ids."""
        return len(self.seqs) + (0 if self.filter is None else BloomFilter.WEIGHT)

    def add(self, id: str, seq: int) -> None:
        self.seqs[id] = (*self.seqs.get(id, ()), seq)
        self.pending.append((id, seq))


class IdIndex:
    """The ids of all logs of a file, for its writer; touched by its thread only."""

    def __init__(self) -> None:
        self._logs: OrderedDict[int, _LogIds] = OrderedDict()
        self._size = 0

    def seqs(self, connection: sqlite3.Connection, number: int, head: LogHead, ids: Sequence[str]) -> set[int]:
        """Return the seqs where these ids may be; some may belong to entries with other ids."""
        log_ids = self._current(connection, number, head)
        found = {seq for id in ids for seq in log_ids.seqs.get(id, ())}
        return found if log_ids.has_all else found.union(self._seqs_by_filter(connection, number, log_ids, ids))

    def _seqs_by_filter(
        self, connection: sqlite3.Connection, number: int, log_ids: _LogIds, ids: Sequence[str]
    ) -> Iterator[int]:
        """Return the seqs of ids by the table, which is queried only for ids that the filter does not rule out."""
        hashes = list(map(_hash, ids))
        if log_ids.filter is None:
            log_ids.filter = BloomFilter()
            self._size += BloomFilter.WEIGHT
        if log_ids.filter.is_complete:
            return _indexed_seqs(connection, number, list(filter(log_ids.filter.may_contain, hashes)))
        log_ids.filter.fill(connection, number)
        return _indexed_seqs(connection, number, hashes)

    def add(self, connection: sqlite3.Connection, number: int, before: LogHead, new: Sequence[Entry]) -> None:
        """Note entries that were written, in their transaction; write the pending ids when they are many.

        Only here, where the chain grows: were they written beside a change that fails, we would remember it as done.
        """
        log_ids = self._current(connection, number, before)
        self._size -= log_ids.weight
        for entry in new:
            if entry.kind != Kind.MARK:
                log_ids.add(entry.id, entry.seq)
        log_ids.last, log_ids.chain = new[-1].seq, new[-1].chain
        if len(log_ids.pending) >= (_MOST_PENDING_WHEN_COLD if log_ids.is_cold else MOST_PENDING):
            _write_pending(connection, number, log_ids)
        log_ids.is_cold = False
        self._size += log_ids.weight
        self._drop_oldest()

    def _current(self, connection: sqlite3.Connection, number: int, head: LogHead) -> _LogIds:
        log_ids = self._logs.get(number)
        if log_ids is None or log_ids.chain != head.chain:
            log_ids = self._read(connection, number, head, log_ids)
        self._logs.move_to_end(number)
        return log_ids

    def _read(self, connection: sqlite3.Connection, number: int, head: LogHead, known: _LogIds | None) -> _LogIds:
        self._size -= 0 if known is None else known.weight
        if known is None or connection.execute(sql.CHAIN_AT, (entry_key(number, known.last),)).fetchone() != (
            known.chain,
        ):
            row = connection.execute(sql.IDS_INDEXED_UNTIL, (number,)).fetchone()
            known = _LogIds(last=0 if row is None else row[0], has_all=row is None)
        span = (entry_key(number, known.last), entry_key(number, head.entry_count))
        for seq, id in connection.execute(sql.PENDING_IDS, span):
            known.add(id, seq)
        known.last, known.chain = head.entry_count, head.chain
        self._logs[number] = known
        self._size += known.weight
        return known

    def _drop_oldest(self) -> None:
        while self._size > _MOST_IDS and len(self._logs) > 1:
            _, oldest = self._logs.popitem(last=False)
            self._size -= oldest.weight


def _write_pending(connection: sqlite3.Connection, number: int, log_ids: _LogIds) -> None:
    rows = sorted((number, _hash(id), seq) for id, seq in log_ids.pending)
    connection.executemany(sql.INSERT_ENTRY_ID, rows)
    reach("ids.indexed")
    connection.execute(sql.SET_IDS_INDEXED_UNTIL, (number, log_ids.last))
    log_ids.pending.clear()
    if log_ids.filter is not None:
        log_ids.filter.add(row[1] for row in rows)
    log_ids.has_all = log_ids.has_all and len(log_ids.seqs) <= _MOST_IDS_OF_A_LOG
    if not log_ids.has_all:
        log_ids.seqs.clear()


def find(connection: sqlite3.Connection, number: int, ids: Sequence[str]) -> set[int]:
    """Return the seqs where these ids may be, for a reader. The pending ids come first, since one that becomes a row
    meanwhile is found there."""
    found: set[int] = set()
    for some in _chunks(ids):
        values = (number, number, entry_key(number, SEQ_MASK), *some)
        found.update(row[0] for row in connection.execute(_for_many(sql.PENDING_SEQS, len(some)), values))
    return found.union(_indexed_seqs(connection, number, list(map(_hash, ids))))


def _indexed_seqs(connection: sqlite3.Connection, number: int, hashes: Sequence[int]) -> Iterator[int]:
    for some in _chunks(hashes):
        statement = _for_many(sql.INDEXED_SEQS, len(some))
        yield from (row[0] for row in connection.execute(statement, (number, *some)))


def entries_at(connection: sqlite3.Connection, number: int, seqs: Iterable[int]) -> Iterator[Entry]:
    """Entries by seq, in order."""
    for some in _chunks(sorted(seqs)):
        keys = [entry_key(number, seq) for seq in some]
        yield from map(Entry._make, connection.execute(_for_many(sql.ENTRIES_BY_KEY, len(some)), keys))


def _chunks(many: Sequence[T]) -> Iterator[Sequence[T]]:
    return (many[start : start + _IDS_AT_ONCE] for start in range(0, len(many), _IDS_AT_ONCE))


@cache
def _for_many(statement: str, count: int) -> str:
    return statement.format(", ".join("?" * count))


def _hash(id: str) -> int:
    """48 bits of an id's hash: a third of its bytes, and enough that collisions cannot be made in number."""
    return int.from_bytes(blake2b(id.encode(), digest_size=6).digest(), "big")
