"""One level up: several summaries made into one, line by line, without a model.

The lines keep the seqs of the messages they came from, so nothing is further from its source than
before; text that was not written in lines stands for its whole span. What was open in an old span has
mostly been settled since, so open points fade with age.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate

from everthread.compaction.fact_ranking import fact_weight, rank_facts, split_kept
from everthread.compaction.selection import ESTIMATE_SLACK, CandidateLine, select_candidates
from everthread.compaction.sources import ChildSummary, Source, TokenCounter
from everthread.compaction.standing import STANDING_SHARE, stems_of
from everthread.compaction.summary_format import (
    LIST_SHARE,
    Section,
    SummaryLine,
    cut_to_fit,
    format_line,
    format_summary,
    join_within,
    language_of_summary,
    lines_that_fit,
    mention_list,
    parse_summary,
    to_one_line,
)
from everthread.compaction.superseded import (
    changed_by,
    mark_superseded,
    may_replace,
    only_with_what_replaced,
    told_by_users,
    told_later,
    without_label,
)
from everthread.compaction.tool_calls import acts
from everthread.context.ingredients import LogMessage, QuotedMemory, QuotedSummary, RecalledPassage
from everthread.context.quotes import record_frame_tokens
from everthread.context.tokens import count_tokens
from everthread.core import payloads
from everthread.core.compactions import Compaction
from everthread.core.recent import Recent
from everthread.core.text_memo import TextMemo
from everthread.text.facts import Fact, find_facts
from everthread.text.language import Language, readable
from everthread.text.sentences import split_sentences
from everthread.text.terms import terms, tf_idf_weights

# How much of a summary of summaries each section may take at most.
_CONDENSED_SHARES: dict[Section, float] = {
    "goal": 0.25,
    "standing": STANDING_SHARE,
    "decisions": 0.5,
    "facts": 0.7,
    "open": 0.15,
    "tools": 0.25,
}
_SECTION_WEIGHTS: dict[Section, float] = {
    "goal": 0.8,
    "standing": 1.2,
    "decisions": 1.3,
    "facts": 0.6,
    "open": 0.8,
    "tools": 0.4,
    "mentioned": 0.0,
}
# What a tool changed is asked for longer than what one looked up.
_ACTED, _LOOKED = 1.0, 0.1
_NOT_A_USER = ("assistant: ", "助手：", "system: ", "系统：", "ai: ")
_REPLY_OF_USER = (" → user: ", " → 用户：")
_LEAST_TOKENS = 50
_REPLACED_WEIGHT, _REPLACED_FACT_VALUE = 0.3, 0.01
"""Told only where there is room for it beside what holds."""
_USER_FACT_VALUE, _OTHER_FACT_VALUE = 0.5, 0.2


def condense(summaries: Sequence[ChildSummary], *, max_tokens: int, count_tokens: TokenCounter = count_tokens) -> str:
    """One summary of several that follow each other, within the limit; not empty unless they all are."""
    children = [
        ChildSummary(first_seq=child.first_seq, last_seq=child.last_seq, text=readable(child.text))
        for child in summaries
    ]
    lines = [(line, at) for at, child in enumerate(children) for line in lines_of(child)]
    if not lines:
        return ""
    language = _language(children)
    told = [line for line, _ in lines]
    marked = mark_superseded(told, told_later(told), language)
    lines = [(line, at) for line, (_, at) in zip(marked, lines, strict=True)]
    holding = [line for line, _ in lines if not changed_by(line) and (line.section != "tools" or acts(line.text))]
    facts = [fact for line in holding for fact in find_facts(without_label(line.text), seq=line.first_seq)]
    ranked = rank_facts(facts, sources_of_summaries(children))
    prose_tokens = max_tokens - int(max_tokens * LIST_SHARE)
    candidates = _newer_before_older(_candidates(lines, len(children)), marked)
    goals = sorted((one for one in candidates if one.section == "goal"), key=lambda one: one.first_seq)
    standing = [one for one in candidates if one.section == "standing"]

    def select(first: Sequence[CandidateLine]) -> list[SummaryLine]:
        chosen = select_candidates(
            candidates,
            room_tokens=int(prose_tokens * ESTIMATE_SLACK),
            shares=_CONDENSED_SHARES,
            first=[*goals[:1], *standing, *first],
            count_tokens=count_tokens,
        )
        return [lines[candidate.index][0] for candidate in chosen]

    best_first = select(())
    newer = {seq for line in best_first for seq in changed_by(line)} - {line.last_seq for line in best_first}
    if missing := [one for one in candidates if one.last_seq in newer and may_replace(without_label(one.text))]:
        best_first = select(missing)  # what replaced a line is told too
    fitting = lines_that_fit(best_first, language, prose_tokens, count_tokens)
    prose = format_summary(only_with_what_replaced(fitting, children[-1].last_seq), language)
    said: dict[int, str] = {}
    for line in holding:
        words = without_label(line.text)
        said[line.first_seq] = f"{said[line.first_seq]}\n{words}" if line.first_seq in said else words
    unsaid = split_kept(prose, ranked)[1]
    listed = mention_list(unsaid, said, language, int(max_tokens * LIST_SHARE), count_tokens)
    whole = join_within(prose, listed, max_tokens, count_tokens)
    return whole or cut_to_fit(format_line(next(iter(holding), told[0])), max_tokens, count_tokens)


def _newer_before_older(candidates: Sequence[CandidateLine], lines: Sequence[SummaryLine]) -> list[CandidateLine]:
    """The candidates, what a later one replaced, if only in part, worth hardly anything: measured, more answers are in
    view than where it keeps its worth. What replaced it weighs as much as it did."""
    gained: dict[int, float] = {}
    for one in candidates:
        for seq in changed_by(lines[one.index]):
            gained[seq] = max(one.weight, gained.get(seq, 0.0))
    return [
        replace(one, weight=_REPLACED_WEIGHT, facts=dict.fromkeys(one.facts, _REPLACED_FACT_VALUE))
        if changed_by(lines[one.index])
        else replace(one, weight=max(one.weight, gained[one.last_seq]))
        if one.last_seq in gained
        else one
        for one in candidates
    ]


def _language(children: Sequence[ChildSummary]) -> Language:
    """That of most of the summaries, weighed by their length."""
    chinese = sum(len(child.text) for child in children if language_of_summary(child.text) == "zh")
    return "zh" if 2 * chinese > sum(len(child.text) for child in children) else "en"


WHOLE_SHARE = 0.5
"""Of the room: what the newest summaries take whole where not all fit."""
_FRAME_TOKENS = 16
"""What the tags around a summary count to, or a little more."""


recent_summaries: Recent[object, tuple[QuotedSummary, ...]] = Recent(8_000_000)
"""Those that requests quoted lately, weighed by their characters: all summaries of a long conversation are 200 KB."""


def summaries_within(told: tuple[Compaction, ...], room: int | None) -> tuple[QuotedSummary, ...]:
    """Summaries as a request quotes them. Where they are over the room, the newest stay whole in half of it and all
    before them are shortened into one text: what was decided and told by the user first."""
    key = (tuple((one.id, one.first_seq, one.last_seq, one.tokens_after, one.summary) for one in told), room)
    known = recent_summaries.get(key)
    if known is None:
        known = _quoted_within(told, room)
        kept = {id(text): len(text) for text in (*(one.summary for one in told), *(one.text for one in known))}
        recent_summaries.put(key, known, sum(kept.values()))
    return known


def _quoted_within(told: Sequence[Compaction], room: int | None) -> tuple[QuotedSummary, ...]:
    quoted = _with_marks(told)
    sizes = [(one.tokens or 0) + _FRAME_TOKENS for one in quoted]
    if room is None or sum(sizes) <= room:
        return tuple(quoted)
    from_newest = list(accumulate(reversed(sizes)))
    whole = sum(used <= WHOLE_SHARE * room for used in from_newest)
    left = room - (from_newest[whole - 1] if whole else 0) - _FRAME_TOKENS - record_frame_tokens()
    older = told[: len(told) - whole]
    children = [
        ChildSummary(first_seq=one.first_seq, last_seq=one.last_seq, text=one.text) for one in quoted[: len(older)]
    ]
    text = condense(children, max_tokens=max(_LEAST_TOKENS, left), count_tokens=count_tokens)
    shortened = QuotedSummary(
        id=older[-1].id,
        first_seq=older[0].first_seq,
        last_seq=older[-1].last_seq,
        text=text,
        tokens=count_tokens(text),
        earlier_ids=tuple(one.id for one in older[:-1]),
    )
    return (shortened, *quoted[len(older) :])


def _with_marks(told: Sequence[Compaction]) -> list[QuotedSummary]:
    """The summaries, what a later one says no longer holds marked in the earlier ones."""
    quoted: list[QuotedSummary] = []
    later: list[tuple[int, str]] = []
    all_lines = [[line for line in parse_summary(one.summary) if isinstance(line, SummaryLine)] for one in told]
    said = told_by_users(line for lines in all_lines for line in lines)
    for one, lines in zip(reversed(told), reversed(all_lines), strict=True):
        text, tokens = one.summary, one.tokens_after
        marked = mark_superseded(lines, later, language_of_summary(text), said) if later else lines
        for line, now in zip(lines, marked, strict=True):
            if now is not line:
                text = text.replace(format_line(line), format_line(now), 1)
        if text is not one.summary:
            tokens = count_tokens(text)
        quoted.append(
            QuotedSummary(id=one.id, first_seq=one.first_seq, last_seq=one.last_seq, text=text, tokens=tokens)
        )
        later += told_later(lines)
    return quoted[::-1]


def without_told(
    memories: Sequence[QuotedMemory], summaries: Sequence[QuotedSummary], room_tokens: int
) -> list[QuotedMemory]:
    """The memories without those whose message a summary of the same request tells in the same words, the user's
    wishes only if it keeps them in mind. Where the summaries may have to be cut, they all stay."""
    if sum(one.tokens or 0 for one in summaries) > room_tokens:
        return list(memories)
    return [memory for memory in memories if not any(_tells(one, memory) for one in summaries)]


def _tells(summary: QuotedSummary, memory: QuotedMemory) -> bool:
    seq = memory.message
    if seq is None or not memory.is_confirmed or not summary.first_seq <= seq <= summary.last_seq:
        return False
    lines = _in_mind(summary.text).get(seq)
    if not lines:
        return False
    quoted = _OF_WHOM.sub("", memory.text, count=1)
    sections = _KEPT_SECTIONS if _IS_QUOTATION.match(quoted) else _KEPT_SECTIONS[:1]
    own = stems_of(quoted)
    return any(section in sections and own <= stems for section, stems in lines)


def without_told_orders(
    recalled: Sequence[RecalledPassage],
    memories: Sequence[QuotedMemory],
    summaries: Sequence[QuotedSummary],
    room_tokens: int,
) -> list[RecalledPassage]:
    """What was recalled without the orders that the same request keeps in mind or remembers in the same words. Where
    the summaries may have to be cut, they all stay."""
    if sum(one.tokens or 0 for one in summaries) > room_tokens:
        return list(recalled)
    remembered = {one.message: stems_of(one.text) for one in memories if one.message is not None}

    def is_told(passage: RecalledPassage) -> bool:
        seq = passage.stored.seq
        if not passage.is_whole or payloads.role(passage.stored.payload) != "user":
            return False
        own = stems_of(passage.text)
        kept = (line for one in summaries for line in _in_mind(one.text).get(seq, ()))
        return own <= remembered.get(seq, frozenset()) or any(
            section == "standing" and own <= stems for section, stems in kept
        )

    return [one for one in recalled if not is_told(one)]


def with_changes(
    recalled: Sequence[RecalledPassage], summaries: Sequence[QuotedSummary], window: Sequence[LogMessage]
) -> list[RecalledPassage]:
    """What was recalled, each of the user's short messages with the later one that took it back or changed it, as far
    as the request tells that one. The newest message is what is asked now."""
    if not recalled:
        return []
    lines = [line for one in summaries for line in _lines_told(one.text)]
    noted = {line.last_seq: seqs for line in lines if (seqs := changed_by(line))}
    later = told_later(lines)
    for message in window[:-1]:
        text = payloads.text(message.payload)
        if payloads.role(message.payload) == "user" and len(text) <= _SHORT_CHARS and may_replace(text):
            later.append((message.seq, text))
    said = told_by_users(lines)

    def change(passage: RecalledPassage) -> tuple[int, ...]:
        seq, text = passage.stored.seq, passage.text
        if not passage.is_whole or len(text) > _SHORT_CHARS or payloads.role(passage.stored.payload) != "user":
            return ()
        line = SummaryLine(section="facts", text=to_one_line(text), first_seq=seq, last_seq=seq)
        known = noted.get(seq, ())
        newer = changed_by(mark_superseded([line], later, "en", said)[0])
        return (*known, *(one for one in newer if one > max(known, default=0)))

    return [replace(one, changed_by=change(one)) for one in recalled]


_SHORT_CHARS = 320
"""A longer message says many things, of which a later one changes hardly all."""
_lines_told = TextMemo(
    lambda text: tuple(line for line in parse_summary(text) if isinstance(line, SummaryLine)),
    min_chars=0,
    max_chars=100_000,
    capacity=512,
)


_KEPT_SECTIONS = ("standing", "goal", "decisions")


def _read_in_mind(text: str) -> Mapping[int, Sequence[tuple[str, frozenset[str]]]]:
    found: dict[int, list[tuple[str, frozenset[str]]]] = {}
    for line in parse_summary(text):
        if isinstance(line, SummaryLine) and line.section in _KEPT_SECTIONS and not changed_by(line):
            found.setdefault(line.last_seq, []).append((line.section, stems_of(line.text)))
    return found


_in_mind = TextMemo(_read_in_mind, min_chars=0, max_chars=100_000, capacity=512)
"""The sections and words of what a summary keeps in mind, or as a goal or a decision, by the message it is from: each
request of a conversation quotes the same summaries."""

_OF_WHOM = re.compile(r"^(?:The user(?: said:)?|用户(?:说：)?)")
"""By what a memory says of whom it is."""
_IS_QUOTATION = re.compile(r"\s*[\"“「]")


def lines_of(child: ChildSummary) -> Iterator[SummaryLine]:
    """The lines of a summary; what stands there without a seq is given the summary's span."""
    for found in parse_summary(child.text):
        if isinstance(found, SummaryLine):
            yield found
            continue
        for piece in split_sentences(found):
            yield SummaryLine(section="facts", text=piece.text, first_seq=child.first_seq, last_seq=child.last_seq)


def sources_of_summaries(children: Sequence[ChildSummary]) -> list[Source]:
    """The lines of summaries as sources, for ranking their facts and for the gate."""
    return [
        Source(seq=line.first_seq, role="user" if _is_users(line) else "assistant", text=line.text)
        for child in children
        for line in lines_of(child)
    ]


def standing_of_summaries(children: Sequence[ChildSummary]) -> list[SummaryLine]:
    """What users said that holds for good, as the summaries list it: who says the other lines cannot be told from
    their words."""
    return [line for child in children for line in lines_of(child) if line.section == "standing"]


def facts_of_summaries(children: Sequence[ChildSummary]) -> list[Fact]:
    """The facts that summaries hold, those of their closing lists among them."""
    lines = (line for child in children for line in lines_of(child))
    return [fact for line in lines for fact in find_facts(line.text, seq=line.first_seq)]


def _is_users(line: SummaryLine) -> bool:
    if line.section in ("tools", "mentioned"):
        return False
    return not line.text.startswith(_NOT_A_USER) or any(reply in line.text for reply in _REPLY_OF_USER)


def _candidates(lines: Sequence[tuple[SummaryLine, int]], child_count: int) -> list[CandidateLine]:
    words = [terms(line.text) for line, _ in lines]
    weights = tf_idf_weights(words)
    heaviest = max((_top_weight(said, weights) for said in words), default=0.0) or 1.0
    return [
        CandidateLine(
            section=line.section,
            text=line.text,
            speaker="",
            first_seq=line.first_seq,
            last_seq=line.last_seq,
            index=index,
            weight=_score(line, _top_weight(said, weights) / heaviest, (child + 1) / child_count),
            facts={
                fact.normal: (_USER_FACT_VALUE if _is_users(line) else _OTHER_FACT_VALUE) * fact_weight(fact)
                for fact in find_facts(line.text, seq=line.first_seq)
            },
            terms=frozenset(said),
        )
        for index, ((line, child), said) in enumerate(zip(lines, words, strict=True))
        if line.section != "mentioned"
    ]


def _top_weight(said: Sequence[str], weights: dict[str, float]) -> float:
    return sum(sorted((weights[term] for term in set(said)), reverse=True)[:6])


def _score(line: SummaryLine, salience: float, progress: float) -> float:
    own = _SECTION_WEIGHTS[line.section] * (progress if line.section == "open" else 1.0)
    if line.section == "tools":
        own = _ACTED if acts(line.text) else _LOOKED
    is_settled = line.section == "decisions"  # what an assistant says there confirms what the user chose
    return (own + 0.4 * salience + 0.2 * progress) * (1.0 if is_settled or _is_users(line) else 0.6)
