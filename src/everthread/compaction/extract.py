"""The summary without a model: the sentences of a span that someone would need to go on, under heads.

Every message is cut into pieces; each piece is weighed by who said it, where, how rare its words are in
this conversation, what it does (decide, ask, promise) and which facts it holds; the best are chosen
within the token limit, never two that say the same, and written with the seq of their source.

- deterministic: equal sources give equal text
- within `max_tokens` by the caller's own counter, and not empty unless every source is
- time grows with the text, not with its square; it raises nothing on any text
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from everthread.compaction.candidates import candidates, label
from everthread.compaction.facts import Fact, facts_of, kept, rank_facts
from everthread.compaction.fitting import cut_to_fit, joined_within, lines_that_fit, mentions
from everthread.compaction.kinds import Kind, kind_of
from everthread.compaction.sections import FACTS_SHARE, Line, Section, one_line, render, tag
from everthread.compaction.selection import Candidate, choose
from everthread.compaction.sources import Source, TokenCounter, is_empty, is_user, language_of, prepared
from everthread.text import cues
from everthread.text.language import Language

# A summary longer than this part of its source saves too little to be read instead of it.
_SOURCE_SHARE = 0.5
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
# The choice estimates what a line costs around its words; the lines are then cut to what they really cost.
_SLACK = 1.15

_ENDINGS = tuple('.!?…:;,。！？：；，)）"”」』')
_SHARES: dict[Kind, dict[Section, float]] = {
    "chat": {"goal": 0.2, "decisions": 0.4, "facts": 0.8, "open": 0.15, "tools": 0.15},
    "tool-heavy": {"goal": 0.2, "decisions": 0.3, "facts": 0.5, "open": 0.15, "tools": 0.5},
    "coding": {"goal": 0.2, "decisions": 0.35, "facts": 0.6, "open": 0.2, "tools": 0.35},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Draft:
    """All that a summary is written from, whatever its size."""

    candidates: list[Candidate]
    first: list[Candidate]
    ranked: list[Fact]
    days: dict[int, str]
    language: Language
    shares: dict[Section, float]
    message_share: float


def extract(
    sources: Sequence[Source],
    *,
    max_tokens: int,
    count_tokens: TokenCounter,
    kind: Kind | None = None,
    facts: Sequence[Fact] | None = None,
) -> str:
    """The extractive summary of a span. `kind` and `facts` are worked out when not given."""
    read = prepared(sources)
    draft = _draft(read, facts_of(read) if facts is None else facts, kind or kind_of(read))
    room_tokens = min(max_tokens, max(_LEAST_TOKENS, _half_of(read, max_tokens, count_tokens)))
    list_tokens = int(room_tokens * FACTS_SHARE)
    prose, listed = _written(draft, room_tokens - list_tokens, list_tokens, count_tokens)
    spare_tokens = list_tokens - count_tokens(listed) - 1
    if spare_tokens > _WORTH_A_LINE:
        prose, listed = _written(draft, room_tokens - list_tokens + spare_tokens, list_tokens, count_tokens)
    whole = joined_within(prose, listed, max_tokens, count_tokens)
    return whole or terse(sources, max_tokens=max_tokens, count_tokens=count_tokens)


def _draft(read: Sequence[Source], facts: Sequence[Fact], kind: Kind) -> _Draft:
    language = language_of(read)
    made, first = candidates(read, facts, language)
    return _Draft(
        candidates=made,
        first=first,
        ranked=rank_facts(facts, read),
        days={source.seq: source.said_at.date().isoformat() for source in read if source.said_at},
        language=language,
        shares=_SHARES[kind],
        message_share=_MESSAGE_SHARE if len(read) > _FEW_MESSAGES else 1.0,
    )


def _written(draft: _Draft, prose_tokens: int, list_tokens: int, count_tokens: TokenCounter) -> tuple[str, str]:
    """The sentences, and the list of the facts that none of them holds."""
    chosen = choose(
        draft.candidates,
        room_tokens=int(prose_tokens * _SLACK),
        shares=draft.shares,
        message_share=draft.message_share,
        first=draft.first,
        count_tokens=count_tokens,
    )
    lines = lines_that_fit(list(_lines(chosen, draft.days)), draft.language, prose_tokens, count_tokens)
    prose = render(lines, draft.language)
    return prose, mentions(kept(prose, draft.ranked)[1], draft.language, list_tokens, count_tokens)


def terse(sources: Sequence[Source], *, max_tokens: int, count_tokens: TokenCounter) -> str:
    """The last resort: how the span's own messages begin, what users said and the newest before the rest.

    It needs no scoring, so it cannot fail, and it fits any limit that has room for some words (about 40).
    """
    read = [source for source in prepared(sources) if not is_empty(source)]
    if not read:
        return ""
    language = language_of(read)
    by_need = sorted(read, key=lambda source: (not is_user(source), source.is_tool_result, -source.seq))
    lines = [_opening_line(source, label(source, language)) for source in by_need]
    fitting = lines_that_fit(lines, language, max_tokens, count_tokens)
    if fitting:
        return render(fitting, language)
    mark = f" {tag(lines[0])}"
    room_tokens = max(1, max_tokens - count_tokens(mark) - 1)
    return cut_to_fit(f"{cut_to_fit(lines[0].text, room_tokens, count_tokens)}{mark}", max_tokens, count_tokens)


def _opening_line(source: Source, speaker: str) -> Line:
    text = one_line(source.text) or ", ".join(one_line(call.name) for call in source.calls)
    clipped = f"{text[:_TERSE_CHARS].rstrip()}…" if len(text) > _TERSE_CHARS else text
    return Line(section="facts", text=f"{speaker}{clipped}", first_seq=source.seq, last_seq=source.seq)


def _half_of(sources: Sequence[Source], max_tokens: int, count_tokens: TokenCounter) -> int:
    said = [text for source in sources for text in (source.text, *(call.arguments for call in source.calls))]
    if sum(map(len, said)) > _SURELY_LONG_CHARS * max_tokens:
        return max_tokens
    return int(_SOURCE_SHARE * sum(map(count_tokens, said)))


def _lines(chosen: Sequence[Candidate], days: dict[int, str]) -> Iterator[Line]:
    """The chosen pieces as lines, best first; those of one message and section share one."""
    together: dict[tuple[Section, int, int], list[Candidate]] = {}
    for candidate in chosen:
        together.setdefault(candidate.key, []).append(candidate)
    for (section, first_seq, last_seq), pieces in together.items():
        text = _joined(sorted(pieces, key=lambda piece: piece.place))
        day = days.get(last_seq) if cues.is_relative_in_time(text) else None
        yield Line(section=section, text=text, first_seq=first_seq, last_seq=last_seq, day=day)


def _joined(pieces: Sequence[Candidate]) -> str:
    """The pieces as they stood, a gap marked, an item with the heading it needs."""
    text, before = "", None
    for piece in pieces:
        head = f"{piece.under}: " if piece.under and (before is None or piece.under != before.under) else ""
        text += f"{_between(before, piece)}{head}{piece.text}"
        before = piece
    return f"{pieces[0].speaker}{text}"


def _between(before: Candidate | None, piece: Candidate) -> str:
    if before is None:
        return ""
    if piece.place != before.place + 1:
        return " … "
    return " " if before.text.endswith(_ENDINGS) else "; "
