"""Which entries bear an id: an index that is written by the thousand.

Ids that callers make come in no order, so an index of them changes another page for each message: five for a turn,
which took a quarter of its CPU at 100,000 messages. So the ids at the end of a log, its tail, are not filed yet: the
writer knows them from memory, a reader looks through the tail. When a tail has grown long its ids are filed together
and in order, in the transaction of the append that made it so long. Of a log that is not too long the writer remembers
all the ids, of a longer one a sieve, so that it need not look for new ones among those that are filed.

What the writer remembers goes up to one link of the chain, which no other log has. So whatever was rolled back, or
written by another process, is noticed: the rest, or all of it, is read from the log again.
"""

from __future__ import annotations

import sqlite3
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from hashlib import blake2b
from typing import ClassVar, TypeVar

from everthread.adapters.stores.layout import SEQ_MASK, entry_key
from everthread.adapters.stores.sqlite import statements as sql
from everthread.core.entries import Entry, Kind
from everthread.core.failpoints import reach
from everthread.core.log import LogHead

T = TypeVar("T")

MOST_UNFILED = 2_048
"""So long a tail may grow: a reader looks through it in a millisecond, and to file it takes 5."""
_COLD = 128
"""From this length on a tail that had to be read is filed: in a log that is written to now and then it stays short."""
_MOST_WHOLE = 20_000
"""Up to so many ids of one log are remembered when they are filed."""
_MOST_KNOWN = 40_000
"""Ids that the writer remembers of all logs together, some 10 MB."""
_IDS_AT_ONCE = 500
"""SQLite takes at least 999 parameters in one statement."""
_SLICE = 256
"""So many ids that are filed go into a sieve at each look for some among them, which takes as long again."""


class _Sieve:
    """Tells of most new ids that they are not filed: with 100,000 in it, one in 80 is let through. A megabyte."""

    MASK: ClassVar[int] = (1 << 23) - 1
    WEIGHT: ClassVar[int] = 4_000
    """So many ids take a megabyte."""

    def __init__(self) -> None:
        self._bits = bytearray(self.MASK // 8 + 1)
        self._reached = -1
        self.is_full = False
        """Whether all that are filed are in it: until then it tells nothing."""

    def fill(self, connection: sqlite3.Connection, number: int) -> None:
        rows = connection.execute(sql.FILED_AFTER, (number, self._reached, _SLICE)).fetchall()
        self.add(row[0] for row in rows)
        self.is_full = len(rows) < _SLICE
        self._reached = rows[-1][0] if rows else self._reached

    def add(self, hashes: Iterable[int]) -> None:
        for hash in hashes:
            self._bits[(hash & self.MASK) >> 3] |= 1 << (hash & 7)

    def lets_through(self, hash: int) -> int:
        return self._bits[(hash & self.MASK) >> 3] & 1 << (hash & 7)


@dataclass(slots=True)
class _Tail:
    last: int
    """The seq up to which it is known."""
    chain: bytes = b""
    """The link of the chain there."""
    is_whole: bool = True
    """Whether it goes back to the beginning of the log; else the ids before it are filed."""
    is_cold: bool = True
    sieve: _Sieve | None = None
    """Of the ids that are filed, unless the tail is whole."""
    seqs: dict[str, tuple[int, ...]] = field(default_factory=dict)
    unfiled: list[tuple[str, int]] = field(default_factory=list)

    @property
    def weight(self) -> int:
        """What it takes in memory, in ids."""
        return len(self.seqs) + (0 if self.sieve is None else _Sieve.WEIGHT)

    def add(self, id: str, seq: int) -> None:
        self.seqs[id] = (*self.seqs.get(id, ()), seq)
        self.unfiled.append((id, seq))


class Tails:
    """What the writer of a file knows of ids that are not filed; touched by its thread only."""

    def __init__(self) -> None:
        self._tails: OrderedDict[int, _Tail] = OrderedDict()
        self._known = 0

    def seqs(self, connection: sqlite3.Connection, number: int, head: LogHead, ids: Sequence[str]) -> set[int]:
        """Where these ids may stand; an entry by another id may be among them."""
        tail = self._current(connection, number, head)
        found = {seq for id in ids for seq in tail.seqs.get(id, ())}
        return found if tail.is_whole else found.union(self._sifted(connection, number, tail, ids))

    def _sifted(self, connection: sqlite3.Connection, number: int, tail: _Tail, ids: Sequence[str]) -> Iterator[int]:
        """Where ids stand that are filed, looked for only if the sieve lets them through."""
        hashes = list(map(_hash, ids))
        if tail.sieve is None:
            tail.sieve = _Sieve()
            self._known += _Sieve.WEIGHT
        if tail.sieve.is_full:
            return _filed(connection, number, list(filter(tail.sieve.lets_through, hashes)))
        tail.sieve.fill(connection, number)
        return _filed(connection, number, hashes)

    def add(self, connection: sqlite3.Connection, number: int, before: LogHead, new: Sequence[Entry]) -> None:
        """Note entries that were written, in their transaction; file the tail when it has grown long.

        Only here, where the chain grows: were it filed beside a write that fails, the memory of that would stay.
        """
        tail = self._current(connection, number, before)
        self._known -= tail.weight
        for entry in new:
            if entry.kind != Kind.MARK:
                tail.add(entry.id, entry.seq)
        tail.last, tail.chain = new[-1].seq, new[-1].chain
        if len(tail.unfiled) >= (_COLD if tail.is_cold else MOST_UNFILED):
            _file(connection, number, tail)
        tail.is_cold = False
        self._known += tail.weight
        self._forget_some()

    def _current(self, connection: sqlite3.Connection, number: int, head: LogHead) -> _Tail:
        tail = self._tails.get(number)
        if tail is None or tail.chain != head.chain:
            tail = self._read(connection, number, head, tail)
        self._tails.move_to_end(number)
        return tail

    def _read(self, connection: sqlite3.Connection, number: int, head: LogHead, known: _Tail | None) -> _Tail:
        self._known -= 0 if known is None else known.weight
        if known is None or connection.execute(sql.CHAIN_AT, (entry_key(number, known.last),)).fetchone() != (
            known.chain,
        ):
            row = connection.execute(sql.FILED_UNTIL, (number,)).fetchone()
            known = _Tail(last=0 if row is None else row[0], is_whole=row is None)
        span = (entry_key(number, known.last), entry_key(number, head.entry_count))
        for seq, id in connection.execute(sql.UNFILED, span):
            known.add(id, seq)
        known.last, known.chain = head.entry_count, head.chain
        self._tails[number] = known
        self._known += known.weight
        return known

    def _forget_some(self) -> None:
        while self._known > _MOST_KNOWN and len(self._tails) > 1:
            _, oldest = self._tails.popitem(last=False)
            self._known -= oldest.weight


def _file(connection: sqlite3.Connection, number: int, tail: _Tail) -> None:
    rows = sorted((number, _hash(id), seq) for id, seq in tail.unfiled)
    connection.executemany(sql.FILE_ID, rows)
    reach("ids.filed")
    connection.execute(sql.SET_FILED, (number, tail.last))
    tail.unfiled.clear()
    if tail.sieve is not None:
        tail.sieve.add(row[1] for row in rows)
    tail.is_whole = tail.is_whole and len(tail.seqs) <= _MOST_WHOLE
    if not tail.is_whole:
        tail.seqs.clear()


def find(connection: sqlite3.Connection, number: int, ids: Sequence[str]) -> set[int]:
    """Where these ids may stand, for a reader. First the tail: what is filed meanwhile is then found there too."""
    found: set[int] = set()
    for some in _chunks(ids):
        values = (number, number, entry_key(number, SEQ_MASK), *some)
        found.update(row[0] for row in connection.execute(_for_many(sql.UNFILED_BY_ID, len(some)), values))
    return found.union(_filed(connection, number, list(map(_hash, ids))))


def _filed(connection: sqlite3.Connection, number: int, hashes: Sequence[int]) -> Iterator[int]:
    for some in _chunks(hashes):
        statement = _for_many(sql.FILED_BY_HASH, len(some))
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
    """48 bits of an id: a third of its bytes, and nobody can make many ids of one hash."""
    return int.from_bytes(blake2b(id.encode(), digest_size=6).digest(), "big")
