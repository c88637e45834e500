"""What holds for all times: orders such as "never name the customer", and what others have to heed of a person.

Whoever writes a summary, and however often it is condensed, these lines stay: a model that drops one gets it back here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from everthread.compaction.sources import Source, TokenCounter, is_user
from everthread.compaction.summary_format import (
    SECTION_TITLES,
    SummaryLine,
    cited_seqs,
    format_line,
    language_of_summary,
    section_of_head,
    to_one_line,
)
from everthread.compaction.superseded import mark_superseded, replaced_by
from everthread.text import cues
from everthread.text.fillers import without_fillers
from everthread.text.sentences import split_sentences
from everthread.text.terms import overlap, terms
from everthread.text.words import stem

STANDING_SHARE = 0.6
"""Of a summary: what such lines may take at most."""
_LONGEST_CHARS = 320
_SAID = 0.75
"""A line that holds so many of the words of an order holds the order."""
_SAID_WITH_SOURCE = 0.4


def is_standing(text: str) -> bool:
    """Whether a user's sentence orders something for good, tells what is to be heeded, or ends either; a question does
    none of it."""
    said = without_fillers(text)
    return len(text) <= _LONGEST_CHARS and _may_stand(said) and not cues.ends_in_question(said)


def _may_stand(text: str) -> bool:
    return cues.is_standing(text) or cues.revokes(text)


def standing_lines(sources: Sequence[Source]) -> Iterator[SummaryLine]:
    """What users said that holds for all times."""
    asked: Source | None = None
    for source in sources:
        if not is_user(source):
            asked = source if source.text.strip() and not source.is_tool_result else asked
            continue
        if asked is not None and (answered := _answered_for_good(asked, source)):
            yield answered
        elif _may_stand(source.text):
            for piece in split_sentences(source.text):
                if piece.kind != "code" and is_standing(piece.text):
                    yield SummaryLine(
                        section="standing", text=to_one_line(piece.text), first_seq=source.seq, last_seq=source.seq
                    )
        asked = None


def _answered_for_good(asked: Source, answer: Source) -> SummaryLine | None:
    """What a user must be heeded in, as the answer to who asked for it: "Any allergies?", "penicillin"."""
    pieces = split_sentences(asked.text)
    if not pieces or len(answer.text) > _LONGEST_CHARS or not terms(answer.text):
        return None
    question = pieces[-1].text
    if not cues.answers_of_person(question, answer.text):
        return None
    text = to_one_line(f"{question} → {answer.text}")
    return SummaryLine(section="standing", text=text, first_seq=asked.seq, last_seq=answer.seq)


def without_others_orders(prose: str, said: Sequence[tuple[int, str]]) -> str:
    """A model's summary whose standing requests are the user's: what it lists as one in words that no user `said`, by
    seq, is listed as a fact. A tool's answer could have made it write that."""
    kept: list[str] = []
    moved: list[str] = []
    section: str | None = None
    users = [(seq, stems_of(text)) for seq, text in said]
    standing = f"## {SECTION_TITLES[language_of_summary(prose)]['standing']}"
    for line in prose.splitlines():
        opened = section_of_head(line)
        section = opened or section
        is_order = section == "standing" and opened is None and line.strip()
        (moved if is_order and not _is_users(line, users) else kept).append(standing if opened == "standing" else line)
    if not moved:
        return "\n".join(kept)
    kept = [line for at, line in enumerate(kept) if section_of_head(line) != "standing" or _has_lines(kept[at + 1 :])]
    head = f"## {SECTION_TITLES[language_of_summary(prose)]['facts']}"
    at = kept.index(head) + 1 if head in kept else len(kept)
    return "\n".join([*kept[:at], *([] if head in kept else [head]), *moved, *kept[at:]])


def _has_lines(after_head: Sequence[str]) -> bool:
    following = next((line for line in after_head if line.strip()), None)
    return following is not None and section_of_head(following) is None


def _is_users(line: str, users: Sequence[tuple[int, frozenset[str]]]) -> bool:
    """Whether one message of a user, of those that the line cites if it cites any, has most of its words."""
    cited, own = cited_seqs(line), stems_of(line)
    return any(
        overlap(own, words) >= _SAID
        for seq, words in users
        if not cited or any(first <= seq <= last for first, last in cited)
    )


def with_standing(
    prose: str,
    orders: Sequence[SummaryLine],
    later: Sequence[tuple[int, str]],
    most_tokens: int,
    count_tokens: TokenCounter,
) -> str:
    """A model's summary with the orders that it left out, before all else: as far as they take their share.

    One that was replaced by what was said `later` is not put back; what replaced it is.
    """
    told = [(stems_of(line), cited_seqs(line)) for line in prose.splitlines()]
    missing: list[SummaryLine] = []
    for line in mark_superseded(orders, later, "en"):
        own = stems_of(line.text)
        if replaced_by(line) is None and own and not any(_holds(one, seqs, own, line.last_seq) for one, seqs in told):
            missing.append(line)
            told.append((own, []))
    head = f"## {SECTION_TITLES[language_of_summary(prose)]['standing']}"
    lines = [head]
    for line in missing:
        if count_tokens("\n".join([*lines, format_line(line)])) <= STANDING_SHARE * most_tokens:
            lines.append(format_line(line))
    if len(lines) == 1:
        return prose
    if head not in prose.splitlines():
        return "\n".join([*lines, prose])
    before, _, after = prose.partition(head)
    return f"{before}{chr(10).join(lines)}{after}"


def _holds(told: frozenset[str], cited: Sequence[tuple[int, int]], own: frozenset[str], seq: int) -> bool:
    """Whether a line tells an order: by its words, of which it needs fewer where it cites the message."""
    if any(first <= seq <= last for first, last in cited) and overlap(own, told) >= _SAID_WITH_SOURCE:
        return True
    return overlap(own, told) >= _SAID and len(told) >= len(own) * _SAID


def stems_of(text: str) -> frozenset[str]:
    """By what an order is compared with what tells it."""
    return frozenset(stem(word) if word.isascii() else word for word in terms(text))
