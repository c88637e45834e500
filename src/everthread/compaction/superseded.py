"""What a later message replaced: the line keeps its words and says by which message.

A later statement replaces an earlier one when it takes something back or changes it (by its wording) and is about the
same thing: by its rarer words, or by the very date, amount or name that it takes back, however that is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from everthread.compaction.summary_format import SummaryLine
from everthread.text import cues
from everthread.text.facts import find_facts
from everthread.text.language import Language
from everthread.text.normal_forms import vaguer_dates
from everthread.text.terms import overlap, terms, tf_idf_weights
from everthread.text.words import stem

_MARKS: dict[Language, str] = {"en": " (replaced by [#{seq}])", "zh": "（已被 [#{seq}] 取代）"}
# Of the words of the shorter one, weighed by how rare they are, so many must be shared.
_SAME_SUBJECT = 0.3
_MARKED_SECTIONS = ("goal", "standing", "decisions", "facts", "open")


@dataclass(frozen=True, slots=True)
class _Told:
    """A statement by what it can be compared with."""

    seq: int
    words: frozenset[str]
    dropped_facts: frozenset[str]
    """What it says no longer holds, by the date, amount or name: 20号那个作废 …"""
    dropped_words: frozenset[str]
    """… and by its words: scrap the seafood place."""


def mark_superseded(
    lines: Sequence[SummaryLine], later: Sequence[tuple[int, str]], language: Language
) -> list[SummaryLine]:
    """The lines, each that one of the later statements (seq and text) replaced with its mark."""
    changing = [_told(seq, text) for seq, text in later if cues.revises(text)]
    if not changing:
        return list(lines)
    words = [_words(line.text) for line in lines]
    weights = tf_idf_weights([*(one.words for one in changing), *words])
    return [_marked(line, own, changing, weights, language) for line, own in zip(lines, words, strict=True)]


def _marked(
    line: SummaryLine, own: frozenset[str], changing: Sequence[_Told], weights: dict[str, float], language: Language
) -> SummaryLine:
    if line.section not in _MARKED_SECTIONS or "[#" in line.text:
        return line
    later = [one for one in changing if one.seq > line.last_seq]
    if not later:
        return line
    facts = _facts(line.text) if any(one.dropped_facts for one in later) else frozenset[str]()
    by_words = line.section in ("goal", "decisions")
    by = [
        one.seq
        for one in later
        if facts & one.dropped_facts
        or (by_words and one.dropped_words and one.dropped_words <= own)
        or (by_words and _is_same_subject(own, one.words, weights))
    ]
    return replace(line, text=line.text + _MARKS[language].format(seq=by[-1])) if by else line


def _is_same_subject(own: frozenset[str], words: frozenset[str], weights: dict[str, float]) -> bool:
    shared = sum(weights.get(word, 0.0) for word in own & words)
    shorter = min(sum(weights.get(word, 0.0) for word in side) for side in (own, words))
    return bool(own & words) and overlap(own, words) > 0 and shared >= _SAME_SUBJECT * shorter


def _told(seq: int, text: str) -> _Told:
    dropped = cues.taken_back(text)
    return _Told(seq, _words(text), _facts(dropped), _words(dropped))


def _facts(text: str) -> frozenset[str]:
    """Dates, times, amounts and names; a date in every vagueness: 12月20号 is also the 20th."""
    facts = [fact for fact in find_facts(text) if fact.kind not in ("quote", "number", "code")]
    return frozenset(form for fact in facts for form in (_days(fact.normal) if fact.kind == "date" else (fact.normal,)))


def _days(date: str) -> tuple[str, ...]:
    """Of a date the day in the month, with the month and without; the month or year alone is too vague."""
    if date.startswith("--") and date.count("-") == 3 and date[2] != "-":
        return (date, f"---{date[-2:]}")
    return tuple(form for form in vaguer_dates(date) if len(form) >= 5 and not form[:4].isdigit())


def _words(text: str) -> frozenset[str]:
    found = (stem(word) if word.isascii() else word for word in terms(text))
    return frozenset(word for word in found if not word[0].isdigit() and word not in _NO_SUBJECT)


_NO_SUBJECT = frozenset(
    "user assistant 用户 助手 instead change chang cancel switch move actual decid decis let'"
    " 改成 改为 取消 换成 还是".split()
) | {"let's"}
