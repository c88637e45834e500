"""Finding messages by words in the tsvector index; ranking is history/search.py's.

A rare word is found by the index at once; a common one would make it gather hundreds of thousands of rows to keep the
newest few, while walking an owner's entries from the newest on finds them in no time. PostgreSQL cannot choose (it
keeps no statistics of the words, because they would outlive an erase), so a small sample of the index decides, and
tells how common each word is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from everthread.adapters.stores.postgres import statements as sql
from everthread.adapters.stores.postgres.blobs import fill
from everthread.adapters.stores.postgres.log import living_head
from everthread.adapters.stores.postgres.pool import Connection, PostgresDatabase
from everthread.core.entries import Entry, entry_key
from everthread.core.ids import owner_scope
from everthread.core.nouns import Ref
from everthread.core.ports import PlacedMessage, Postings, WordMatch, WordMatches
from everthread.core.queries import Group, Query, Term
from everthread.history.search_query import tsquery
from everthread.text.words import scope_token

_SAMPLED_ROWS = 2_000
_LEAST_GATHERED = 250
"""Fewer matches than one entry of the sample stands for are not told apart: then a short walk is as good."""
_LARGE_SHARE = 0.2
_WALK_COST, _LOOK_UP_COST = 2, 8
"""Microseconds a row, measured on a million messages: reading one on the way, and gathering one from the index."""


class _Sample(NamedTuple):
    rows: int
    """How many entries the index holds."""
    seen: int
    owned: int
    hits: int
    counts: Mapping[str, int]

    @property
    def share(self) -> float:
        """How many entries one entry of the sample represents."""
        return self.rows / max(self.seen, 1)

    @property
    def frequencies(self) -> Mapping[str, int]:
        return {token: int(count * self.share) for token, count in self.counts.items()}

    @property
    def is_large(self) -> bool:
        """Whether the owner has so much of the index that its token there is a list to walk through, and what others
        have of a word is passed over sooner."""
        return self.owned >= _LARGE_SHARE * self.seen

    def of_any(self, query: Query) -> _Sample:
        """The same for a question for any of these words: nearly as many matches as all have together."""
        those = sum(self.counts.get(term.token, 0) for term in query.terms)
        return self._replace(hits=min(self.owned, those * self.owned // max(self.seen, 1)))

    def prefers_walk(self, cap: int, entries: int | None) -> bool:
        """Whether walking over the owner's entries, or those of one conversation, costs less than gathering all
        that match."""
        there = self.owned * self.share if entries is None else entries
        walked = min(there, cap * self.owned / max(self.hits, 1))
        return _WALK_COST * walked <= _LOOK_UP_COST * max(self.hits * self.share, _LEAST_GATHERED)


class PostgresSearch:
    """`store.search` of core/ports.py."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database

    async def matches(
        self, owner: str, conversation: str | None, query: Query, *, cap: int, any_word: bool, basis: object = None
    ) -> WordMatches:
        found = await self._database.pool.read(
            lambda c: find_matches(c, owner, conversation, query, cap, any_word, basis)
        )
        whole = await fill([one.entry for one in found.found], self._database.blobs)
        return found._replace(found=[one._replace(entry=entry) for one, entry in zip(found.found, whole, strict=True)])

    async def postings(self, owner: str, conversation: str | None, terms: Sequence[Term], *, cap: int) -> Postings:
        async def work(connection: Connection) -> Postings:
            queries = [tsquery(_only(term)) for term in terms]
            async with connection.transaction(readonly=True):
                await connection.execute(sql.SEARCH_SETTINGS)
                if conversation is not None:
                    key, head, _ = await living_head(connection, Ref(owner, conversation))
                    total = head.entry_count
                    rows = await connection.fetch(sql.TERM_POSTINGS_WALK, queries, *key, cap + 1)
                    found = [list(row[1]) for row in rows]
                else:
                    total = await connection.fetchval(sql.INDEX_SIZE) or 0
                    mine = [tsquery(_only(term), [owner_scope(owner)]) for term in terms]
                    found = [
                        [row[0] for row in await connection.fetch(sql.TERM_POSTINGS_LOOK_UP, one, cap + 1)]
                        for one in mine
                    ]
            by_term = {term: keys[:cap][::-1] for term, keys in zip(terms, found, strict=True)}
            most = max(map(len, found), default=0)
            return Postings(by_term, max(total, most), most > cap)

        return await self._database.pool.read(work)

    async def messages(
        self, owner: str, entry_keys: Sequence[int], named: Sequence[tuple[str, int]]
    ) -> Sequence[PlacedMessage]:
        found = await self._database.pool.read(lambda c: read_messages(c, owner, entry_keys, named))
        whole = await fill([one.entry for one in found], self._database.blobs)
        return [one._replace(entry=entry) for one, entry in zip(found, whole, strict=True)]


async def find_matches(
    connection: Connection, owner: str, conversation: str | None, query: Query, cap: int, any_word: bool, basis: object
) -> WordMatches:
    """At most `cap` matches of this owner, newest first: the cap comes after the owner."""
    number = entries = None
    if conversation is not None:
        key, head, _ = await living_head(connection, Ref(owner, conversation))
        number, entries = key.number, head.entry_count
    async with connection.transaction(readonly=True):
        await connection.execute(sql.SEARCH_SETTINGS)
        of_all, of_owner = (tsquery(query, scope, any_term=any_word) for scope in ([], [owner_scope(owner)]))
        if any_word and isinstance(basis, _Sample):
            sample = basis.of_any(query)
        else:
            sample = await _sampled(connection, owner, query, of_owner)
        if sample.prefers_walk(cap, entries):
            found = await connection.fetch(sql.WALK, of_all, owner, cap + 1, number)
        else:
            match = of_all if sample.is_large else of_owner
            found = await connection.fetch(sql.LOOK_UP, match, owner, number, cap + 1)
    keys = [row[0] for row in found]
    rows = await connection.fetch(sql.MATCHED_ENTRIES, keys[:cap], owner)
    return WordMatches(
        found=[_word_match(tuple(row)) for row in rows],
        truncated=len(keys) > cap,
        frequencies=sample.frequencies,
        total=max(sample.rows, len(keys)),
        basis=sample,
    )


async def read_messages(
    connection: Connection, owner: str, entry_keys: Sequence[int], named: Sequence[tuple[str, int]]
) -> list[PlacedMessage]:
    """Messages by key, or by conversation and seq."""
    ids = list({id for id, _ in named})
    numbers = dict(tuple(row) for row in await connection.fetch(sql.CONVERSATION_NUMBERS, owner, ids)) if ids else {}
    keys = {*entry_keys, *(entry_key(numbers[id], seq) for id, seq in named if id in numbers)}
    rows = [tuple(row) for row in await connection.fetch(sql.PLACED, sorted(keys), owner)]
    return list({row[1]: PlacedMessage(row[0], row[1], row[2], row[3], Entry._make(row[4:])) for row in rows}.values())


async def _sampled(connection: Connection, owner: str, query: Query, match: str) -> _Sample:
    rows = await connection.fetchval(sql.INDEX_ROWS) or 0
    percent = min(100.0, 100 * _SAMPLED_ROWS / max(rows, 1))
    mine = f"'{scope_token(owner_scope(owner))}'"
    singles = [tsquery(_only(term)) for term in query.terms]
    seen, owned, hits, counts = (await connection.fetch(sql.SAMPLE, mine, match, percent, singles))[0]
    return _Sample(
        rows=seen if percent == 100 else max(rows, seen),
        seen=seen,
        owned=owned,
        hits=hits,
        counts={term.token: count for term, count in zip(query.terms, counts, strict=True)},
    )


def _only(term: Term) -> Query:
    return Query(groups=(Group(terms=(term,)),))


def _word_match(row: Sequence[object]) -> WordMatch:
    return WordMatch(str(row[0]), Entry._make(row[2:]), int(str(row[1])))
