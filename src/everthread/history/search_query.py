"""Parse what a person searches for into a `Query`, and write that for FTS5 and for PostgreSQL.

A search is words, and phrases in quotation marks; nothing in it is an operator, so `AND`, `*`, `NEAR(` or
an odd quotation mark are only text. Its tokens come from `text.words`, as those of the messages do:

- a word is one term;
- a run of unspaced characters is its pairs; a run of one character is a *prefix* term, because in the index
  each character of a text begins a pair or stands last in its run;
- a number is one term however it is written (`text.numbers`), except in a phrase, which is as it stands;
- a phrase is the terms of its parts. An index knows which tokens a message has, not where they stand: that
  the parts of a phrase stand together is for the ranking to check (`history.search`).

The builders ask for the messages with all terms or, with `any_term`, for those with all phrases or, if the
question has none, with any of its terms: what a search falls back to when too few messages have all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import repeat

from everthread.core.queries import Group, Query, Term
from everthread.text.numbers import fold_search, number_pattern, split_numbers
from everthread.text.umlauts import umlaut_term
from everthread.text.words import character_pairs, fold, scope_token, split_runs_and_words, stem, without_accents

MAX_QUERY_CHARS = 1_000
MAX_QUERY_TERMS = 32

_QUOTED_OR_PLAIN = re.compile(r'"([^"]*)"|([^"]+)')
_STRAIGHT_QUOTES = str.maketrans("“”", '""')


def parse_query(text: str) -> Query:
    """Parse a search; any text is one. What is beyond 1,000 characters or 32 terms is not looked for."""
    groups: list[Group] = []
    left = MAX_QUERY_TERMS
    for group in dict.fromkeys(_groups(fold_search(text[:MAX_QUERY_CHARS]).translate(_STRAIGHT_QUOTES))):
        if left > 0:
            groups.append(replace(group, terms=group.terms[:left]))
            left -= len(group.terms)
    return Query(groups=tuple(groups))


def fts5_match(query: Query, scope: Sequence[str] = (), *, any_term: bool = False) -> str:
    """The right side of FTS5's `MATCH`, to be bound as a parameter; an empty query matches nothing."""
    if not query:
        return '""'
    required, optional = _required_and_optional(query, scope, _fts5_term, any_term=any_term)
    return " AND ".join([*required, f"({' OR '.join(optional)})"] if optional else required)


def fts5_term_match(term: Term, scope: Sequence[str] = ()) -> str:
    """`fts5_match` for a single term: recall asks for a hundred of them, one by one."""
    return " AND ".join(map(_fts5_term, (*(Term(token=scope_token(name)) for name in scope), term)))


def tsquery(query: Query, scope: Sequence[str] = (), *, any_term: bool = False) -> str:
    """The text of a PostgreSQL `tsquery`, to be bound as a parameter and cast; as above when empty."""
    if not query:
        return ""
    required, optional = _required_and_optional(query, scope, _tsquery_term, any_term=any_term)
    return " & ".join([*required, f"({' | '.join(optional)})"] if optional else required)


def has_term(term: Term, words: frozenset[str]) -> bool:
    """Whether a text with these tokens has a term, or may have a number; what an index would answer."""
    if term.spellings:
        return any(all(has_term(piece, words) for piece in pieces) for pieces in term.spellings)
    if term.is_prefix:
        return any(map(str.startswith, words, repeat(term.token)))
    return term.token in words


def without_common_words(query: Query, frequencies: Mapping[str, int], limit: int) -> Query:
    """Leave out the words that `limit` messages or more have; phrases stay, and all if nothing else would.

    Asked for any term, the newest matches of `what is the budget` have `the` and hardly one the budget.
    """
    kept = tuple(
        group
        for group in query.groups
        if group.is_phrase or min(frequencies.get(term.token, 0) for term in group.terms) < limit
    )
    return replace(query, groups=kept) if kept else query


def excerpt(text: str, query: Query, chars: int) -> str:
    """The part of a long text where the first of the query's terms stands; a short text is given whole.

    Terms are sought by their beginnings, since a stem may end otherwise than the word does.
    """
    if len(text) <= chars:
        return text
    lower = text.lower()
    beginnings = {term.token[: max(3, len(term.token) - 2)] for term in query.terms if not term.pattern}
    found = [at for at in map(lower.find, beginnings) if at >= 0]
    if not found and beginnings and not lower.isascii():  # about there, where folding changes lengths
        found = [at for at in map(without_accents(fold(text)).find, beginnings) if at >= 0]
    numbers = [number_pattern(term).search(lower) for term in query.terms if term.pattern]
    found += [match.start() for match in numbers if match]
    start = max(0, min(found, default=0) - chars // 8)
    return text[start : start + chars]


def _required_and_optional(
    query: Query, scope: Sequence[str], write: Callable[[Term], str], *, any_term: bool
) -> tuple[list[str], list[str]]:
    """The terms of which a message must have all, and those of which it must have one."""
    scopes = [Term(token=scope_token(name)) for name in scope]
    in_phrases = dict.fromkeys(term for phrase in query.phrases for term in phrase.terms)
    required = tuple(in_phrases) if any_term else query.terms
    optional = () if required else query.terms
    return list(map(write, (*scopes, *required))), list(map(write, optional))


def _fts5_term(term: Term) -> str:
    if term.spellings:
        return f"({' OR '.join(_all_of(pieces, _fts5_term, ' AND ') for pieces in term.spellings)})"
    quoted = '"' + term.token.replace('"', '""') + '"'
    return f"{quoted} *" if term.is_prefix else quoted


def _tsquery_term(term: Term) -> str:
    if term.spellings:
        return f"({' | '.join(_all_of(pieces, _tsquery_term, ' & ') for pieces in term.spellings)})"
    quoted = "'" + term.token.replace("\\", "\\\\").replace("'", "''") + "'"
    return f"{quoted}:*" if term.is_prefix else quoted


def _all_of(pieces: Sequence[Term], write: Callable[[Term], str], joint: str) -> str:
    return f"({joint.join(map(write, pieces))})"


def _groups(text: str) -> Iterator[Group]:
    for quoted, plain in _QUOTED_OR_PLAIN.findall(text):
        for part in split_numbers(plain):
            words = [(part,)] if isinstance(part, Term) else list(map(_word_terms, split_runs_and_words(part)))
            yield from (Group(terms=one) for one in words)
        phrase = _terms(split_runs_and_words(quoted))
        if phrase:
            yield Group(terms=phrase, is_phrase=True)


def _word_terms(part: tuple[str, str]) -> tuple[Term, ...]:
    """The terms of a single part, whose umlauts may be written in whatever way."""
    term = umlaut_term(part[1])
    return _terms([part]) if term is None else (term,)


def _terms(parts: Sequence[tuple[str, str]]) -> tuple[Term, ...]:
    """The terms of parts that follow each other.

    The last character of a run is a token only where the run ends in the message too: so it is asked for
    inside a phrase, but not at its end, where the message's run may go on.
    """
    terms: list[Term] = []
    for run, word in parts:
        found = [*character_pairs(run), run[-1]] if run else [stem(word)]
        terms += [Term(token=token) for token in found]
    last_run = parts[-1][0] if parts else ""
    if len(last_run) == 1:
        terms[-1] = replace(terms[-1], is_prefix=True)
    return tuple(terms[:-1] if len(last_run) > 1 else terms)
