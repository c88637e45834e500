"""What a piece is worth in a summary, and under which head it belongs.

The weights are plain sums and factors, so that a line's presence can be explained: who said it, how rare
its words are in this conversation, what it does, where it stands. The facts it holds are valued apart,
because a fact is worth keeping once.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Sequence

from everthread.compaction.facts import Fact, weight
from everthread.compaction.sections import Section
from everthread.compaction.sources import Source, is_user
from everthread.compaction.spoken import Spoken
from everthread.text import cues
from everthread.text.terms import weigh

# A system message is sent with every request anyway.
_SYSTEM_WEIGHT = 0.2
_USER_WEIGHT, _OTHER_WEIGHT, _LONE_WORKER_WEIGHT = 1.0, 0.45, 0.8
# What keeping a fact is worth, by who said it; a tool's output is full of them.
_FACT_VALUES = {"user": 0.5, "other": 0.2, "tool": 0.1}
# So many of its weightiest terms speak for a piece; a longer one is not better for more.
_TELLING_TERMS = 6
_FORM_FACTORS = {"prose": 1.0, "item": 0.8, "heading": 0.3, "code": 0.6}
# Politeness, filling, an introduction to what follows; cheering, and questions among people.
_IDLE, _WARM = 0.25, 0.4


class FactValues:
    """What keeping each fact is worth, and which facts a text said at a seq holds."""

    def __init__(self, sources: Sequence[Source], facts: Sequence[Fact]) -> None:
        sides = {source.seq: _side(source) for source in sources}
        self._at_seq: defaultdict[int, list[Fact]] = defaultdict(list)
        self._values: dict[str, float] = {}
        for fact in facts:
            self._at_seq[fact.seq].append(fact)
            value = weight(fact) * _FACT_VALUES[sides.get(fact.seq, "other")]
            self._values[fact.normal] = max(value, self._values.get(fact.normal, 0.0))

    def held_by(self, text: str, *seqs: int) -> dict[str, float]:
        """The normal form of each fact in the text, with its value; a user's fact is worth it wherever it stands."""
        near = [fact for seq in dict.fromkeys(seqs) for fact in self._at_seq.get(seq, ())]
        return {fact.normal: self._values[fact.normal] for fact in near if fact.text in text}


def _side(source: Source) -> str:
    return "user" if is_user(source) else "tool" if source.is_tool_result else "other"


def saliences(said: Sequence[Spoken]) -> list[float]:
    """How much the words of each piece matter in this conversation: about 1 for the best tenth."""
    by_message: defaultdict[int, list[str]] = defaultdict(list)
    for one in said:
        by_message[one.source.seq].extend(one.terms)
    weights = weigh(by_message.values())
    raw = [sum(heapq.nlargest(_TELLING_TERMS, [weights[term] for term in set(one.terms)])) for one in said]
    top = sorted(raw)[int(len(raw) * 0.9)] if raw else 0.0
    return [min(1.5, value / top) if top > 0 else 0.0 for value in raw]


def glance(one: Spoken, salience: float, facts: dict[str, float]) -> float:
    """A first guess at what a piece is worth, before its wording is looked at."""
    return _by_speaker(one) * _by_place(one, salience) + sum(facts.values())


def section_of(one: Spoken, *, holds_facts: bool) -> Section:
    """Where a piece belongs. Users set goals and decide; an answer gives facts."""
    text = one.piece.text
    if not is_user(one.source):
        return "decisions" if one.works_alone and one.piece.kind == "prose" and cues.decides(text) else "facts"
    if one.piece.kind == "code":
        return "facts"
    if one.question is not None:
        return "decisions" if cues.affirms(text) or cues.decides(text) else "facts"
    if cues.asks(text):
        if holds_facts or one.among_people or cues.is_polite(text):
            return "facts"
        return "goal" if one.answered else "open"
    return _section_of_statement(text)


def _section_of_statement(text: str) -> Section:
    if cues.decides(text):
        return "decisions"
    if cues.is_pending(text):
        return "open"
    return "goal" if cues.aims(text) else "facts"


def weight_of(one: Spoken, section: Section, salience: float) -> float:
    """The worth of a piece without its facts."""
    deed = _by_deed(one, section) if is_user(one.source) or one.works_alone else 0.0
    return _by_speaker(one) * (_by_place(one, salience) + deed) * _by_form(one)


def _by_speaker(one: Spoken) -> float:
    if is_user(one.source):
        return _USER_WEIGHT
    if one.source.role == "system":
        return _SYSTEM_WEIGHT
    return _LONE_WORKER_WEIGHT if one.works_alone else _OTHER_WEIGHT


def _by_place(one: Spoken, salience: float) -> float:
    """The start of a message and the end of the span tell more."""
    return 0.2 + 0.6 * salience + (0.15 if one.place == 0 else 0.0) + 0.2 * one.progress


def _by_deed(one: Spoken, section: Section) -> float:
    text = one.piece.text
    own = {"decisions": 0.5, "open": 0.2 + 0.2 * one.progress, "goal": 0.1}.get(section, 0.0)
    standing = 0.3 if cues.stands(text) else 0.0
    return own + standing + (0.3 if cues.tells(text) else 0.0) + (0.2 if cues.is_relative_in_time(text) else 0.0)


def _is_idle(one: Spoken) -> bool:
    text = one.piece.text
    if one.question is not None:
        return cues.is_polite(text) and not cues.affirms(text)
    return len(one.terms) < 2 or cues.is_polite(text) or text.endswith((":", "："))


def _by_form(one: Spoken) -> float:
    """What is said for politeness or around an answer, and what is no sentence, counts little."""
    text = one.piece.text
    factor = _FORM_FACTORS[one.piece.kind]
    if _is_idle(one):
        factor *= _IDLE
    if is_user(one.source):
        return factor * (_WARM if cues.praises(text) or (one.among_people and cues.asks(text)) else 1.0)
    return factor * (_IDLE if cues.is_boilerplate(text) or cues.ends_in_question(text) else 1.0)
