"""Search: the store finds candidates by words, this ranks them and cuts a snippet of each."""

from __future__ import annotations

from typing import NamedTuple

from everthread.core import payloads
from everthread.core.entries import Entry
from everthread.core.nouns import Hit, Hits, Message
from everthread.core.ports import Candidate, Candidates, Search
from everthread.core.queries import Query
from everthread.history import ranking
from everthread.history.match import parse, rarer
from everthread.history.snippets import snippet

CANDIDATE_CAP = 300
"""How many candidates are ranked. Ranking reads their texts, at 30 µs each."""
COMMON = 10_000
"""A word in so many messages says little about any of them."""


class _Scored(NamedTuple):
    candidate: Candidate
    text: str
    score: float


async def search(store: Search, text: str, *, owner: str, conversation: str | None, limit: int) -> Hits:
    """Messages that hold all the words, best first; then, to fill up, those that hold some of the rarer ones."""
    query = parse(text)
    if not query or not limit:
        return Hits(())
    every = await store.candidates(owner, conversation, query, cap=CANDIDATE_CAP, any_word=False)
    found = _ranked(every, query)
    truncated = every.truncated
    if len(found) < limit and len(query.terms) > 1:
        telling = rarer(query, every.frequencies, COMMON)
        some = await store.candidates(owner, conversation, telling, cap=CANDIDATE_CAP, any_word=True, basis=every.basis)
        known = {scored.candidate.order for scored in found}
        found += [scored for scored in _ranked(some, query) if scored.candidate.order not in known]
        truncated = truncated or some.truncated
    return Hits(tuple(_hit(scored, query) for scored in found[:limit]), truncated)


def _ranked(candidates: Candidates, query: Query) -> list[_Scored]:
    by_order = {candidate.order: candidate for candidate in candidates.found}
    texts = {order: payloads.searchable(Message(candidate.entry).payload) for order, candidate in by_order.items()}
    ranked = ranking.rank(
        query,
        [ranking.Candidate(key=order, text=text) for order, text in texts.items()],
        candidates.frequencies,
        candidates.total,
    )
    return [_Scored(by_order[place.key], texts[place.key], place.score) for place in ranked]


def _hit(scored: _Scored, query: Query) -> Hit:
    entry = scored.candidate.entry
    return Hit(
        conversation_id=scored.candidate.conversation_id,
        seq=_place_of(entry),
        id=entry.id,
        snippet=snippet(scored.text, query),
        score=scored.score,
    )


def _place_of(entry: Entry) -> int:
    """The seq that history shows it under: an edit has a place of its own."""
    return entry.seq if entry.is_place or entry.revises is None else entry.revises
