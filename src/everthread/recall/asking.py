"""What a question asks for: its telling words as terms of the index, and whom it is about.

Words that any sentence has are left out, unless there are no others. Of unspaced scripts that write words with one or
two Han characters each single character is a term: measured on Chinese conversations, this ranks better than pairs,
because the same thing is seldom said with the same two characters twice. Other unspaced scripts give pairs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from everthread.core.queries import Term
from everthread.text.irregular_verbs import other_forms
from everthread.text.words import character_pairs, fold, split_runs_and_words, stem, tokenize

MOST_CHARACTERS = 2_000
"""What is read of a question: somebody who pastes a page means its beginning, or nothing in particular."""
MOST_TERMS = 48

_FUNCTION_WORDS = frozenset(
    """
    a about also am an and any are as at be been but by can could d did do does doing don for from had has have having
    he her hers him his how i if in into is it its itself just ll m me my myself no not of on or our ours re s she
    should so t than that the their them then there these they this those to too us ve was we were what when where
    which while who whom why will with would you your yours
    """.split()
)
_FUNCTION_STEMS = frozenset(map(stem, _FUNCTION_WORDS))
_FUNCTION_CHARACTERS = frozenset(
    "的了是在我你他她它们这那有和与及或吗呢吧啊呀么什谁哪怎几多少个都也就还要会能可以把被给对从到为因所之其于上下里中去来说"
    "得着过很最不没让请问一"
)
_DOER = re.compile(r"([a-z]{4,}[ts])or|([a-z]{5,})er")
"""Who directs is asked for as a director: stemming joins the forms of a word, but not these."""
_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003fffd]")
_TO_THE_ASSISTANT = re.compile(
    r"\b(?:did|have|had) you\b"
    r"|\byou(?:'ve| have| had)? (?:said|told|suggested|recommended|mentioned|proposed|advised|gave|explained|listed|"
    r"wrote|showed|provided|called|warned|promised)\b"
    r"|\byour (?:advice|suggestion|recommendation|answer|proposal|explanation|list|plan|warning)"
    r"|你(?:之前|刚才|上次|当时|曾经?)?(?:说|讲|推荐|建议|提到|提醒|给|列|写|介绍|解释|答应)|你的(?:建议|推荐|回答|方案|说法|解释)",
    re.IGNORECASE,
)


class Reading(NamedTuple):
    """How often a text has which terms of a question, and how many words it has."""

    found: Sequence[tuple[int, int]]
    """The terms that it has, by their place in the question, in that order, and how often."""
    length: int


class Reader:
    """Counts the terms of a question in texts of a few hundred words: hundreds of them for each question."""

    def __init__(self, terms: Sequence[Term]) -> None:
        forms = {form.token: at for at, term in enumerate(terms) for form in other_forms(term)}
        self._at = forms | {term.token: at for at, term in enumerate(terms) if not term.is_prefix}
        self._has_forms = bool(forms)
        self._there = frozenset(self._at).intersection
        self._firsts = [(at, term.token) for at, term in enumerate(terms) if term.is_prefix]

    def read(self, text: str) -> Reading:
        """Count the terms in a text."""
        words = tokenize(text)
        found = [(self._at[token], words.count(token)) for token in self._there(words)]
        if self._has_forms and len(found) > 1:
            found = _summed(found)
        if self._firsts and not text.isascii():
            plain = fold(text)  # each such character of a text begins a token
            found += [(at, times) for at, first in self._firsts if (times := plain.count(first))]
        if len(found) > 1:
            found.sort()
        return Reading(found, len(words))


def _summed(found: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    times: dict[int, int] = {}
    for at, count in found:
        times[at] = times.get(at, 0) + count
    return list(times.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question, as it is looked for."""

    text: str
    """In the form in which texts are compared."""
    terms: tuple[Term, ...]
    is_to_the_assistant: bool = False
    """Whether it asks what the assistant said: `what did you recommend`."""

    @property
    def forms(self) -> list[Term]:
        """The terms in all their forms."""
        return list(dict.fromkeys([*self.terms, *(form for term in self.terms for form in other_forms(term))]))

    def reader(self) -> Reader:
        """What counts the terms in one text after the other."""
        return Reader(self.terms)

    def without(self, words: Mapping[str, str]) -> tuple[bool, ...]:
        """For each term whether it counts when these names, by their tokens, do not; all when nothing else is asked."""
        kept = tuple(term.token not in words for term in self.terms)
        return kept if any(kept) else tuple(True for _ in self.terms)


def asked(question: str) -> Asked:
    """Read a question; any text is one. One without a single word has no terms, and finds nothing."""
    text = fold(question[:MOST_CHARACTERS])
    every = tuple(dict.fromkeys(_terms(text)))
    telling = tuple(term for term in every if not _is_function_word(term))
    return Asked(
        text=text,
        terms=(telling or every)[:MOST_TERMS],
        is_to_the_assistant=_TO_THE_ASSISTANT.search(text) is not None,
    )


def _terms(text: str) -> Iterator[Term]:
    for run, word in split_runs_and_words(text):
        if word:
            yield Term(token=stem(word))
            if deed := _DOER.fullmatch(word):
                yield Term(token=stem(deed[1] or deed[2]))
        for part in _stretches(run):
            if _HAN.match(part):
                yield from (Term(token=character, is_prefix=True) for character in part)
            elif len(part) == 1:
                yield Term(token=part, is_prefix=True)
            else:
                yield from (Term(token=pair) for pair in character_pairs(part))


def _stretches(run: str) -> Iterator[str]:
    """The parts of an unspaced run that are all Han, or not Han at all."""
    start = 0
    for at in range(1, len(run) + 1):
        if at == len(run) or bool(_HAN.match(run[at])) != bool(_HAN.match(run[start])):
            yield run[start:at]
            start = at


def _is_function_word(term: Term) -> bool:
    return term.token in (_FUNCTION_CHARACTERS if term.is_prefix else _FUNCTION_STEMS)
