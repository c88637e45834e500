"""The summary without a model: the sentences of a stretch that someone would need to go on, under heads.

Every message is cut into statements (`scored_sentences`), each scored by who said it, where, how rare its words are in
this conversation, what it does (decide, ask, promise) and which facts it holds; every tool call is one line
(`tool_calls`). The best are chosen within the token limit, never two that say the same (`selection`), and written with
the seq of their source (`summary_format`).

- deterministic: equal sources give equal text
- within `max_tokens` by the caller's own counter, and not empty unless every source is
- time grows with the text, not with its square; it raises nothing on any text
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from everthread.compaction.fact_ranking import facts_of_sources, rank_facts, split_kept, texts_by_seq
from everthread.compaction.scored_sentences import (
    SHORT_TERMS,
    FactValues,
    Statement,
    confirms_choice,
    is_small_talk,
    opening_request,
    quick_score,
    saliences,
    score,
    section_of,
    statements_of,
)
from everthread.compaction.selection import ESTIMATE_SLACK, CandidateLine, select_candidates
from everthread.compaction.sources import (
    ConversationKind,
    Source,
    TokenCounter,
    conversation_kind,
    is_empty,
    is_user,
    language_of,
    prepare_sources,
)
from everthread.compaction.standing import STANDING_SHARE
from everthread.compaction.summary_format import (
    LIST_SHARE,
    Section,
    SummaryLine,
    cut_to_fit,
    format_summary,
    join_within,
    lines_that_fit,
    mention_list,
    source_tag,
    to_one_line,
)
from everthread.compaction.superseded import (
    changed_by,
    mark_superseded,
    may_replace,
    only_with_what_replaced,
    said_later,
)
from everthread.compaction.tool_calls import CallOutcome, call_outcomes, outcome_line
from everthread.text import cues
from everthread.text.facts import Fact
from everthread.text.language import Language
from everthread.text.terms import terms

# A summary longer than this part of its source saves too little to be read instead of it.
_SOURCE_SHARE = 0.5
# Of a few short turns the names and numbers of the lines take as much as their words, and little is to be saved.
_SHARE_OF_SHORT = 0.85
_SHORT_TOKENS = 500
# Below this no line says anything.
_LEAST_TOKENS = 40
# A text of so many characters for each token allowed is longer than twice the limit in any language.
_SURELY_LONG_CHARS = 16
_TERSE_CHARS = 160
# The room that the list of facts leaves over goes to the sentences when it holds one.
_WORTH_A_LINE = 20
# Of more than a few messages no single one, however long, takes more than this part.
_MESSAGE_SHARE = 0.2
_FEW_MESSAGES = 8

_ENDINGS = tuple('.!?…:;,。！？：；，)）"”」』')
# Of what tools answer, most facts are nothing that anyone asks for again; what was done is told by its line.
_LIST_SHARES: dict[ConversationKind, float] = {"chat": LIST_SHARE, "tool-heavy": 0.1, "coding": 0.15}
# How much of the sentences each section may take at most.
_SHARES_BY_KIND: dict[ConversationKind, dict[Section, float]] = {
    "chat": {"goal": 0.2, "standing": STANDING_SHARE, "decisions": 0.5, "facts": 0.8, "open": 0.2, "tools": 0.15},
    "tool-heavy": {"goal": 0.2, "standing": STANDING_SHARE, "decisions": 0.4, "facts": 0.6, "open": 0.2, "tools": 0.5},
    "coding": {"goal": 0.2, "standing": STANDING_SHARE, "decisions": 0.4, "facts": 0.6, "open": 0.2, "tools": 0.35},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Draft:
    """All that a summary is written from, whatever its size."""

    candidates: list[CandidateLine]
    first: list[CandidateLine]
    ranked: list[Fact]
    days: dict[int, str]
    said_later: list[tuple[int, str]]
    """What users said, by its seq: a decision may have been replaced in it."""
    said: dict[int, str]
    """The text of each message, for the words around a fact."""
    said_by_users: dict[int, str]
    language: Language
    shares: dict[Section, float]
    message_share: float

    def marked(self, lines: Sequence[SummaryLine]) -> list[SummaryLine]:
        """The lines, each that was replaced with its mark."""
        return mark_superseded(lines, self.said_later, self.language, self.said_by_users)


def extract(
    sources: Sequence[Source],
    *,
    max_tokens: int,
    count_tokens: TokenCounter,
    kind: ConversationKind | None = None,
    facts: Sequence[Fact] | None = None,
) -> str:
    """The extractive summary of a span. `kind` and `facts` are worked out when not given."""
    read = prepare_sources(sources)
    kind = kind or conversation_kind(read)
    draft = _draft(read, facts_of_sources(read) if facts is None else facts, kind)
    room_tokens = min(max_tokens, max(_LEAST_TOKENS, _share_of_source(read, max_tokens, count_tokens)))
    list_tokens = int(room_tokens * _LIST_SHARES[kind])
    prose, listed = _write(draft, room_tokens - list_tokens, list_tokens, count_tokens)
    listed_tokens = count_tokens(listed)
    spare_tokens = room_tokens - count_tokens(prose) - listed_tokens - 1
    if spare_tokens > _WORTH_A_LINE:
        most_tokens = min(room_tokens - list_tokens + spare_tokens, max_tokens - listed_tokens - 1)
        prose, listed = _write(draft, most_tokens, list_tokens, count_tokens)
    whole = join_within(prose, listed, max_tokens, count_tokens)
    return whole or extract_openings(sources, max_tokens=max_tokens, count_tokens=count_tokens)


def _draft(read: Sequence[Source], facts: Sequence[Fact], kind: ConversationKind) -> _Draft:
    language = language_of(read)
    made, first = make_candidates(read, facts, language)
    return _Draft(
        candidates=made,
        first=first,
        ranked=rank_facts(facts, read),
        said_later=said_later(read),
        said=texts_by_seq(read),
        said_by_users={source.seq: source.text for source in read if is_user(source)},
        days={source.seq: source.said_at.date().isoformat() for source in read if source.said_at},
        language=language,
        shares=_SHARES_BY_KIND[kind],
        message_share=_MESSAGE_SHARE if len(read) > _FEW_MESSAGES else 1.0,
    )


def _write(draft: _Draft, prose_tokens: int, list_tokens: int, count_tokens: TokenCounter) -> tuple[str, str]:
    """The sentences, and the list of the facts that none of them holds."""
    told = _marked_lines(draft, prose_tokens, draft.first, count_tokens)
    lines = lines_that_fit(told, draft.language, prose_tokens, count_tokens)
    newer = {seq for line in told for seq in changed_by(line)} - {line.last_seq for line in lines}
    if newer:  # what replaced a line is told too
        wanted = [one for one in draft.candidates if one.last_seq in newer and may_replace(one.text)]
        told = _marked_lines(draft, prose_tokens, [*draft.first, *wanted], count_tokens)
        lines = lines_that_fit(told, draft.language, prose_tokens, count_tokens)
    lines = only_with_what_replaced(lines)
    prose = format_summary(lines, draft.language)
    missing = split_kept(prose, draft.ranked)[1]
    return prose, mention_list(missing, draft.said, draft.language, list_tokens, count_tokens, draft.marked)


def _marked_lines(
    draft: _Draft, prose_tokens: int, first: Sequence[CandidateLine], count_tokens: TokenCounter
) -> list[SummaryLine]:
    """The chosen lines, best first, each that was replaced with its mark."""
    chosen = select_candidates(
        draft.candidates,
        room_tokens=int(prose_tokens * ESTIMATE_SLACK),
        shares=draft.shares,
        message_share=draft.message_share,
        first=first,
        count_tokens=count_tokens,
    )
    return draft.marked(list(_lines(chosen, draft.days)))


def extract_openings(sources: Sequence[Source], *, max_tokens: int, count_tokens: TokenCounter) -> str:
    """The last resort: how the span's own messages begin, what users said and the newest before the rest.

    It needs no scoring, so it cannot fail, and it fits any limit that has room for some words (about 40).
    """
    read = [source for source in prepare_sources(sources) if not is_empty(source)]
    if not read:
        return ""
    language = language_of(read)
    by_need = sorted(read, key=lambda source: (not is_user(source), source.is_tool_result, -source.seq))
    lines: list[SummaryLine] = []
    for source in by_need:
        text = to_one_line(source.text) or ", ".join(to_one_line(call.name) for call in source.calls)
        clipped = f"{text[:_TERSE_CHARS].rstrip()}…" if len(text) > _TERSE_CHARS else text
        said = f"{speaker_label(source, language)}{clipped}"
        lines.append(SummaryLine(section="facts", text=said, first_seq=source.seq, last_seq=source.seq))
    fitting = lines_that_fit(lines, language, max_tokens, count_tokens)
    if fitting:
        return format_summary(fitting, language)
    mark = f" {source_tag(lines[0])}"
    room_tokens = max(1, max_tokens - count_tokens(mark) - 1)
    return cut_to_fit(f"{cut_to_fit(lines[0].text, room_tokens, count_tokens)}{mark}", max_tokens, count_tokens)


def _share_of_source(sources: Sequence[Source], max_tokens: int, count_tokens: TokenCounter) -> int:
    said = [text for source in sources for text in (source.text, *(call.arguments for call in source.calls))]
    if sum(map(len, said)) > _SURELY_LONG_CHARS * max_tokens:
        return max_tokens
    tokens = sum(map(count_tokens, said))
    return int(max(_SOURCE_SHARE * tokens, min(_SHARE_OF_SHORT * tokens, _SHORT_TOKENS)))


def _lines(chosen: Sequence[CandidateLine], days: dict[int, str]) -> Iterator[SummaryLine]:
    """The chosen pieces as lines, best first; those of one message and section share one."""
    together: dict[tuple[Section, int, int], list[CandidateLine]] = {}
    for candidate in chosen:
        together.setdefault(candidate.key, []).append(candidate)
    for (section, first_seq, last_seq), pieces in together.items():
        text = _join_pieces(sorted(pieces, key=lambda piece: piece.index))
        day = days.get(last_seq) if cues.is_relative_in_time(text) else None
        yield SummaryLine(section=section, text=text, first_seq=first_seq, last_seq=last_seq, day=day)


def _join_pieces(pieces: Sequence[CandidateLine]) -> str:
    """The pieces as they stood, a gap marked, an item with the heading it needs."""
    text = pieces[0].speaker
    before: CandidateLine | None = None
    for piece in pieces:
        if before is not None:
            is_next = piece.index == before.index + 1
            text += " … " if not is_next else " " if before.text.endswith(_ENDINGS) else "; "
        if piece.under and (before is None or piece.under != before.under):
            text += f"{piece.under}: "
        text += piece.text
        before = piece
    return text


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
    r"^[^\S\n]*+(?:export |public |async |pub ){0,3}(?:def|class|function|interface|struct|func|fn|enum)\s+"
    r"([A-Za-z_]\w{1,60})",
    re.MULTILINE,
)


def make_candidates(
    sources: Sequence[Source], facts: Sequence[Fact], language: Language
) -> tuple[list[CandidateLine], list[CandidateLine]]:
    """All that could be said, and of it what comes first: the request, what holds for good, what is unanswered."""
    said = list(statements_of(sources))
    values = FactValues(sources, facts)
    first = opening_request(said)
    made = [
        candidate
        for one, salience in _worth_reading_closely(said, values, first)
        for candidate in _statement_candidates(one, salience, values, language, opens=one is first)
    ]
    made += [
        _call_candidate(outcome, (outcome.last_seq / sources[-1].seq), values)
        for outcome in call_outcomes(sources)
        if outcome.says_something
    ]
    asked = [candidate for candidate in made if candidate.section == "goal"]
    standing = [candidate for candidate in made if candidate.section == "standing"]
    unanswered = [candidate for candidate in made if candidate.section == "open"]
    return made, asked[:1] + standing + unanswered[-1:]


def speaker_label(source: Source, language: Language) -> str:
    """Who said it, as a line opens with it."""
    name = to_one_line(source.name or "") or _SPEAKERS[language].get(source.role, source.role)
    return f"{name}{'：' if language == 'zh' else ': '}"


def _worth_reading_closely(
    said: Sequence[Statement], values: FactValues, first: Statement | None
) -> Iterator[tuple[Statement, float]]:
    salient = saliences(said)
    at: Sequence[int] = range(len(said))
    if len(said) > _READ_CLOSELY:
        guesses = [
            quick_score(one, salience, values.facts_in(one.piece.text, one.source.seq)) + 9 * (one is first)
            for one, salience in zip(said, salient, strict=True)
        ]
        at = sorted(heapq.nlargest(_READ_CLOSELY, at, key=guesses.__getitem__))
    yield from ((said[index], salient[index]) for index in at)


def _statement_candidates(
    one: Statement, salience: float, values: FactValues, language: Language, *, opens: bool
) -> Iterator[CandidateLine]:
    text = _code_sketch(one.piece.text, language) if one.piece.kind == "code" else _clip(one.piece.text, language)
    if not text:
        return
    first_seq, speaker = one.source.seq, speaker_label(one.source, language)
    if one.question is not None:
        asked = f"{speaker_label(one.question.source, language)}{_clip(one.question.piece.text, language)}"
        first_seq, speaker, text = one.question.source.seq, "", f"{asked} → {speaker}{text}"
    facts = values.facts_in(text, first_seq, one.source.seq)
    if not opens and is_small_talk(one, facts):
        return
    settled = confirms_choice(one, holds_facts=bool(facts))
    section = "goal" if opens else "decisions" if settled else section_of(one, holds_facts=bool(facts))
    yield CandidateLine(
        section=section,
        text=text,
        speaker=speaker,
        first_seq=first_seq,
        last_seq=one.source.seq,
        index=one.index,
        weight=max(score(one, section, salience), 1.0 if opens else 0.0),
        facts=facts,
        terms=frozenset((*one.terms, *one.question.terms) if one.question else one.terms),
        under=_heading(one.piece.under) if len(one.terms) <= SHORT_TERMS else "",
    )


def _call_candidate(outcome: CallOutcome, progress: float, values: FactValues) -> CandidateLine:
    """What failed and what was changed weighs more than what was looked up."""
    text = outcome_line(outcome)
    own = 1.0 if outcome.failed else 1.2 if outcome.acts else 0.3
    return CandidateLine(
        section="tools",
        text=text,
        speaker="",
        first_seq=outcome.first_seq,
        last_seq=outcome.last_seq,
        index=0,
        weight=own + 0.2 * progress,
        facts=values.facts_in(text, outcome.first_seq, outcome.last_seq),
        terms=frozenset(terms(text)),
    )


def _clip(text: str, language: Language) -> str:
    """The text on one line, cut at a clause where it is too long for one thought."""
    line, limit = to_one_line(text), _CLIP_CHARS[language]
    if len(line) <= limit:
        return line
    ends = [match.end() for match in _CLAUSE_END.finditer(line, limit // 2, limit)]
    return f"{line[: ends[-1] if ends else limit].rstrip(' ,;，；、')}…"


def _heading(text: str) -> str:
    """A heading as it stands before an item: its first words."""
    line = to_one_line(text).rstrip(" :：")
    return line if len(line) <= _HEADING_CHARS else f"{line[:_HEADING_CHARS].rsplit(' ', 1)[0]}…"


def _code_sketch(block: str, language: Language) -> str:
    """A block by what it defines; one that defines nothing is not worth a line."""
    names = list(dict.fromkeys(_DEFINED.findall(block)))
    if not names:
        return ""
    fence, _, code = block.partition("\n")
    written_in = fence.strip("`~ ").split(" ")[0] or "?"
    return to_one_line(
        _CODE_SKETCH[language].format(language=written_in, lines=code.count("\n"), names=", ".join(names[:8]))
    )
