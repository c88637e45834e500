"""Search: the store finds candidates by words, this ranks them and cuts a snippet of each."""

from __future__ import annotations

from everthread.core import payloads
from everthread.core.entries import Entry
from everthread.core.nouns import Hit, Hits, Message
from everthread.core.ports import Candidates, Search
from everthread.history import ranking
from everthread.history.match import parse
from everthread.history.snippets import snippet

CANDIDATE_CAP = 500
"""How many candidates are ranked. Ranking reads their texts: 500 take about 20 ms."""


async def search(store: Search, text: str, *, owner: str, conversation: str | None, limit: int) -> Hits:
    """Messages that hold all the words, best first; then, to fill up, those that hold some of them."""
    query = parse(text)
    if not query or not limit:
        return Hits(())
    every = await store.candidates(owner, conversation, text, cap=CANDIDATE_CAP, any_word=False)
    found = _ranked(every, text)
    truncated = every.truncated
    if len(found) < limit and len(query.terms) > 1:
        some = await store.candidates(owner, conversation, text, cap=CANDIDATE_CAP, any_word=True)
        known = {(hit.conversation_id, hit.seq) for hit in found}
        found += [hit for hit in _ranked(some, text) if (hit.conversation_id, hit.seq) not in known]
        truncated = truncated or some.truncated
    return Hits(tuple(found[:limit]), truncated)


def _ranked(candidates: Candidates, text: str) -> list[Hit]:
    query = parse(text)
    by_key = {position: candidate for position, candidate in enumerate(candidates.found)}
    texts = {key: payloads.searchable(Message(candidate.entry).payload) for key, candidate in by_key.items()}
    ranked = ranking.rank(
        query,
        [ranking.Candidate(key=by_key[key].order, text=texts[key]) for key in by_key],
        candidates.frequencies,
        candidates.total,
    )
    by_order = {candidate.order: key for key, candidate in by_key.items()}
    hits = []
    for place in ranked:
        key = by_order[place.key]
        candidate = by_key[key]
        hits.append(
            Hit(
                conversation_id=candidate.conversation_id,
                seq=_place_of(candidate.entry),
                id=candidate.entry.id,
                snippet=snippet(texts[key], query),
                score=place.score,
            )
        )
    return hits


def _place_of(entry: Entry) -> int:
    """The seq that history shows it under: an edit has a place of its own."""
    return entry.seq if entry.is_place or entry.revises is None else entry.revises
