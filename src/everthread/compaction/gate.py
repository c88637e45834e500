"""The gate before a summary may stand for its source, whoever wrote it.

A summary passes when it says something, in fewer tokens than its source, in its own words or by tagged
lines, and holds nothing that a model would obey. A model's must also be more than a refusal or a few words.
What a model says that its sources do not is struck (`claims.py`), and a summary of which most would go is refused.
What a model dropped of the facts is then listed at its end, within 30 % of the limit. A refused summary changes
nothing: the caller records why and goes on.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from everthread.compaction.claims import StruckSentence, check_claims
from everthread.compaction.fact_ranking import SOURCE_TAG, rank_facts, split_kept, texts_by_seq
from everthread.compaction.sources import Source, TokenCounter, is_user, speaker
from everthread.compaction.standing import standing_lines, with_standing, without_others_orders
from everthread.compaction.summary_format import (
    FACTS_SHARE,
    SummaryLine,
    cut_at_sentence,
    join_within,
    language_of_summary,
    mention_list,
    strip_mentions,
)
from everthread.compaction.superseded import mark_superseded, said_later
from everthread.text.control_syntax import has_role_marks, has_tool_syntax, is_dialogue
from everthread.text.facts import Fact
from everthread.text.language import readable

RejectionReason = Literal[
    "empty", "not-smaller", "too-long", "echo", "tool-syntax", "role-marks", "dialogue", "too-short", "untrue"
]

# A text over twice the limit was not written to it; cutting more than half away would keep a beginning, no summary.
_TOO_LONG = 2.0
# An echo: most of the text is one stretch of the source, and longer than a sentence that may well be quoted.
_ECHO_SHARE = 0.6
_ECHO_CHARS = 200
_ECHO_STEP = 32
# A model that answers with less than this of what it may write (or of its source, where that is shorter) wrote no
# summary; a refusal is one by its first words, unless enough follows to be a summary after all.
_TOO_SHORT = 0.01
_REFUSAL_TOKENS = 120
# A model that invents more than this of its sentences is not trusted with the others.
_UNTRUE_SHARE = 0.5
_CANNOT = r"(?:can(?:no|['’])t|can not|won['’]t|am (?:not able|unable) to|['’]m (?:not able|unable) to)"
_REFUSES = re.compile(
    r"(?:(?:I['’]m|I am)\s+(?:\w+\s+)?sorry|sorry|(?:my )?apologies|I apologi[sz]e|unfortunately)\b[^.!?\n]{0,40}?"
    rf"\bI\s*{_CANNOT}"
    rf"|I\s*{_CANNOT}\s+(?:help|assist|comply|provide|summari[sz]e|fulfil|continue|do (?:that|this)|process)"
    r"|as an AI\b"
    r"|(?:很|非常|十分|实在)?(?:抱歉|对不起|不好意思)[^。！？\n]{0,10}?(?:无法|不能|没法|没办法|没有办法)"
    r"|我(?:无法|不能|没法)(?:帮|协助|提供|回答|完成|总结|满足|处理|继续)"
    r"|作为(?:一个|一名|一款)?(?:AI|人工智能|语言模型|大模型)",
    re.IGNORECASE,
)
_CITED = re.compile(rf"{SOURCE_TAG.pattern}\s*$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """A summary that may stand for its source, as it is to be stored."""

    text: str
    tokens: int
    facts_total: int
    facts_kept: int
    cut: bool
    """Whether sentences at the end were cut off to make it fit."""
    struck: tuple[StruckSentence, ...] = ()
    """What a model said that its sources do not; it is not in the text."""
    kind: Literal["accepted"] = "accepted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """A summary that may not, and why."""

    reason: RejectionReason
    detail: str
    kind: Literal["rejected"] = "rejected"


def check_summary(
    summary_text: str,
    sources: Sequence[Source],
    facts: Sequence[Fact],
    *,
    count_tokens: TokenCounter,
    source_tokens: int,
    max_tokens: int,
    by_model: bool = False,
    orders: Sequence[SummaryLine] | None = None,
) -> Accepted | Rejected:
    """Judge a summary of these sources, which hold these facts, and complete a model's with those it dropped.

    `orders` are the user's standing requests, where the sources are no messages that they could be read off.
    """
    prose = strip_mentions(readable(summary_text).strip())
    tokens = count_tokens(prose)
    refused = _rejection(prose, sources, tokens, source_tokens, max_tokens)
    if refused is None and by_model:
        refused = _model_rejection(prose, tokens, min(source_tokens, max_tokens))
    if refused is not None:
        return refused
    struck: tuple[StruckSentence, ...] = ()
    if by_model:
        checked = check_claims(prose, sources)
        prose, struck = checked.text, checked.struck
        if len(struck) > _UNTRUE_SHARE * checked.sentences:
            return Rejected(reason="untrue", detail=f"of {checked.sentences} sentences {len(struck)}; {struck[0]}")
    most_tokens = min(max_tokens, source_tokens - 1)
    ranked = rank_facts(facts, sources)
    if by_model:
        said = [(source.seq, source.text) for source in sources if orders is None and is_user(source)]
        orders = list(standing_lines(sources)) if orders is None else orders
        prose = without_others_orders(prose, [*said, *((line.last_seq, line.text) for line in orders)])
        prose = with_standing(prose, orders, said_later(sources), most_tokens, count_tokens)
        list_tokens = int(FACTS_SHARE * max_tokens)
        text = _with_missing_facts(prose, ranked, sources, most_tokens, list_tokens, count_tokens)
    else:
        text = cut_at_sentence(readable(summary_text).strip(), most_tokens, count_tokens)
    if not text:
        return Rejected(reason="not-smaller", detail=f"nothing of it fits in {most_tokens} tokens")
    return Accepted(
        text=text,
        tokens=count_tokens(text),
        facts_total=len(ranked),
        facts_kept=len(split_kept(text, ranked)[0]),
        cut=not text.startswith(prose),
        struck=struck,
    )


def _rejection(
    prose: str, sources: Sequence[Source], tokens: int, source_tokens: int, max_tokens: int
) -> Rejected | None:
    if not any(char.isalnum() for char in SOURCE_TAG.sub("", prose)):
        return Rejected(reason="empty", detail="no words")
    if has_tool_syntax(prose) or _is_json(prose):
        return Rejected(reason="tool-syntax", detail="holds a tool call or is bare JSON")
    if has_role_marks(prose):
        return Rejected(reason="role-marks", detail="opens a turn or uses a chat template's marks")
    if is_dialogue(prose):
        return Rejected(reason="dialogue", detail="goes on with the conversation")
    if tokens > _TOO_LONG * max_tokens:
        return Rejected(reason="too-long", detail=f"{tokens} tokens, limit {max_tokens}")
    if _is_echo(prose, sources):
        return Rejected(reason="echo", detail="repeats a stretch of its source")
    if tokens >= source_tokens:
        return Rejected(reason="not-smaller", detail=f"{tokens} tokens, source {source_tokens}")
    return None


def _model_rejection(prose: str, tokens: int, wanted_tokens: int) -> Rejected | None:
    """What the extractive summariser would do better, from a model that did not do what it was asked for."""
    if tokens < _REFUSAL_TOKENS and _REFUSES.match(prose):
        return Rejected(reason="too-short", detail="the model refuses")
    if tokens < _TOO_SHORT * wanted_tokens:
        return Rejected(reason="too-short", detail=f"{tokens} tokens, where {wanted_tokens} could be used")
    return None


def _with_missing_facts(
    prose: str,
    ranked: Sequence[Fact],
    sources: Sequence[Source],
    most_tokens: int,
    list_tokens: int,
    count_tokens: TokenCounter,
) -> str:
    """The prose with the list of what it dropped; the prose is cut to make room for the list, not the other way."""
    language = language_of_summary(prose)
    said, later = texts_by_seq(sources), said_later(sources)
    by_users = {source.seq: source.text for source in sources if is_user(source)}

    def marked(lines: Sequence[SummaryLine]) -> list[SummaryLine]:
        return mark_superseded(lines, later, language, by_users)

    missing = split_kept(prose, ranked)[1]
    wanted = mention_list(missing, said, language, min(list_tokens, most_tokens // 2), count_tokens, marked)
    text = cut_at_sentence(prose, most_tokens - (count_tokens(wanted) + 1 if wanted else 0), count_tokens)
    # The cut may have dropped better facts than were listed.
    room_tokens = min(list_tokens, most_tokens - count_tokens(text) - 1)
    listed = mention_list(split_kept(text, ranked)[1], said, language, room_tokens, count_tokens, marked)
    return join_within(text, listed, most_tokens, count_tokens)


def _is_json(text: str) -> bool:
    if text[:1] not in ("{", "["):
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _is_echo(prose: str, sources: Sequence[Source]) -> bool:
    """A line that names its source is a quotation; only what names none can be an echo."""
    said = _letters("\n".join(line for line in prose.splitlines() if not _CITED.search(line)))
    if len(said) < max(_ECHO_CHARS, _ECHO_SHARE * len(_letters(prose))):
        return False
    for transcript in (
        _letters(" ".join(source.text for source in sources)),
        _letters(" ".join(f"{speaker(source)} {source.text}" for source in sources)),
    ):
        if _longest_stretch(said, transcript) >= max(_ECHO_CHARS, _ECHO_SHARE * len(said)):
            return True
    return False


def _longest_stretch(said: str, transcript: str) -> int:
    """The length of the longest piece of `said`, from any step on, that stands unbroken in the transcript."""
    longest, at = 0, 0
    while at + _ECHO_STEP <= len(said):
        size = 0
        while at + size + _ECHO_STEP <= len(said) and said[at : at + size + _ECHO_STEP] in transcript:
            size += _ECHO_STEP
        while size and at + size < len(said) and said[at : at + size + 1] in transcript:
            size += 1
        longest = max(longest, size)
        at += max(size, _ECHO_STEP)
    return longest


def _letters(text: str) -> str:
    return "".join(char for char in text.casefold() if char.isalnum())
