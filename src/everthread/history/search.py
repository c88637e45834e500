"""Search by words: the store finds matching messages, which are ranked here and shown as snippets.

An index says which of the newest messages have the words, and is asked for a bounded number of them. Their texts are
read again and scored by BM25, on every store alike:

- a rare word weighs more than a common one, by the counted messages that have it and, because such counts are
  capped, also by the share of the matches that have it;
- a word said often counts more, but ever less so, and less in a long text;
- words that stand together in the question and in the message add to the score;
- a number must be there as a number, in whatever spelling, or it does not count;
- a phrase must be there, word for word by their tokens, or the message is not a hit;
- of equal scores the newer message, which has the greater key, comes first.

Of a long text only the excerpt around its first match is read; a phrase is looked for in the whole.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import NamedTuple

from everthread.core import payloads
from everthread.core.errors import NotFound
from everthread.core.nouns import Hit, Hits, MatchStrength, Message
from everthread.core.ports import Search, WordMatch, WordMatches
from everthread.core.queries import Query, Term
from everthread.history.search_query import excerpt, parse_query, without_common_words
from everthread.history.snippets import snippet
from everthread.text.bm25 import bm25, idf
from everthread.text.numbers import number_pattern
from everthread.text.secrets import redact_secrets
from everthread.text.words import fold, is_unspaced, simplify, tokenize

MAX_MATCHES = 300
"""How many matches are ranked. Ranking reads their texts, at 30 µs each."""
_MIN_MATCHES_OF_EACH = 10
"""Where several conversations are searched, so many matches of each are ranked at least."""
_COMMON = 10_000
"""A word that occurs in this many messages says little about any of them."""
_READ_CHARS = 4_000
_PHRASE_CHARS = 1_000_000
_MIN_IDF = 0.1
"""The weight of a word that occurs in all messages, or in as many as were counted."""
_COMMON_AMONG_MATCHES = 0.9
"""The share of its weight that a word loses when all matches have it."""
_NEIGHBOUR_SHARE = 0.5
"""The bonus for two adjacent words, as a share of the lighter one's weight."""
_UNSEEN_COUNT = 0.25
"""The count of a word that the excerpt of a long text lacks; the rest of the text may have it."""


async def search_by_words(
    store: Search,
    text: str,
    *,
    owner: str,
    conversation: str | Sequence[str] | None,
    limit: int,
    show_secrets: bool = False,
) -> Hits:
    """Return the messages that have all the words, best first; then, to fill up, those with some of the rarer ones.
    They are sought in one conversation, in several, or in all of the owner. Secrets in their snippets are masked unless
    asked for."""
    query = parse_query(text)
    if not query or not limit:
        return Hits(())
    scope = _Scope(store, owner, conversation)
    every = await scope.matches(query, any_word=False)
    hits = [hit._replace(match="strong") for hit in _rank_matches(every, query, with_all_numbers=True)]
    truncated = every.truncated
    if len(hits) < limit and len(query.terms) > 1:
        rarer = without_common_words(query, every.frequencies, _COMMON)
        some = await scope.matches(rarer, any_word=True, basis=every.basis)
        known = {hit.found.entry_key for hit in hits}
        hits += [hit for hit in _rank_matches(some, query) if hit.found.entry_key not in known]
        truncated = truncated or some.truncated
    return Hits(tuple(_as_hit(hit, query, show_secrets=show_secrets) for hit in hits[:limit]), truncated)


class _Scope(NamedTuple):
    """Where words are sought."""

    store: Search
    owner: str
    conversation: str | Sequence[str] | None

    async def matches(self, query: Query, *, any_word: bool, basis: object = None) -> WordMatches:
        """The newest matches. Those of several conversations are put together, with the same number of each, so that
        those in one cannot displace those in another."""
        if self.conversation is None or isinstance(self.conversation, str):
            return await self.store.matches(
                self.owner, self.conversation, query, cap=MAX_MATCHES, any_word=any_word, basis=basis
            )
        cap = max(MAX_MATCHES // max(len(self.conversation), 1), _MIN_MATCHES_OF_EACH)
        found: list[WordMatch] = []
        frequencies: Counter[str] = Counter()
        total, truncated = 0, False
        for one in self.conversation:
            with suppress(NotFound):  # erased meanwhile
                part = await self.store.matches(self.owner, one, query, cap=cap, any_word=any_word)
                found += part.found
                frequencies.update(part.frequencies)
                total, truncated = total + part.total, truncated or part.truncated
        return WordMatches(found, truncated, frequencies, total)


class _RankedMatch(NamedTuple):
    found: WordMatch
    text: str
    score: float
    match: MatchStrength = "weak"


def _rank_matches(matches: WordMatches, query: Query, *, with_all_numbers: bool = False) -> list[_RankedMatch]:
    by_key = {match.entry_key: match for match in matches.found}
    messages = {key: Message(match.entry) for key, match in by_key.items()}
    texts = {key: payloads.searchable(message.payload) for key, message in messages.items()}
    ranked = rank_texts(query, texts, matches.frequencies, matches.total, with_all_numbers=with_all_numbers)
    # Of equals the one that was said last comes first, which need not be the one that was written last.
    ranked.sort(key=lambda one: (one.score, messages[one.key].said_at or messages[one.key].created_at), reverse=True)
    return [_RankedMatch(by_key[key], texts[key], score) for key, score in ranked]


def _as_hit(ranked: _RankedMatch, query: Query, *, show_secrets: bool) -> Hit:
    entry = ranked.found.entry
    # The whole text is masked before it is cut: half of a secret is not recognised as one. And always, flagged or not:
    # when it was written, its kind of secret may not have been known.
    text = ranked.text if show_secrets else redact_secrets(ranked.text)
    # History shows a revision under the seq of the message it revises; an edit is a message of its own.
    return Hit(
        conversation_id=ranked.found.conversation_id,
        seq=entry.place_seq,
        id=entry.id,
        snippet=snippet(text, query),
        score=ranked.score,
        match=ranked.match,
    )


# -- ranking -------------------------------------------------------------------------------------------------------


class ScoredText(NamedTuple):
    """A hit; its score is above zero and compares only with the others of the same search."""

    key: int
    score: float


def rank_texts(
    query: Query,
    texts: Mapping[int, str],
    frequencies: Mapping[str, int],
    total: int,
    *,
    with_all_numbers: bool = False,
) -> list[ScoredText]:
    """The hits among these texts, best first; keys rise with newness.

    An index has the pieces of numbers, so a text that it names for all its words may lack a number;
    `with_all_numbers` leaves these out. `frequencies` are the numbers of texts that have a
    token, as far as they were counted, out of `total`; a token that is not in it is taken to be as frequent as the
    texts show.
    """
    if not texts:
        return []
    matcher = _Matcher(query)
    matches = [matcher.match(key, text) for key, text in texts.items() if matcher.has_phrases(text)]
    matches = [match for match in matches if any(match.counts)]
    if with_all_numbers:
        matches = [match for match in matches if all(match.counts[index] for index in matcher.numbers)]
    if not matches:
        return []
    weights = _term_weights(matcher.terms, matches, frequencies, total)
    average_length = sum(match.length for match in matches) / len(matches)
    hits = (ScoredText(match.key, _score(match, weights, average_length)) for match in matches)
    return sorted(hits, key=lambda hit: (-hit.score, -hit.key))


class _TextMatch(NamedTuple):
    """The query terms found in one text."""

    key: int
    length: int
    counts: list[float]
    """How often each term of the query occurs."""
    neighbours: list[bool]
    """Whether each term of the query is somewhere followed by the next one."""


class _Matcher:
    """Reads texts for one query: hundreds of them a search, so what it looks for is prepared once."""

    def __init__(self, query: Query) -> None:
        self.query = query
        self.terms = query.terms
        self.phrases = query.phrases
        self.numbers = {index: number_pattern(term) for index, term in enumerate(self.terms) if term.pattern}
        words = [(index, term) for index, term in enumerate(self.terms) if not term.pattern]
        self._exact = {term.token: index for index, term in words if not term.is_prefix}
        self._prefixes = {term.token: index for index, term in words if term.is_prefix}
        self._is_unspaced = all(is_unspaced(term.token) for term in self.terms)
        # How two unspaced tokens look that follow each other in a text; pairs of one run overlap.
        tokens = (term.token for term in self.terms)
        self._joined = [one + other[1:] if one[-1] == other[0] else one + other for one, other in pairwise(tokens)]

    def match(self, key: int, text: str) -> _TextMatch:
        part = excerpt(text, self.query, _READ_CHARS)
        unseen = _UNSEEN_COUNT if len(part) < len(text) else 0
        if self._is_unspaced and (match := self._match_characters(key, part, unseen)):
            return match
        tokens = tokenize(part)
        positions = self._positions(tokens)
        counts = [float(len(at)) for at in positions]
        if self.numbers:
            folded, whole = fold(part), fold(text[:_PHRASE_CHARS]) if len(part) < len(text) else ""
            for index, pattern in self.numbers.items():
                places = [_token_places(folded, found) for found in pattern.finditer(folded)]
                positions[index] = {at for both in places for at in both}
                counts[index] = len(places) or (unseen if pattern.search(whole) else 0)
        return _TextMatch(
            key,
            len(tokens),
            [count if index in self.numbers else count or unseen for index, count in enumerate(counts)],
            [any(at + 1 in following for at in here) for here, following in pairwise(positions)],
        )

    def _match_characters(self, key: int, part: str, unseen: float) -> _TextMatch | None:
        """Count characters as they stand: ten times as fast, but blind to those that NFKC makes of others."""
        part = simplify(part)
        counts = [part.count(term.token) for term in self.terms]
        if not any(counts):
            return None
        neighbours = [joined in part for joined in self._joined]
        return _TextMatch(key, len(part), [count or unseen for count in counts], neighbours)

    def has_phrases(self, text: str) -> bool:
        if not self.phrases:
            return True
        positions = dict(zip(self.terms, self._positions(tokenize(text[:_PHRASE_CHARS])), strict=True))
        return all(_is_in_sequence([positions[term] for term in phrase.terms]) for phrase in self.phrases)

    def _positions(self, tokens: Sequence[str]) -> list[set[int]]:
        """Return, for each query term, its positions among the tokens of a text."""
        positions: list[set[int]] = [set() for _ in self.terms]
        exact, prefixes = self._exact, self._prefixes
        for at, token in [(at, token) for at, token in enumerate(tokens) if token in exact]:
            positions[exact[token]].add(at)
        if prefixes:
            for at, token in [(at, token) for at, token in enumerate(tokens) if token[0] in prefixes]:
                positions[prefixes[token[0]]].add(at)
        return positions


def _token_places(folded: str, found: re.Match[str]) -> tuple[int, int]:
    """The places of the first and the last token of a number among those of its text."""
    first = len(tokenize(folded[: found.start()]))
    return first, first + max(1, len(tokenize(found[0]))) - 1


def _is_in_sequence(positions: Sequence[set[int]]) -> bool:
    """Whether there is a position from which on each term has the next one."""
    return any(all(first + distance in at for distance, at in enumerate(positions)) for first in positions[0])


def _term_weights(
    terms: Sequence[Term], matches: Sequence[_TextMatch], frequencies: Mapping[str, int], total: int
) -> list[float]:
    weights = []
    for index, term in enumerate(terms):
        having = sum(match.counts[index] >= 1 for match in matches)
        rarity = idf(max(having, frequencies.get(term.token, 0)), total)
        weights.append(max(rarity, _MIN_IDF) * (1 - _COMMON_AMONG_MATCHES * having / len(matches)))
    return weights


def _score(match: _TextMatch, weights: Sequence[float], average_length: float) -> float:
    words = bm25(enumerate(match.counts), match.length, average_length, weights)
    together = sum(
        min(pair) * _NEIGHBOUR_SHARE
        for pair, are_neighbours in zip(pairwise(weights), match.neighbours, strict=True)
        if are_neighbours
    )
    return words + together
