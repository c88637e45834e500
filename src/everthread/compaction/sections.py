"""The written form of a summary: lines under heads, each line with the place where its source can be opened.

    ## Decisions
    - user: let's ship on 3 May, not before [#12]

Summaries are written here and read back here: condensing several into one works on lines, not on text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from everthread.compaction.facts import Fact
from everthread.text.foreign_syntax import disarmed
from everthread.text.language import Language, readable

Section = Literal["goal", "decisions", "facts", "open", "tools", "mentioned"]

HEADS: dict[Language, dict[Section, str]] = {
    "en": {
        "goal": "Goal",
        "decisions": "Decisions",
        "facts": "Facts",
        "open": "Open points",
        "tools": "Tools used",
        "mentioned": "Also mentioned",
    },
    "zh": {
        "goal": "目标",
        "decisions": "决定",
        "facts": "事实",
        "open": "未决事项",
        "tools": "用过的工具",
        "mentioned": "另外提到",
    },
}
ORDER: tuple[Section, ...] = ("goal", "decisions", "facts", "open", "tools", "mentioned")

# The part of a summary that the closing list of bare facts may take; the rest is sentences.
FACTS_SHARE = 0.3

_SECTION_OF_HEAD = {head: section for heads in HEADS.values() for section, head in heads.items()}
_HEAD_LINE = re.compile(r"^#{1,6}\s*(.+?)\s*[:：]?$")
_TAGGED = re.compile(r"^(?:[-*]\s+)?(.*?)\s*\[#(\d+)(?:(?:–|-|, )#(\d+))?(?:, (\d{4}-\d\d-\d\d))?\]$")
_BLANKS = re.compile(r"\s+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of a summary: what was said or done, and between which messages."""

    section: Section
    text: str
    first_seq: int
    last_seq: int
    day: str | None = None
    """The day it was said, given when the words themselves ("yesterday") need it."""


def tag(line: Line) -> str:
    """`[#12]`, `[#5–#9]`, `[#12, 2024-05-03]`."""
    last = f"–#{line.last_seq}" if line.last_seq != line.first_seq else ""
    return f"[#{line.first_seq}{last}{f', {line.day}' if line.day else ''}]"


def written(line: Line) -> str:
    """The line as it stands in the summary."""
    return f"- {line.text} {tag(line)}"


def render(lines: Sequence[Line], language: Language) -> str:
    """The lines under their heads, each section in the order of the conversation."""
    blocks: list[str] = []
    for section in ORDER:
        chosen = [line for line in lines if line.section == section]
        if chosen:
            chosen.sort(key=lambda line: (line.first_seq, line.last_seq))
            blocks.append("\n".join([f"## {HEADS[language][section]}", *map(written, chosen)]))
    return "\n".join(blocks)


def parse(text: str) -> Iterator[Line | str]:
    """A summary read back: its lines, and as plain text whatever was not written here."""
    section: Section = "facts"
    for raw in text.splitlines():
        stripped = raw.strip()
        head = _HEAD_LINE.match(stripped)
        if head and head[1] in _SECTION_OF_HEAD:
            section = _SECTION_OF_HEAD[head[1]]
        elif tagged := _TAGGED.match(stripped):
            first = int(tagged[2])
            yield Line(
                section=section, text=tagged[1], first_seq=first, last_seq=int(tagged[3] or first), day=tagged[4]
            )
        elif stripped and not head:
            yield stripped


def without_mentions(text: str) -> str:
    """The summary without its closing list of facts, which is made anew whenever the rest changes."""
    heads = "|".join(re.escape(heads["mentioned"]) for heads in HEADS.values())
    return re.split(rf"(?m)^## (?:{heads})$", text)[0].rstrip()


def one_line(text: str) -> str:
    """Text as it may stand in a line: on one line, printable, with no syntax that a model would obey."""
    return disarmed(_BLANKS.sub(" ", readable(text)).strip())


def mention_lines(facts: Iterable[Fact]) -> list[Line]:
    """The bare facts, those of one message on one line, in the order in which they were said."""
    by_seq: dict[int, list[str]] = {}
    for fact in sorted(facts, key=lambda fact: (fact.seq, fact.start)):
        by_seq.setdefault(fact.seq, []).append(one_line(fact.text))
    return [
        Line(section="mentioned", text="; ".join(said), first_seq=seq, last_seq=seq) for seq, said in by_seq.items()
    ]
