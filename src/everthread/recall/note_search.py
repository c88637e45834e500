"""Search over notes (memories, passages of documents): by words, ranked as a search over messages is, and by meaning
too, where there is an embedder.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from everthread.core.embeddings import Embedder
from everthread.core.errors import Invalid, ModelError, StoreError
from everthread.core.ids import owner_scope
from everthread.core.notes import Note, NotesFound
from everthread.core.ports import Notes
from everthread.core.queries import Query
from everthread.history.search import MAX_MATCHES, rank_texts
from everthread.history.search_query import MAX_QUERY_CHARS, parse_query, without_common_words
from everthread.text.numbers import find_numbers
from everthread.text.terms import terms
from everthread.text.words import fold, split_runs_and_words

MAX_QUERY_CHARACTERS: Final = 100_000
_COMMON_SHARE = 0.5
_MIN_COMMON = 20
"""A word in so many notes, and in such a share of them, says little about any of them."""
_MAX_EACH = 50
"""How many by words and how many by meaning are ranked together."""
_MEANING_SHARE = 0.5
"""What the meaning weighs where the model understands all of a question; the words weigh the rest."""
_MIN_COSINE = 0.25
"""Below this nothing is near."""


class ScoredNote(NamedTuple):
    """A note that a search found."""

    note: Note
    score: float


async def find_notes(
    notes: Notes,
    embedder: Embedder | None,
    owner: str,
    namespaces: Sequence[str],
    question: str,
    *,
    limit: int,
    min_cosine: float = _MIN_COSINE,
) -> tuple[list[ScoredNote], bool]:
    """Notes by the words of a question and by its meaning, best first; and whether the meaning could not be asked."""
    by_words = await _find_by_words(notes, owner, namespaces, content_words(question), limit=max(limit, _MAX_EACH))
    text = question[:MAX_QUERY_CHARS]
    try:
        by_meaning = await _find_by_meaning(notes, embedder, owner, namespaces, text, min_cosine)
    except (ModelError, StoreError):
        return by_words[:limit], True
    return _fuse(by_words, by_meaning)[:limit], False


async def _find_by_words(
    notes: Notes, owner: str, namespaces: Sequence[str], text: str, *, limit: int
) -> list[ScoredNote]:
    """Notes that hold all the words, best first; then, to fill up, those that hold some of the rarer ones."""
    query = parse_query(text)
    if not query or not limit or not namespaces:
        return []
    every = await notes.find(owner, namespaces, query, cap=MAX_MATCHES, any_word=False)
    hits = _rank(every, query, with_all_numbers=True)
    if len(hits) < limit and len(query.terms) > 1 and every.total:
        rarer = without_common_words(query, every.frequencies, max(_MIN_COMMON, int(every.total * _COMMON_SHARE)))
        some = await notes.find(owner, namespaces, rarer, cap=MAX_MATCHES, any_word=True)
        known = {hit.note.number for hit in hits}
        hits += [hit for hit in _rank(some, query) if hit.note.number not in known]
    return hits[:limit]


def _rank(found: NotesFound, query: Query, *, with_all_numbers: bool = False) -> list[ScoredNote]:
    by_number = {note.number: note for note in found.found}
    texts = {number: note.text for number, note in by_number.items()}
    scored = rank_texts(query, texts, found.frequencies, found.total, with_all_numbers=with_all_numbers)
    return [ScoredNote(by_number[number], score) for number, score in scored]


async def _find_by_meaning(
    notes: Notes, embedder: Embedder | None, owner: str, namespaces: Sequence[str], text: str, min_cosine: float
) -> list[ScoredNote]:
    """What is near in meaning, weighed by how much of the question the model understands."""
    weight = 0.0 if embedder is None or not namespaces else _MEANING_SHARE * embedder.understood_share(text)
    if embedder is None or weight <= 0:
        return []
    vector = await embedder.query(text)
    nearest = await notes.nearest(owner, namespaces, embedder.name, vector, limit=_MAX_EACH)
    return [ScoredNote(note, weight * cosine) for note, cosine in nearest if cosine >= min_cosine]


def _fuse(by_words: Sequence[ScoredNote], by_meaning: Sequence[ScoredNote]) -> list[ScoredNote]:
    """One order of both: the words' scores by the best of them, the meaning's as they are."""
    if not by_meaning:
        return list(by_words)
    best = max((hit.score for hit in by_words), default=1.0)
    scores = {hit.note.number: (1 - _MEANING_SHARE) * hit.score / best for hit in by_words}
    notes = {hit.note.number: hit.note for hit in (*by_words, *by_meaning)}
    for hit in by_meaning:
        scores[hit.note.number] = scores.get(hit.note.number, 0.0) + hit.score
    ranked = sorted(scores, key=lambda number: (-scores[number], -number))
    return [ScoredNote(notes[number], scores[number]) for number in ranked]


# -- what callers give ---------------------------------------------------------------------------------------------


def check_query(query: object) -> str:
    """A question, or Invalid."""
    if not isinstance(query, str):
        raise Invalid(f"must be a string, not {type(query).__name__}", field="query")
    if len(query) > MAX_QUERY_CHARACTERS:
        raise Invalid(f"must have at most {MAX_QUERY_CHARACTERS} characters, this has {len(query)}", field="query")
    return query


def content_words(query: str) -> str:
    """The question without its function words; as it is where it has no others. Phrases stay quoted."""
    if '"' in query:
        return query
    words: dict[str, None] = {}
    for run, word in _words_and_numbers(fold(query[:MAX_QUERY_CHARS])):
        if not run:
            words.update(dict.fromkeys([word] if not word.isascii() or terms(word) else []))
        elif all("\u3400" <= char <= "\u9fff" for char in run):
            words.update(dict.fromkeys(terms(run)))  # Chinese by pairs, without those that have no meaning of their own
        else:
            words[run] = None
    return " ".join(words) or query


def _words_and_numbers(text: str) -> Iterator[tuple[str, str]]:
    """The unspaced runs and the words of a text, a number as it is written."""
    at = 0
    for start, end, _ in find_numbers(text):
        yield from split_runs_and_words(text[at:start])
        yield "", text[start:end]
        at = end
    yield from split_runs_and_words(text[at:])


def page_cursor(owner: str, number: int) -> str:
    """The cursor of the page after this note, for this owner."""
    return f"{owner_scope(owner)}.{number}"


def parse_page_cursor(cursor: object, owner: str) -> int:
    """The number of the note that a page begins after, or Invalid."""
    scope, _, number = cursor.partition(".") if isinstance(cursor, str) else ("", "", "")
    if scope != owner_scope(owner) or not number.isascii() or not number.isdigit() or len(number) > 18:
        raise Invalid("not a cursor that list() gave for this owner; leave it out to begin anew", field="cursor")
    return int(number)
