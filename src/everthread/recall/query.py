"""Parse a question into what recall looks for: its content words as terms of the index, and whether it asks the
assistant for what it said.

Function words are left out, unless there are no others. Of Chinese each single character is a term: measured on
Chinese conversations, this ranks better than pairs, because the same thing is seldom said with the same two characters
twice. Other unspaced scripts give pairs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from everthread.core.queries import Term
from everthread.text.irregular_verbs import other_forms
from everthread.text.words import character_pairs, fold, split_runs_and_words, stem, tokenize

MAX_QUESTION_CHARACTERS = 2_000
"""What is read of a question: somebody who pastes a page means its beginning, or nothing in particular."""
MAX_TERMS = 48

_FUNCTION_WORDS = frozenset(
    """
    a about also am an and any are as at be been but by can could d did do does doing don for from had has have having
    he her hers him his how i if in into is it its itself just ll m me my myself no not of on or our ours re s she
    should so t than that the their them then there these they this those to too us ve was we were what when where
    which while who whom why will with would you your yours
    """.split()
)
FUNCTION_STEMS = frozenset(map(stem, _FUNCTION_WORDS))
_FUNCTION_CHARACTERS = frozenset(
    "的了是在我你他她它们这那有和与及或吗呢吧啊呀么什谁哪怎几多少个都也就还要会能可以把被给对从到为因所之其于上下里中去来说"
    "得着过很最不没让请问一"
)
_AGENT_NOUN = re.compile(r"([a-z]{4,}[ts])or|([a-z]{5,})er")
"""People ask for the director and were told who directs: stemming joins the forms of a word, but not these."""
_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003fffd]")
_ASKS_ASSISTANT = re.compile(
    r"\b(?:did|have|had) you\b"
    r"|\byou(?:'ve| have| had)? (?:said|told|suggested|recommended|mentioned|proposed|advised|gave|explained|listed|"
    r"wrote|showed|provided|called|warned|promised)\b"
    r"|\byour (?:advice|suggestion|recommendation|answer|proposal|explanation|list|plan|warning)"
    r"|你(?:之前|刚才|上次|当时|曾经?)?(?:说|讲|推荐|建议|提到|提醒|给|列|写|介绍|解释|答应)|你的(?:建议|推荐|回答|方案|说法|解释)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallQuery:
    """A parsed question."""

    text: str
    """In the form in which texts are compared."""
    terms: tuple[Term, ...]
    asks_assistant: bool = False
    """Whether it asks for what the assistant said: `what did you recommend`."""

    @property
    def all_forms(self) -> list[Term]:
        """The terms in all their forms."""
        return list(dict.fromkeys([*self.terms, *(form for term in self.terms for form in other_forms(term))]))


def parse_question(question: str) -> RecallQuery:
    """Parse a question; any text is one. One without a single word has no terms, and finds nothing."""
    text = fold(question[:MAX_QUESTION_CHARACTERS])
    terms = tuple(dict.fromkeys(_terms(text)))
    content = tuple(
        term for term in terms if term.token not in (_FUNCTION_CHARACTERS if term.is_prefix else FUNCTION_STEMS)
    )
    return RecallQuery(
        text=text,
        terms=(content or terms)[:MAX_TERMS],
        asks_assistant=_ASKS_ASSISTANT.search(text) is not None,
    )


def _terms(text: str) -> Iterator[Term]:
    for run, word in split_runs_and_words(text):
        if word:
            yield Term(token=stem(word))
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


class TermCounts(NamedTuple):
    """How often a text has which terms of a question, and how many words it has."""

    counts: Sequence[tuple[int, float]]
    """The terms that it has, by their place in the question, in that order, and how often."""
    length: int
    words: Sequence[str] = ()
    """All its words as tokens, repeats included."""


class TermCounter:
    """Counts the terms of a question in texts of a few hundred words: hundreds of them for each question."""

    def __init__(self, terms: Sequence[Term]) -> None:
        forms = {form.token: at for at, term in enumerate(terms) for form in other_forms(term)}
        self._at = forms | {term.token: at for at, term in enumerate(terms) if not term.is_prefix}
        self._has_forms = bool(forms)
        self._in_question = frozenset(self._at).intersection
        self._prefixes = [(at, term.token) for at, term in enumerate(terms) if term.is_prefix]

    def count(self, text: str) -> TermCounts:
        """Count the terms in a text."""
        words = tokenize(text)
        counts: list[tuple[int, float]] = [(self._at[token], words.count(token)) for token in self._in_question(words)]
        if self._has_forms and len(counts) > 1:
            counts = add_counts(counts)
        if self._prefixes and not text.isascii():
            folded = fold(text)  # each such character of a text begins a token
            counts += [(at, times) for at, first in self._prefixes if (times := folded.count(first))]
        if len(counts) > 1:
            counts.sort()
        return TermCounts(counts, len(words), words)


def add_counts(counts: Iterable[tuple[int, float]]) -> list[tuple[int, float]]:
    """One count for each term."""
    total: dict[int, float] = {}
    for at, count in counts:
        total[at] = total.get(at, 0) + count
    return list(total.items())
