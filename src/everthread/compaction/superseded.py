"""Decisions that a later message replaced: the line keeps its words and says by which message.

A later statement replaces an earlier decision when it takes something back or changes it (by its wording) and is about
the same thing (by its rarer words).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from everthread.compaction.summary_format import SummaryLine
from everthread.text import cues
from everthread.text.language import Language
from everthread.text.terms import overlap, terms, tf_idf_weights
from everthread.text.words import stem

_MARKS: dict[Language, str] = {"en": " (replaced by [#{seq}])", "zh": "（已被 [#{seq}] 取代）"}
# Of the words of the shorter one, weighed by how rare they are, so many must be shared.
_SAME_SUBJECT = 0.3


def mark_superseded(
    lines: Sequence[SummaryLine], later: Sequence[tuple[int, str]], language: Language
) -> list[SummaryLine]:
    """The lines, each decision that one of the later statements (seq and text) replaced with its mark."""
    changing = [(seq, _words(text)) for seq, text in later if cues.revises(text)]
    if not changing:
        return list(lines)
    weights = tf_idf_weights([*(words for _, words in changing), *(_words(line.text) for line in lines)])
    return [_marked(line, changing, weights, language) for line in lines]


def _marked(
    line: SummaryLine,
    changing: Sequence[tuple[int, frozenset[str]]],
    weights: dict[str, float],
    language: Language,
) -> SummaryLine:
    if line.section not in ("goal", "decisions") or "[#" in line.text:
        return line
    own = _words(line.text)
    by = [seq for seq, words in changing if seq > line.last_seq and _is_same_subject(own, words, weights)]
    return replace(line, text=line.text + _MARKS[language].format(seq=by[-1])) if by else line


def _is_same_subject(own: frozenset[str], words: frozenset[str], weights: dict[str, float]) -> bool:
    shared = sum(weights.get(word, 0.0) for word in own & words)
    shorter = min(sum(weights.get(word, 0.0) for word in side) for side in (own, words))
    return bool(own & words) and overlap(own, words) > 0 and shared >= _SAME_SUBJECT * shorter


def _words(text: str) -> frozenset[str]:
    found = (stem(word) if word.isascii() else word for word in terms(text))
    return frozenset(word for word in found if not word[0].isdigit() and word not in _NO_SUBJECT)


_NO_SUBJECT = frozenset(
    "user assistant 用户 助手 instead change chang cancel switch move actual decid decis let'"
    " 改成 改为 取消 换成 还是".split()
) | {"let's"}
