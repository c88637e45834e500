"""Which tool calls and results concern somebody whom they do not name. Pure; `search` reads what is followed here.

A result such as `{"plan": "basic"}` says neither whose plan it is nor what was asked. It belongs to its call, which
stands before it. The call has an identifier, such as an order's number, which came from a result or a message that had
another one, up to the message that has the name. So identifiers are followed from the message that names what the
question names, a few steps far, and what is found on the way carries the words it was found by.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from itertools import islice

from everthread.core.queries import Term
from everthread.recall.query import RecallQuery
from everthread.text.words import tokenize

TOOL_ROLES = frozenset({"tool", "function"})
MAX_STEPS = 3
"""From a name to a customer's number, to an order's, to a parcel's."""
_MAX_IDENTIFIERS = 12
"""So many are followed at each step."""
MAX_LINKED = 20
"""What more messages have is no identifier of one thing."""
RESULT_REACH = 2
"""So many messages after a call may be its results."""
_MIN_NAMED_SHARE = 0.9
"""A message names what the question names if it has this share of what the best one has."""
_IDENTIFIER = re.compile(r"(?=[a-z0-9]*\d)(?!(?:19|20)\d\d$)[a-z0-9]{4,}")
_MAX_READ_CHARACTERS = 4_000


def identifiers(text: str) -> list[str]:
    """The tokens of a text that look like somebody's or something's number: digits in it, four characters, no year."""
    words = dict.fromkeys(tokenize(text[:_MAX_READ_CHARACTERS]))
    return [word for word in words if _IDENTIFIER.fullmatch(word)]


def naming(
    query: RecallQuery, idfs: Mapping[Term, float], postings: Mapping[Term, Sequence[int]], spoken: Iterable[int]
) -> dict[int, frozenset[int]]:
    """Of these messages, by entry key, those that have most of the question, and which of its terms each has."""
    having = [set(postings.get(term, ())) for term in query.terms]
    worth = [idfs.get(term, 0.0) for term in query.terms]
    terms = {key: frozenset([at for at, keys in enumerate(having) if key in keys]) for key in spoken}
    weights = {key: sum([worth[at] for at in some]) for key, some in terms.items()}
    least = _MIN_NAMED_SHARE * max(weights.values(), default=0.0)
    return {key: terms[key] for key, weight in weights.items() if weight and weight >= least}


def sources_of(texts: Iterable[tuple[str, Iterable[int]]], followed: Container[str]) -> dict[str, set[int]]:
    """The identifiers in these texts that were not followed yet, and the terms that each comes with."""
    sources: dict[str, set[int]] = {}
    for text, terms in texts:
        for word in identifiers(text):
            if word not in followed:
                sources.setdefault(word, set()).update(terms)
    return dict(islice(sources.items(), _MAX_IDENTIFIERS))


def leads_of(postings: Mapping[Term, Sequence[int]], sources: Mapping[str, set[int]]) -> dict[int, set[int]]:
    """The messages that have these identifiers, unless too many have one, and the terms that lead to each."""
    leads: dict[int, set[int]] = {}
    for term, keys in postings.items():
        for key in keys if len(keys) <= MAX_LINKED else ():
            leads.setdefault(key, set()).update(sources[term.token])
    return leads
