"""Finding notes by words: the store gives candidates, this ranks them as a search over messages does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from everthread.core.notes import Note, NotesFound
from everthread.core.queries import Query
from everthread.history import ranking
from everthread.history.match import parse, rarer

CANDIDATE_CAP = 300
"""How many candidates are ranked. Ranking reads their texts, at 30 µs each."""
_COMMON_SHARE = 0.5
_LEAST_COMMON = 20
"""A word in so many notes, and in such a share of them, says little about any of them."""


class FindsNotes(Protocol):
    """The part of a store that is asked."""

    async def find_notes(
        self, owner: str, shelves: Sequence[str], query: Query, *, cap: int, any_word: bool
    ) -> NotesFound: ...


class FoundNote(NamedTuple):
    """A note that a search found."""

    note: Note
    score: float


async def find(store: FindsNotes, owner: str, shelves: Sequence[str], text: str, *, limit: int) -> list[FoundNote]:
    """Notes that hold all the words, best first; then, to fill up, those that hold some of the rarer ones."""
    query = parse(text)
    if not query or not limit or not shelves:
        return []
    every = await store.find_notes(owner, shelves, query, cap=CANDIDATE_CAP, any_word=False)
    found = ranked(every, query)
    if len(found) < limit and len(query.terms) > 1:
        telling = rarer(query, every.frequencies, max(_LEAST_COMMON, int(every.total * _COMMON_SHARE)))
        some = await store.find_notes(owner, shelves, telling, cap=CANDIDATE_CAP, any_word=True)
        known = {one.note.number for one in found}
        found += [one for one in ranked(some, query) if one.note.number not in known]
    return found[:limit]


def ranked(candidates: NotesFound, query: Query) -> list[FoundNote]:
    """The candidates that answer the query, best first."""
    by_number = {note.number: note for note in candidates.found}
    texts = [ranking.Candidate(key=number, text=note.text) for number, note in by_number.items()]
    places = ranking.rank(query, texts, candidates.frequencies, candidates.total)
    return [FoundNote(by_number[place.key], place.score) for place in places]
