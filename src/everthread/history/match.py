"""Turn what a person asks into what an index is asked: a `Query`, and its form for FTS5 and for PostgreSQL.

A question is words, and phrases in quotation marks; nothing in it is an operator, so `AND`, `*`, `NEAR(` or
an odd quotation mark are only text. Its tokens come from `words`, as those of the messages do:

- a word is one term;
- a run of unspaced characters is its pairs; a run of one character is a *prefix* term, because in the index
  each character of a text begins a pair or stands last in its run;
- a phrase is the terms of its parts. An index knows which tokens a message has, not where they stand: that
  the parts of a phrase stand together is for `ranking` to check, which leaves out the messages without it.

The builders ask for the messages with all terms or, with `any_term`, for those with all phrases or, if the
question has none, with any of its terms: what a search falls back to when too few messages have all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from everthread.core.queries import Group, Query, Term
from everthread.text.words import normal, pairs, runs_and_words, scope_token, stem

MAX_QUERY_CHARS = 1_000
MAX_QUERY_TERMS = 32

_QUOTED_OR_PLAIN = re.compile(r'"([^"]*)"|([^"]+)')
_STRAIGHT_QUOTES = str.maketrans("“”", '""')


def parse(text: str) -> Query:
    """Read a question; any text is one. What is beyond 1,000 characters or 32 terms is not asked for."""
    groups: list[Group] = []
    left = MAX_QUERY_TERMS
    for group in dict.fromkeys(_groups(normal(text[:MAX_QUERY_CHARS]).translate(_STRAIGHT_QUOTES))):
        if left > 0:
            groups.append(replace(group, terms=group.terms[:left]))
            left -= len(group.terms)
    return Query(groups=tuple(groups))


def fts5_match(query: Query, scope: Sequence[str] = (), *, any_term: bool = False) -> str:
    """Give the right side of FTS5's `MATCH`, to be bound as a parameter; an empty query matches nothing."""
    if not query:
        return '""'
    required, alternatives = _demands(query, scope, _fts5_term, any_term=any_term)
    return " AND ".join([*required, f"({' OR '.join(alternatives)})"] if alternatives else required)


def tsquery(query: Query, scope: Sequence[str] = (), *, any_term: bool = False) -> str:
    """Give the text of a PostgreSQL `tsquery`, to be bound as a parameter and cast; as above when empty."""
    if not query:
        return ""
    required, alternatives = _demands(query, scope, _tsquery_term, any_term=any_term)
    return " & ".join([*required, f"({' | '.join(alternatives)})"] if alternatives else required)


def has(term: Term, words: frozenset[str]) -> bool:
    """Whether a text with these tokens has a term, as an index would tell."""
    if term.is_prefix:
        return any(word.startswith(term.token) for word in words)
    return term.token in words


def rarer(query: Query, frequencies: Mapping[str, int], limit: int) -> Query:
    """Leave out the words that `limit` messages or more have; phrases stay, and all if nothing else would.

    Asked for any term, the newest candidates of `what is the budget` have `the` and hardly one the budget.
    """
    kept = tuple(group for group in query.groups if group.is_phrase or _least(group, frequencies) < limit)
    return replace(query, groups=kept) if kept else query


def stretch(text: str, query: Query, chars: int) -> str:
    """Give the part of a long text where the first of the query's terms stands; a short text is given whole.

    Terms are sought by their beginnings, since a stem may end otherwise than the word does.
    """
    if len(text) <= chars:
        return text
    lower = text.lower()
    beginnings = {term.token[: max(3, len(term.token) - 2)] for term in query.terms}
    found = [at for at in map(lower.find, beginnings) if at >= 0]
    start = max(0, min(found, default=0) - chars // 8)
    return text[start : start + chars]


def _demands(
    query: Query, scope: Sequence[str], written: Callable[[Term], str], *, any_term: bool
) -> tuple[list[str], list[str]]:
    """Give the terms of which a message must have all, and those of which it must have one."""
    scopes = [Term(token=scope_token(name)) for name in scope]
    required = _distinct(query.phrases) if any_term else query.terms
    alternatives = () if required else query.terms
    return list(map(written, (*scopes, *required))), list(map(written, alternatives))


def _fts5_term(term: Term) -> str:
    quoted = '"' + term.token.replace('"', '""') + '"'
    return f"{quoted} *" if term.is_prefix else quoted


def _tsquery_term(term: Term) -> str:
    quoted = "'" + term.token.replace("\\", "\\\\").replace("'", "''") + "'"
    return f"{quoted}:*" if term.is_prefix else quoted


def _groups(text: str) -> Iterator[Group]:
    for quoted, plain in _QUOTED_OR_PLAIN.findall(text):
        parts = [_terms([part]) for part in runs_and_words(plain)]
        phrase = _terms(runs_and_words(quoted))
        yield from (Group(terms=part) for part in parts)
        if phrase:
            yield Group(terms=phrase, is_phrase=True)


def _terms(parts: Sequence[tuple[str, str]]) -> tuple[Term, ...]:
    """Give the terms of parts that follow each other.

    The last character of a run is a token only where the run ends in the message too: so it is asked for
    inside a phrase, but not at its end, where the message's run may go on.
    """
    terms: list[Term] = []
    for run, word in parts:
        found = [*pairs(run), run[-1]] if run else [stem(word)]
        terms += [Term(token=token) for token in found]
    last_run = parts[-1][0] if parts else ""
    if len(last_run) == 1:
        terms[-1] = replace(terms[-1], is_prefix=True)
    return tuple(terms[:-1] if len(last_run) > 1 else terms)


def _least(group: Group, frequencies: Mapping[str, int]) -> int:
    return min(frequencies.get(term.token, 0) for term in group.terms)


def _distinct(groups: Iterable[Group]) -> tuple[Term, ...]:
    return tuple(dict.fromkeys(term for group in groups for term in group.terms))
