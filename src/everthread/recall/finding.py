"""Finding notes: by words, where the store gives candidates and this ranks them as a search over messages does; and by
meaning too, where there is an embedder.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from everthread.core.errors import ModelError, StoreError
from everthread.core.meaning import Embedder
from everthread.core.notes import Note, NotesFound
from everthread.core.queries import Query
from everthread.history.search import rank_texts
from everthread.history.search_query import MAX_QUERY_CHARS, parse_query, without_common_words

CANDIDATE_CAP = 300
"""How many candidates are ranked. Ranking reads their texts, at 30 µs each."""
_COMMON_SHARE = 0.5
_LEAST_COMMON = 20
"""A word in so many notes, and in such a share of them, says little about any of them."""


_WIDE = 50
"""How many by words and how many by meaning are ranked together."""
_MEANING = 0.5
"""What the meaning weighs where the model understands all of a question; the words weigh the rest."""
LEAST_COSINE = 0.25
"""Below this nothing is near."""


class FindsNotes(Protocol):
    """The part of a store that is asked."""

    async def nearest(
        self, owner: str, shelves: Sequence[str], model: str, vector: bytes, *, limit: int
    ) -> Sequence[tuple[Note, float]]: ...

    async def find(
        self, owner: str, shelves: Sequence[str], query: Query, *, cap: int, any_word: bool
    ) -> NotesFound: ...


class FoundNote(NamedTuple):
    """A note that a search found."""

    note: Note
    score: float


async def find(store: FindsNotes, owner: str, shelves: Sequence[str], text: str, *, limit: int) -> list[FoundNote]:
    """Notes that hold all the words, best first; then, to fill up, those that hold some of the rarer ones."""
    query = parse_query(text)
    if not query or not limit or not shelves:
        return []
    every = await store.find(owner, shelves, query, cap=CANDIDATE_CAP, any_word=False)
    found = ranked(every, query)
    if len(found) < limit and len(query.terms) > 1 and every.total:
        telling = without_common_words(query, every.frequencies, max(_LEAST_COMMON, int(every.total * _COMMON_SHARE)))
        some = await store.find(owner, shelves, telling, cap=CANDIDATE_CAP, any_word=True)
        known = {one.note.number for one in found}
        found += [one for one in ranked(some, query) if one.note.number not in known]
    return found[:limit]


def ranked(candidates: NotesFound, query: Query) -> list[FoundNote]:
    """The candidates that answer the query, best first."""
    by_number = {note.number: note for note in candidates.found}
    texts = {number: note.text for number, note in by_number.items()}
    scored = rank_texts(query, texts, candidates.frequencies, candidates.total)
    return [FoundNote(by_number[number], score) for number, score in scored]


async def find_both(
    store: FindsNotes,
    embedder: Embedder | None,
    owner: str,
    shelves: Sequence[str],
    *,
    words: str,
    asked: str,
    limit: int,
    least: float = LEAST_COSINE,
) -> tuple[list[FoundNote], bool]:
    """Notes by the words of a question and by its meaning, best first; and whether the meaning could not be asked."""
    by_words = await find(store, owner, shelves, words, limit=max(limit, _WIDE))
    try:
        near = await _near(store, embedder, owner, shelves, asked[:MAX_QUERY_CHARS], least)
    except (ModelError, StoreError):
        return by_words[:limit], True
    return _fused(by_words, near)[:limit], False


async def _near(
    store: FindsNotes, embedder: Embedder | None, owner: str, shelves: Sequence[str], asked: str, least: float
) -> list[FoundNote]:
    """What is near in meaning, weighed by how much of the question the model understands."""
    weight = 0.0 if embedder is None or not shelves else _MEANING * embedder.grasp(asked)
    if embedder is None or weight <= 0:
        return []
    vector = await embedder.query(asked)
    found = await store.nearest(owner, shelves, embedder.name, vector, limit=_WIDE)
    return [FoundNote(note, weight * cosine) for note, cosine in found if cosine >= least]


def _fused(by_words: Sequence[FoundNote], near: Sequence[FoundNote]) -> list[FoundNote]:
    """One order of both: the words' scores by the best of them, the meaning's as they are."""
    if not near:
        return list(by_words)
    best = max((one.score for one in by_words), default=1.0)
    scores = {one.note.number: (1 - _MEANING) * one.score / best for one in by_words}
    notes = {one.note.number: one.note for one in (*by_words, *near)}
    for one in near:
        scores[one.note.number] = scores.get(one.note.number, 0.0) + one.score
    ranked = sorted(scores, key=lambda number: (-scores[number], -number))
    return [FoundNote(notes[number], scores[number]) for number in ranked]
