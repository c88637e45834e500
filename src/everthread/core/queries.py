"""A parsed search; `history/search_query.py` parses one, and writes it for each database."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """One token of a query, the beginning of one, or a number in whatever spelling (`text.numbers`)."""

    token: str
    is_prefix: bool = False
    spellings: tuple[tuple[Term, ...], ...] = ()
    """Of a number: the sets of tokens of which the index has one in whole where a message may have the number."""
    pattern: str = ""
    """Of a number: what finds it in a folded text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Terms that follow each other in the question: a word, an unspaced run or a phrase."""

    terms: tuple[Term, ...]
    is_phrase: bool = False
    """Whether it was quoted, so that a message must have these terms one right after the other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A parsed question; empty, and then false, when it has no word."""

    groups: tuple[Group, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.groups)

    @property
    def terms(self) -> tuple[Term, ...]:
        """The distinct terms of all groups, in the order of the question."""
        return tuple(dict.fromkeys(term for group in self.groups for term in group.terms))

    @property
    def phrases(self) -> tuple[Group, ...]:
        """The groups that were quoted."""
        return tuple(group for group in self.groups if group.is_phrase)
