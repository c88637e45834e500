"""Parse a question into what recall looks for: its content words as terms of the index, and whether it asks the
assistant for what it said.

Function words are left out, unless there are no others. Of Chinese each single character is a term: measured on
Chinese conversations, this ranks better than pairs, because the same thing is seldom said with the same two characters
twice. Other unspaced scripts give pairs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from everthread.core.queries import Term
from everthread.recall.asking import WHATEVER_CHARACTERS, WHATEVER_STEMS, without_asking
from everthread.text.dates import without_times
from everthread.text.irregular_verbs import other_forms
from everthread.text.numbers import fold_search, number_pattern, split_numbers
from everthread.text.related_words import chinese_words, related_words
from everthread.text.umlauts import umlaut_term
from everthread.text.words import character_pairs, fold, split_runs_and_words, stem, tokenize

MAX_QUESTION_CHARACTERS = 2_000
"""What is read of a question: somebody who pastes a page means its beginning, or nothing in particular."""
MAX_TERMS = 48
_MAX_RELATED = 64
"""So many related words are looked for, the closest: each costs a look into the index."""

_FUNCTION_WORDS = frozenset(
    """
    a about also am an and any are as at be been but by can could d did do does doing don for from had has have having
    he her hers him his how i if in into is it its itself just ll m me my myself no not of on or our ours re s she
    should so t than that the their them then there these they this those to too us ve was we were what when where
    which while who whom why will with would you your yours
    """.split()
)
FUNCTION_STEMS = frozenset(map(stem, _FUNCTION_WORDS))
FUNCTION_CHARACTERS = frozenset(
    "的了是在我你他她它们这那有和与及或吗呢吧啊呀么什谁哪怎几多少个都也就还要会能可以把被给对从到为因所之其于上下里中去来说"
    "得着过很最不没让请问一"
)
_COUNTERS = frozenset("号次点个位")
"""Alone they only count or date, as in 18 号; what is related to them is so in other senses (to cry, to wait)."""
_AGENT_NOUN = re.compile(r"([a-z]{4,}[ts])or|([a-z]{5,})er")
"""People ask for the director and were told who directs: stemming joins the forms of a word, but not these."""
_SNAKE = re.compile(r"(?<![a-z0-9_])[a-z]+(?:_[a-z]+)+(?![a-z0-9_])")
_PARTS = re.compile("[a-z]+")
_JOINED_SHARE = 0.95
"""What maxRetryCount counts of max_retry_count, as the closest of related words."""
_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003fffd]")
_ASKS_ASSISTANT = re.compile(
    r"\b(?:did|have|had) you\b"
    r"|\byou(?:'ve| have| had)? (?:said|told|suggested|recommended|mentioned|proposed|advised|gave|explained|listed|"
    r"wrote|showed|provided|called|warned|promised)\b"
    r"|\byour (?:advice|suggestion|recommendation|answer|proposal|explanation|list|plan|warning)"
    r"|你(?:之前|刚才|上次|当时|曾经?)?(?:说|讲|推荐|建议|提到|提醒|给|列|写|介绍|解释|答应)|你的(?:建议|推荐|回答|方案|说法|解释)",
    re.IGNORECASE,
)


RelatedTerms = Mapping[Term, Mapping[int, float]]
"""Each term that stands for some of the question's, by their place in it, and what share of them it counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallQuery:
    """A parsed question."""

    text: str
    """In the form in which texts are compared."""
    terms: tuple[Term, ...]
    related: RelatedTerms = field(default_factory=dict)
    """Other words for what is asked."""
    asks_assistant: bool = False
    """Whether it asks for what the assistant said: `what did you recommend`."""
    asks_for_a_time: bool = False
    """Whether it asks for whatever was said at some time: `what happened on Monday`."""

    @property
    def all_forms(self) -> list[Term]:
        """The terms in all their forms."""
        return list(dict.fromkeys([*self.terms, *(form for term in self.terms for form in other_forms(term))]))

    def for_its_dates(self) -> RecallQuery:
        """The same without any word but the dates that it names."""
        return replace(self, terms=tuple(term for term in self.terms if term.pattern), related={})


def parse_question(question: str) -> RecallQuery:
    """Parse a question; any text is one. One without a single word has no terms, and finds nothing."""
    text = fold_search(question[:MAX_QUESTION_CHARACTERS])
    about = without_asking(text)
    content = _content_of(about)
    kept = (content or tuple(dict.fromkeys(_terms(text))))[:MAX_TERMS]
    return RecallQuery(
        text=text,
        terms=kept,
        related=_related(about, kept) if content else {},
        asks_assistant=_ASKS_ASSISTANT.search(text) is not None,
        asks_for_a_time=_names_only_a_time(about),
    )


def _content_of(text: str) -> tuple[Term, ...]:
    """The terms of a text but those of function words, each once. Without its accents mẹ (mother) is no `me`."""
    accented = set() if text.isascii() else {stem(word) for _, word in split_runs_and_words(text) if not word.isascii()}
    return tuple(
        term
        for term in dict.fromkeys(_terms(text))
        if term.token not in (FUNCTION_CHARACTERS if term.is_prefix else FUNCTION_STEMS) or term.token in accented
    )


def _names_only_a_time(about: str) -> bool:
    undated = without_times(about)
    return undated != about and all(
        term.token in (WHATEVER_CHARACTERS if term.is_prefix else WHATEVER_STEMS) for term in _content_of(undated)
    )


def _related(text: str, terms: Sequence[Term]) -> RelatedTerms:
    """The terms of related words; what stands for a Chinese word stands for each of its characters."""
    place = {term: at for at, term in enumerate(terms)}
    stand_for: dict[str, list[int]] = {term.token: [at] for term, at in place.items() if not term.is_prefix}
    for run in (run for run, _ in split_runs_and_words(text) if run):
        for word in (word for word in chinese_words(run) if word not in _COUNTERS):
            stand_for[word] = [
                at for at in (place.get(Term(token=one, is_prefix=True)) for one in word) if at is not None
            ]
    related: dict[Term, dict[int, float]] = {}
    for parts in map(_PARTS.findall, _SNAKE.findall(text)):
        places = [at for at in (place.get(Term(token=stem(one))) for one in parts) if at is not None]
        related[Term(token=stem("".join(parts)))] = dict.fromkeys(places, _JOINED_SHARE)
    for word, places in stand_for.items():
        for other, share in related_words(word).items():
            token = other if other.isascii() else other[:2]  # of 充电器 the index has the pair 充电
            term = Term(token=token, is_prefix=len(token) == 1 and not token.isascii())
            if term not in place:
                shares = related.setdefault(term, {})
                shares.update((at, max(share, shares.get(at, 0.0))) for at in places)
    closest = sorted((term for term in related if related[term]), key=lambda term: -max(related[term].values()))
    return {term: related[term] for term in closest[:_MAX_RELATED]}


def _terms(text: str) -> Iterator[Term]:
    for part in split_numbers(text):
        yield from (part,) if isinstance(part, Term) else _word_terms(part)


def _word_terms(text: str) -> Iterator[Term]:
    for run, word in split_runs_and_words(text):
        if word:
            yield umlaut_term(word) or Term(token=stem(word))
            if agent := _AGENT_NOUN.fullmatch(word):
                yield Term(token=stem(agent[1] or agent[2]))
        for part in _split_at_han(run):
            if _HAN.match(part):
                yield from (Term(token=character, is_prefix=True) for character in part)
            elif len(part) == 1:
                yield Term(token=part, is_prefix=True)
            else:
                yield from (Term(token=pair) for pair in character_pairs(part))


def _split_at_han(run: str) -> Iterator[str]:
    """The parts of an unspaced run that are all Han, or not Han at all."""
    start = 0
    for at in range(1, len(run) + 1):
        if at == len(run) or bool(_HAN.match(run[at])) != bool(_HAN.match(run[start])):
            yield run[start:at]
            start = at


class PassageWords(NamedTuple):
    """The words of a text as tokens."""

    length: int
    """How many there are, repeats included."""
    distinct: frozenset[str]
    repeated: Mapping[str, int]
    """How often it has those that it has more than once: few, and counted once, not for each question."""


def words_of_passage(text: str) -> PassageWords:
    """Split a text of a few hundred words."""
    words = tokenize(text)
    times = Counter(words)
    return PassageWords(len(words), frozenset(times), {word: count for word, count in times.items() if count > 1})


class TermCounts(NamedTuple):
    """How often a text has which terms of a question, and how many words it has."""

    counts: Sequence[tuple[int, float]]
    """The terms that it has, by their place in the question, in that order, and how often."""
    length: int


def _pieces_of(number: Term) -> list[frozenset[str]]:
    """Sets of words, one of which a text with this number has whole; what only begins a word is left out."""
    spellings = number.spellings or ((),)
    return [frozenset(piece.token for piece in pieces if not piece.is_prefix) for pieces in spellings]


class TermCounter:
    """Counts the terms of a question in texts of a few hundred words: hundreds of them for each question. A term that a
    text lacks counts by the closest related one that it has, and less than once."""

    def __init__(self, terms: Sequence[Term], related: RelatedTerms | None = None) -> None:
        forms = {form.token: at for at, term in enumerate(terms) for form in other_forms(term)}
        self._at = forms | {term.token: at for at, term in enumerate(terms) if not term.is_prefix and not term.pattern}
        self._numbers = [(at, _pieces_of(term), number_pattern(term)) for at, term in enumerate(terms) if term.pattern]
        self._number_words = frozenset[str]().union(*(one for _, pieces, _ in self._numbers for one in pieces))
        self._has_wordless_number = any(not all(pieces) for _, pieces, _ in self._numbers)
        self._forms = frozenset(forms)
        self._in_question = frozenset(self._at)
        self._prefixes = [(at, term.token) for at, term in enumerate(terms) if term.is_prefix]
        self._shares = {term.token: shares for term, shares in (related or {}).items()}
        self._related = frozenset(self._shares)
        self._related_characters = [term.token for term in related or () if term.is_prefix]

    def count(self, text: str, words: PassageWords | None = None) -> TermCounts:
        """Count the terms in a text, whose words may be known."""
        length, distinct, repeated = words or words_of_passage(text)
        counts: list[tuple[int, float]] = [
            (self._at[token], repeated.get(token, 1)) for token in self._in_question & distinct
        ]
        if len(counts) > 1 and not self._forms.isdisjoint(distinct):
            counts = add_counts(counts)
        if self._has_wordless_number or not self._number_words.isdisjoint(distinct):
            counts += self._number_counts(text, distinct)
        having: list[str] = []
        if (self._prefixes or self._related_characters) and not text.isascii():
            folded = fold(text)  # each such character of a text begins a token
            counts += [(at, times) for at, first in self._prefixes if (times := folded.count(first))]
            having = [one for one in self._related_characters if one in folded]
        if self._shares and (having := [*having, *(self._related & distinct)]):
            counts += self._related_counts(having, {at for at, _ in counts})
        if len(counts) > 1:
            counts.sort()
        return TermCounts(counts, length)

    def _number_counts(self, text: str, distinct: frozenset[str]) -> list[tuple[int, float]]:
        """What lacks the pieces of a number lacks the number: that costs a fiftieth of looking for it."""
        numbers = [(at, found) for at, pieces, found in self._numbers if any(map(distinct.issuperset, pieces))]
        as_folded = fold(text) if numbers else ""
        return [(at, times) for at, found in numbers if (times := len(found.findall(as_folded)))]

    def _related_counts(self, tokens: Iterable[str], known: Collection[int]) -> list[tuple[int, float]]:
        """What these related words of a text count for the terms that it lacks."""
        shares: dict[int, float] = {}
        for token in tokens:
            for at, share in self._shares[token].items():
                if at not in known:
                    shares[at] = max(share, shares.get(at, 0.0))
        return list(shares.items())


def add_counts(counts: Iterable[tuple[int, float]]) -> list[tuple[int, float]]:
    """One count for each term."""
    total: dict[int, float] = {}
    for at, count in counts:
        total[at] = total.get(at, 0) + count
    return list(total.items())
