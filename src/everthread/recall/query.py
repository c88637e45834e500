"""Questions to memories and documents: what is asked, what of it tells something, and where a page goes on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from everthread.core.errors import Invalid
from everthread.core.ids import owner_scope
from everthread.history.search_query import MAX_QUERY_CHARS
from everthread.text.terms import terms
from everthread.text.words import fold, split_runs_and_words

MAX_QUERY_CHARACTERS: Final = 100_000


def check_query(query: object) -> str:
    """A question, or Invalid."""
    if not isinstance(query, str):
        raise Invalid(f"must be a string, not {type(query).__name__}", field="query")
    if len(query) > MAX_QUERY_CHARACTERS:
        raise Invalid(f"must have at most {MAX_QUERY_CHARACTERS} characters, this has {len(query)}", field="query")
    return query


def telling(query: str) -> str:
    """The question without the words that any text has; as it is where it has no others. Phrases stay quoted."""
    if '"' in query:
        return query
    parts = split_runs_and_words(fold(query[:MAX_QUERY_CHARS]))
    words = dict.fromkeys(word for run, spaced in parts for word in (_of_run(run) if run else _of_word(spaced)))
    return " ".join(words) or query


def _of_word(word: str) -> Sequence[str]:
    return [word] if not word.isascii() or terms(word) else []


def _of_run(run: str) -> Sequence[str]:
    """Chinese by pairs, those without a meaning of their own left out; other scripts as they are."""
    return terms(run) if all("\u3400" <= char <= "\u9fff" for char in run) else [run]


def page_cursor(owner: str, number: int) -> str:
    """What goes on after this note, for this owner."""
    return f"{owner_scope(owner)}.{number}"


def position(cursor: object, owner: str) -> int:
    """Where a page begins, or Invalid."""
    scope, _, number = cursor.partition(".") if isinstance(cursor, str) else ("", "", "")
    if scope != owner_scope(owner) or not number.isascii() or not number.isdigit() or len(number) > 18:
        raise Invalid("is not one that list() gave for this owner; begin without a cursor", field="cursor")
    return int(number)
