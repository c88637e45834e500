"""The pieces of a span as lines that could stand in its summary: what was said, what was coded, what was called."""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterator, Sequence

from everthread.compaction.facts import Fact
from everthread.compaction.outcomes import Outcome, outcomes, sketch
from everthread.compaction.sections import one_line
from everthread.compaction.selection import Candidate
from everthread.compaction.sources import Source
from everthread.compaction.spoken import SHORT_TERMS, Spoken, opening, spoken
from everthread.compaction.weights import FactValues, glance, saliences, section_of, weight_of
from everthread.text.language import Language
from everthread.text.terms import terms

# Of a very long span only the pieces that look best are read closely. A summary of 1,000 tokens takes some 40.
_READ_CLOSELY = 3_000
_CLIP_CHARS: dict[Language, int] = {"en": 320, "zh": 130}
_HEADING_CHARS = 50
_SPEAKERS: dict[Language, dict[str, str]] = {
    "en": {"human": "user", "ai": "assistant", "system": "instruction", "developer": "instruction"},
    "zh": {
        **{"user": "用户", "human": "用户", "assistant": "助手", "ai": "助手", "tool": "工具"},
        **{"system": "指示", "developer": "指示"},
    },
}
"""A line that begins with `system:` would open a turn in the eyes of the gate, and of a model."""
_CODE_SKETCH: dict[Language, str] = {
    "en": "code ({language}, {lines} lines): {names}",
    "zh": "代码（{language}，{lines} 行）：{names}",
}
_CLAUSE_END = re.compile(r"[,;，；、。.!?！？)）]\s?")
_DEFINED = re.compile(
    r"^\s*(?:export |public |async |pub ){0,3}(?:def|class|function|interface|struct|func|fn|enum)\s+"
    r"([A-Za-z_]\w{1,60})",
    re.MULTILINE,
)


def candidates(
    sources: Sequence[Source], facts: Sequence[Fact], language: Language
) -> tuple[list[Candidate], list[Candidate]]:
    """All that could be said, and of it what comes first: what was asked for, and what is still unanswered."""
    said = list(spoken(sources))
    values = FactValues(sources, facts)
    first = opening(said)
    made = [
        candidate
        for one, salience in _best(said, values, first)
        for candidate in _from_words(one, salience, values, language, opens=one is first)
    ]
    made += [_from_call(outcome, (outcome.last_seq / sources[-1].seq), values) for outcome in outcomes(sources)]
    asked = [candidate for candidate in made if candidate.section == "goal"]
    unanswered = [candidate for candidate in made if candidate.section == "open"]
    return made, asked[:1] + unanswered[-1:]


def label(source: Source, language: Language) -> str:
    """Who said it, as a line opens with it."""
    name = one_line(source.name or "") or _SPEAKERS[language].get(source.role, source.role)
    return f"{name}{'：' if language == 'zh' else ': '}"


def _best(said: Sequence[Spoken], values: FactValues, first: Spoken | None) -> Iterator[tuple[Spoken, float]]:
    salient = saliences(said)
    at: Sequence[int] = range(len(said))
    if len(said) > _READ_CLOSELY:
        guesses = [
            glance(one, salience, values.held_by(one.piece.text, one.source.seq)) + 9 * (one is first)
            for one, salience in zip(said, salient, strict=True)
        ]
        at = sorted(heapq.nlargest(_READ_CLOSELY, at, key=guesses.__getitem__))
    yield from ((said[place], salient[place]) for place in at)


def _from_words(
    one: Spoken, salience: float, values: FactValues, language: Language, *, opens: bool
) -> Iterator[Candidate]:
    text = _code_sketch(one.piece.text, language) if one.piece.kind == "code" else _clipped(one.piece.text, language)
    if not text:
        return
    first_seq, speaker = one.source.seq, label(one.source, language)
    if one.question is not None:
        asked = f"{label(one.question.source, language)}{_clipped(one.question.piece.text, language)}"
        first_seq, speaker, text = one.question.source.seq, "", f"{asked} → {speaker}{text}"
    facts = values.held_by(text, first_seq, one.source.seq)
    section = "goal" if opens else section_of(one, holds_facts=bool(facts))
    yield Candidate(
        section=section,
        text=text,
        speaker=speaker,
        first_seq=first_seq,
        last_seq=one.source.seq,
        place=one.place,
        weight=weight_of(one, section, salience),
        facts=facts,
        terms=frozenset(one.terms),
        under=_heading(one.piece.under) if len(one.terms) <= SHORT_TERMS else "",
    )


def _from_call(outcome: Outcome, progress: float, values: FactValues) -> Candidate:
    """What failed and what was changed weighs more than what was looked up."""
    text = sketch(outcome)
    own = 1.0 if outcome.failed else 1.2 if outcome.acts else 0.3
    return Candidate(
        section="tools",
        text=text,
        speaker="",
        first_seq=outcome.first_seq,
        last_seq=outcome.last_seq,
        place=0,
        weight=own + 0.2 * progress,
        facts=values.held_by(text, outcome.first_seq, outcome.last_seq),
        terms=frozenset(terms(text)),
    )


def _clipped(text: str, language: Language) -> str:
    """The text on one line, cut at a clause where it is too long for one thought."""
    line, limit = one_line(text), _CLIP_CHARS[language]
    if len(line) <= limit:
        return line
    ends = [match.end() for match in _CLAUSE_END.finditer(line, limit // 2, limit)]
    return f"{line[: ends[-1] if ends else limit].rstrip(' ,;，；、')}…"


def _heading(text: str) -> str:
    """A heading as it stands before an item: its first words."""
    line = one_line(text).rstrip(" :：")
    return line if len(line) <= _HEADING_CHARS else f"{line[:_HEADING_CHARS].rsplit(' ', 1)[0]}…"


def _code_sketch(block: str, language: Language) -> str:
    """A block by what it defines; one that defines nothing is not worth a line."""
    names = list(dict.fromkeys(_DEFINED.findall(block)))
    if not names:
        return ""
    fence, _, code = block.partition("\n")
    written_in = fence.strip("`~ ").split(" ")[0] or "?"
    return one_line(
        _CODE_SKETCH[language].format(language=written_in, lines=code.count("\n"), names=", ".join(names[:8]))
    )
