"""Finding candidates by words in the tsvector index; ranking is history/ranking.py's."""

from __future__ import annotations

from collections.abc import Sequence

from everthread.adapters.stores.layout import SEQ_BITS, SEQ_MASK, entry_key
from everthread.adapters.stores.postgres import statements as sql
from everthread.adapters.stores.postgres.log import living_head
from everthread.adapters.stores.postgres.pool import Connection
from everthread.core.entries import Entry
from everthread.core.ids import owner_scope
from everthread.core.nouns import Ref
from everthread.core.ports import Candidate, Candidates
from everthread.history.match import Group, Query, Term, parse, tsquery

_NEWEST = 1 << 62
COUNT_CAP = 10_000
"""Words are counted up to this: beyond it one is simply common."""


async def candidates(
    connection: Connection, owner: str, conversation: str | None, text: str, cap: int, any_word: bool
) -> Candidates:
    """At most `cap` matches of this owner, newest first. The owner is a token of the index, so the cap comes after."""
    query, scope = parse(text), [owner_scope(owner)]
    first, last = await _span(connection, owner, conversation)
    match = tsquery(query, scope, any_term=any_word)
    keys = [row[0] for row in await connection.fetch(sql.MATCH, match, first, last, cap + 1)]
    rows = await connection.fetch(sql.CANDIDATES, keys[:cap], owner)
    singles = [tsquery(_only(term), scope) for term in query.terms]
    counts = await connection.fetch(sql.MATCH_COUNTS, singles, first, last, COUNT_CAP)
    return Candidates(
        found=[_candidate(tuple(row)) for row in rows],
        truncated=len(keys) > cap,
        frequencies={term.token: row[0] for term, row in zip(query.terms, counts, strict=True)},
        total=COUNT_CAP,
    )


async def _span(connection: Connection, owner: str, conversation: str | None) -> tuple[int, int]:
    if conversation is None:
        return 0, _NEWEST
    number, _, _ = await living_head(connection, Ref(owner, conversation))
    return number << SEQ_BITS, entry_key(number, SEQ_MASK)


def _only(term: Term) -> Query:
    return Query(groups=(Group(terms=(term,)),))


def _candidate(row: Sequence[object]) -> Candidate:
    return Candidate(str(row[0]), Entry._make(row[2:]), int(str(row[1])))
