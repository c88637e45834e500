"""Finding messages by words in the FTS5 index; ranking is history/search.py's and recall's.

The cap comes after the owner. A token in each entry stands for its owner, so that one with few messages among many is
found at once; but to match the token of one who owns most of them costs a walk through all of those (10 ms in a
million). So a large owner's matches are read from the newest on, and the few of others are passed over.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import orjson

from everthread.adapters.stores.layout import NEWEST
from everthread.adapters.stores.sqlite import indexing, log
from everthread.adapters.stores.sqlite import statements as sql
from everthread.adapters.stores.sqlite.engine import SqliteDatabase
from everthread.adapters.stores.sqlite.unindexed import counted
from everthread.core.entries import SEQ_BITS, SEQ_MASK, Entry, entry_key
from everthread.core.ids import owner_scope
from everthread.core.nouns import Ref
from everthread.core.ports import PlacedMessage, Postings, WordMatch, WordMatches
from everthread.core.queries import Query, Term
from everthread.history.search_query import fts5_match, fts5_term_match, has_term

_LARGE_SHARE = 0.2
"""From this share of all conversations on, an owner's matches are found by passing over those of others."""
COUNT_CAP = 10_000
"""Words are counted up to this: beyond it one is simply common."""


class SqliteSearch:
    """`store.search` of core/ports.py."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database

    async def matches(
        self, owner: str, conversation: str | None, query: Query, *, cap: int, any_word: bool, basis: object = None
    ) -> WordMatches:
        def work(connection: sqlite3.Connection) -> WordMatches:
            first, last = _span(connection, owner, conversation)
            scope = [] if conversation is not None or _is_large(connection, owner) else [owner_scope(owner)]
            matching = connection.execute(sql.MATCH, (fts5_match(query, scope, any_term=any_word), first, last))
            keys = list(islice(_keep_owned(connection, owner, (row[0] for row in matching)), cap + 1))
            rows = (connection.execute(sql.MATCHED_ENTRY, (key, owner)).fetchone() for key in keys[:cap])
            return WordMatches(
                found=[WordMatch(row[0], Entry._make(row[2:]), row[1]) for row in rows if row is not None],
                truncated=len(keys) > cap,
                frequencies={
                    term.token: _count(connection, fts5_term_match(term, scope), first, last) for term in query.terms
                },
                total=connection.execute(sql.SCOPE_SIZE, (owner, conversation, conversation)).fetchone()[0],
            )

        return await self._database.read_indexed(work)

    async def postings(self, owner: str, conversation: str | None, terms: Sequence[Term], *, cap: int) -> Postings:
        def work(connection: sqlite3.Connection) -> Postings:
            return read_postings(connection, owner, conversation, terms, cap)

        if conversation is None:
            return await self._database.read_indexed(work)
        ref = Ref(owner, conversation)
        return await self._database.read_indexed(work, lambda c: indexing.is_far_behind(c, ref))

    async def messages(
        self, owner: str, entry_keys: Sequence[int], named: Sequence[tuple[str, int]]
    ) -> Sequence[PlacedMessage]:
        def work(connection: sqlite3.Connection) -> Sequence[PlacedMessage]:
            numbers = {id: connection.execute(sql.NUMBER, (owner, id)).fetchone() for id in {id for id, _ in named}}
            keys = {*entry_keys, *(entry_key(row[0], seq) for id, seq in named if (row := numbers[id]) is not None)}
            rows = connection.execute(sql.PLACED, (json.dumps(sorted(keys)), owner))
            found = (PlacedMessage(row[0], row[1], row[2], row[3], counted(Entry._make(row[4:]))) for row in rows)
            return list({one.entry_key: one for one in found}.values())

        return await self._database.engine.read(work)


def read_postings(
    connection: sqlite3.Connection, owner: str, conversation: str | None, terms: Sequence[Term], cap: int
) -> Postings:
    """Of each term the entries of this owner, or of one of its conversations, that have it; in a conversation those too
    that the index has not reached."""
    first, last = _span(connection, owner, conversation)
    tail = indexing.tail(connection, first >> SEQ_BITS) if conversation is not None else indexing.Tail(last)
    scope = [] if conversation is not None or _is_large(connection, owner) else [owner_scope(owner)]
    total = connection.execute(sql.SCOPE_SIZE, (owner, conversation, conversation)).fetchone()[0]
    is_within = conversation is not None and total <= cap
    found: dict[Term, list[int]] = {}
    for term in terms:
        match = fts5_term_match(term, scope)
        if is_within:
            rows = connection.execute(sql.TERM_POSTINGS, (match, first, tail.after))
        else:
            rows = connection.execute(sql.NEWEST_TERM_POSTINGS, (match, first, tail.after, cap + 1))
        found[term] = sorted(orjson.loads(rows.fetchone()[0]))
    waiting = frozenset[str]().union(*(words for _, words in tail.words))
    for term, keys in found.items():
        if has_term(term, waiting):  # none of those that wait has it else: so it is with nearly all terms
            keys += [key for key, words in tail.words if has_term(term, words)]
    is_cut = any(len(keys) > cap for keys in found.values())
    found = {term: keys[-cap:] for term, keys in found.items()}
    if conversation is None:
        found = _keep_owned_of_each(connection, owner, found)
    return Postings(found, total, is_cut)


def _span(connection: sqlite3.Connection, owner: str, conversation: str | None) -> tuple[int, int]:
    if conversation is None:
        return 0, NEWEST
    number, _, _ = log.living_head(connection, Ref(owner, conversation))
    return number << SEQ_BITS, entry_key(number, SEQ_MASK)


def _is_large(connection: sqlite3.Connection, owner: str) -> bool:
    owned, of_all = connection.execute(sql.OWNER_SHARE, (owner,)).fetchone()
    return bool(owned >= _LARGE_SHARE * (of_all or 0))


def _keep_owned(connection: sqlite3.Connection, owner: str, keys: Iterable[int]) -> Iterator[int]:
    """Those of this owner; each conversation is asked for its owner once."""
    known: dict[int, bool] = {}
    for key in keys:
        number = key >> SEQ_BITS
        if number not in known:
            known[number] = connection.execute(sql.OWNER, (number,)).fetchone()[0] == owner
        if known[number]:
            yield key


def _keep_owned_of_each(
    connection: sqlite3.Connection, owner: str, found: dict[Term, list[int]]
) -> dict[Term, list[int]]:
    """The same without what others own; all conversations are asked for at once, since a common word is in many."""
    numbers = {key >> SEQ_BITS for keys in found.values() for key in keys}
    owned = {row[0] for row in connection.execute(sql.OWNED, (json.dumps(list(numbers)), owner))}
    if len(owned) == len(numbers):
        return found
    return {term: [key for key in keys if key >> SEQ_BITS in owned] for term, keys in found.items()}


def _count(connection: sqlite3.Connection, match: str, first: int, last: int) -> int:
    count: int = connection.execute(sql.MATCH_COUNT, (match, first, last, COUNT_CAP)).fetchone()[0]
    return count
