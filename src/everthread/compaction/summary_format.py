"""The written form of a summary: lines under heads, each line with the place where its source can be opened.

    ## Decisions
    - user: let's ship on 3 May, not before [#12]

Summaries are written here and read back here: condensing several into one works on lines, not on text. They are made to
fit a number of tokens by the caller's own counter, whatever that counter does.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from everthread.compaction.sources import TokenCounter
from everthread.context.quotes import STANDING_HEADS
from everthread.text.control_syntax import neutralise
from everthread.text.facts import Fact
from everthread.text.language import Language, language_of_text, readable
from everthread.text.sentences import split_sentences

Section = Literal["goal", "standing", "decisions", "facts", "open", "tools", "mentioned"]

SECTION_TITLES: dict[Language, dict[Section, str]] = {
    "en": {
        "goal": "Goal",
        "standing": STANDING_HEADS["en"],
        "decisions": "Decisions",
        "facts": "Facts",
        "open": "Open points",
        "tools": "Tools used",
        "mentioned": "Also mentioned",
    },
    "zh": {
        "goal": "目标",
        "standing": STANDING_HEADS["zh"],
        "decisions": "决定",
        "facts": "事实",
        "open": "未决事项",
        "tools": "用过的工具",
        "mentioned": "另外提到",
    },
}
SECTION_ORDER: tuple[Section, ...] = ("goal", "standing", "decisions", "facts", "open", "tools", "mentioned")

# The part that the closing list of facts may take of a summary that a model wrote, and of one made of lines.
FACTS_SHARE = 0.3
LIST_SHARE = 0.2

_FORMER_HEADS: dict[str, Section] = {"一直要记住": "standing"}
_SECTION_OF_HEAD = {head: section for heads in SECTION_TITLES.values() for section, head in heads.items()}
_SECTION_OF_HEAD |= _FORMER_HEADS
_HEAD_MARKS = re.compile(r"#{1,6}")
_BULLET = re.compile(r"[-*]\s+")
_TAG = re.compile(r"\[#(\d+)(?:(?:–|-|, )#(\d+))?(?:, (\d{4}-\d\d-\d\d))?\]")
_BLANKS = re.compile(r"\s+")


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryLine:
    """One line of a summary: what was said or done, and between which messages."""

    section: Section
    text: str
    first_seq: int
    last_seq: int
    day: str | None = None
    """The day it was said, given when the words themselves ("yesterday") need it."""


def source_tag(line: SummaryLine) -> str:
    """`[#12]`, `[#5–#9]`, `[#12, 2024-05-03]`."""
    last = f"–#{line.last_seq}" if line.last_seq != line.first_seq else ""
    return f"[#{line.first_seq}{last}{f', {line.day}' if line.day else ''}]"


def format_line(line: SummaryLine) -> str:
    """The line as it stands in the summary."""
    return f"- {line.text} {source_tag(line)}"


def format_summary(lines: Sequence[SummaryLine], language: Language) -> str:
    """The lines under their heads, each section in the order of the conversation."""
    blocks: list[str] = []
    for section in SECTION_ORDER:
        chosen = [line for line in lines if line.section == section]
        if chosen:
            chosen.sort(key=lambda line: (line.first_seq, line.last_seq))
            blocks.append("\n".join([f"## {SECTION_TITLES[language][section]}", *map(format_line, chosen)]))
    return "\n".join(blocks)


def parse_summary(text: str) -> Iterator[SummaryLine | str]:
    """A summary read back: its lines, and as plain text whatever was not written here."""
    section: Section = "facts"
    for raw in text.splitlines():
        stripped = raw.strip()
        head = _head_of(stripped)
        tag_at = stripped.rfind("[#")
        if head in _SECTION_OF_HEAD:
            section = _SECTION_OF_HEAD[head]
        elif tag_at >= 0 and (tag := _TAG.fullmatch(stripped, tag_at)):
            bullet = _BULLET.match(stripped, 0, tag_at)
            said = stripped[bullet.end() if bullet else 0 : tag_at].rstrip()
            first = int(tag[1])
            yield SummaryLine(section=section, text=said, first_seq=first, last_seq=int(tag[2] or first), day=tag[3])
        elif stripped and not head:
            yield stripped


def section_of_head(line: str) -> Section | Literal["other"] | None:
    """The section that a line opens, however a model writes its head; None where it is no head."""
    stripped = line.strip()
    bare = stripped.strip("#*_ \t:：")
    if bare in _SECTION_OF_HEAD and not _BULLET.match(stripped):
        return _SECTION_OF_HEAD[bare]
    return "other" if _head_of(stripped) else None


def cited_seqs(text: str) -> list[tuple[int, int]]:
    """The first and the last seq of each mark of a source in a text."""
    return [(int(tag[1]), int(tag[2] or tag[1])) for tag in _TAG.finditer(text)]


def _head_of(line: str) -> str:
    """What a heading says, without its marks and its colon; empty where a line is none."""
    marks = _HEAD_MARKS.match(line)
    if marks is None:
        return ""
    said = line[marks.end() :].strip()
    return said[:-1].rstrip() if said[1:].endswith((":", "：")) else said


def language_of_summary(text: str) -> Language:
    """The language of its heads; of its words where it has none."""
    heads = {_head_of(line.strip()) for line in text.splitlines()}
    written = [language for language, titles in SECTION_TITLES.items() if heads & set(titles.values())]
    return written[0] if len(written) == 1 else language_of_text(text)


def strip_mentions(text: str) -> str:
    """The summary without its closing list of facts, which is made anew whenever the rest changes."""
    heads = "|".join(re.escape(heads["mentioned"]) for heads in SECTION_TITLES.values())
    return re.split(rf"(?m)^## (?:{heads})$", text)[0].rstrip()


def to_one_line(text: str) -> str:
    """Text as it may stand in a line: on one line, printable, with no syntax that a model would obey."""
    return neutralise(_BLANKS.sub(" ", readable(text)).strip())


def mention_lines(facts: Iterable[Fact], said: Mapping[int, str]) -> list[SummaryLine]:
    """The facts with the words around them, those of one message on one line: a bare date tells nothing."""
    by_seq: dict[int, list[str]] = {}
    bare: Counter[int] = Counter()
    for fact in sorted(facts, key=lambda fact: (fact.seq, fact.start)):
        told = by_seq.setdefault(fact.seq, [])
        if any(fact.text in one for one in told):
            continue
        phrase = _phrase_around(fact.text, said.get(fact.seq, ""))
        if fact.kind in _AMOUNTS and not _HAS_WORD.search(phrase):
            continue
        is_bare = len(phrase) < len(fact.text) + _OWN_CHARS
        bare[fact.seq] += is_bare
        if not is_bare or bare[fact.seq] <= _BARE_OF_MESSAGE:
            told.append(phrase)
    return [
        SummaryLine(section="mentioned", text="; ".join(told), first_seq=seq, last_seq=seq)
        for seq, told in by_seq.items()
        if told
    ]


_PHRASE_END = re.compile(r"[\n，;；。！!？?|{}\[\]、→]|,(?!\d{3}(?!\d))|\.(?=\s)|[:：](?=\s(?!\S{0,3}\d))")
_HAS_WORD = re.compile(r"[^\W\d_]{3}|[\u3400-\u9fff]")
_AMOUNTS = ("number", "money", "date", "time")
"""Without a word beside it such a fact, as tables are full of, tells nothing."""
_OWN_CHARS = 12
_BARE_OF_MESSAGE = 4
"""Of a table, whose facts have few words around them, so many are enough to know what is in it."""
_PHRASE_CHARS: dict[Language, int] = {"en": 24, "zh": 10}
"""Of a phrase so much is told to either side of its fact."""


def _phrase_around(fact: str, text: str) -> str:
    """The phrase that a fact stands in, as far as it is near."""
    at = text.find(fact)
    if at < 0:
        return to_one_line(fact)
    end = at + len(fact)
    most = _PHRASE_CHARS[language_of_text(text[max(0, at - 40) : end + 40])]
    before, after = text[max(0, at - 2 * most) : at], text[end : end + 2 * most]
    opens = max((found.end() for found in _PHRASE_END.finditer(before)), default=0)
    ended = _PHRASE_END.search(after)
    before, after = before[opens:], after[: ended.start()] if ended else after
    opening = closing = ""
    before_room = 2 * most - min(len(after), most)  # what is not needed on one side of a fact is there for the other
    if len(before) > before_room:
        before, opening = before[-before_room:].partition(" ")[2] or before[-most // 2 :], "…"
    room = 2 * most - len(before)
    if len(after) > room:
        after, closing = after[:room].rpartition(" ")[0] or after[: room // 2], "…"
    phrase = f"{before}{fact}{after}".replace('":', ": ").replace('"', "").strip(" -*_`'.。:：")
    return to_one_line(f"{opening}{phrase}{closing}")


def longest_that_fits(size: int, fits: Callable[[int], bool]) -> int:
    """The largest n up to `size` for which `fits(n)`, found by doubling and halving; 0 if none does."""
    low, high = 0, 1
    while high <= size and fits(high):
        low, high = high, high * 2
    high = min(high, size + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def cut_to_fit(text: str, max_tokens: int, count_tokens: TokenCounter) -> str:
    """The text, or as much of its beginning as fits with an ellipsis."""
    if count_tokens(text) <= max_tokens:
        return text
    size = longest_that_fits(len(text), lambda size: count_tokens(f"{text[:size].rstrip()}…") <= max_tokens)
    return f"{text[:size].rstrip()}…" if size else ""


def cut_at_sentence(text: str, max_tokens: int, count_tokens: TokenCounter) -> str:
    """The text up to the last line that fits, of the line after it the sentences that do."""
    if count_tokens(text) <= max_tokens:
        return text
    lines = text.splitlines()
    whole = longest_that_fits(len(lines), lambda size: count_tokens("\n".join(lines[:size])) <= max_tokens)
    head = "\n".join(lines[:whole])
    sentences = [piece.text for piece in split_sentences(lines[whole])] if whole < len(lines) else []
    more = longest_that_fits(
        len(sentences), lambda size: count_tokens("\n".join([head, " ".join(sentences[:size])])) <= max_tokens
    )
    return "\n".join(part for part in (head, " ".join(sentences[:more])) if part).strip()


def join_within(prose: str, listed: str, max_tokens: int, count_tokens: TokenCounter) -> str:
    """The prose with its list, without it where both do not fit, empty where nothing does."""
    whole = "\n".join(part for part in (prose, listed) if part)
    return next((text for text in (whole, prose) if text and count_tokens(text) <= max_tokens), "")


def lines_that_fit(
    best_first: Sequence[SummaryLine], language: Language, max_tokens: int, count_tokens: TokenCounter
) -> list[SummaryLine]:
    """The lines whose summary fits, leaving out from the end."""
    fitting = longest_that_fits(
        len(best_first), lambda size: count_tokens(format_summary(best_first[:size], language)) <= max_tokens
    )
    return list(best_first[:fitting])


def mention_list(
    ranked: Sequence[Fact],
    said: Mapping[int, str],
    language: Language,
    max_tokens: int,
    count_tokens: TokenCounter,
    marked: Callable[[Sequence[SummaryLine]], list[SummaryLine]] = list,
) -> str:
    """A list of as many of the facts, best first, as fits, by what was `said` at each seq; empty when none does.

    `marked` says of the lines which of them no longer hold.
    """

    def listed(size: int, mark: Callable[[Sequence[SummaryLine]], Sequence[SummaryLine]] = marked) -> str:
        return format_summary(mark(mention_lines(ranked[:size], said)), language)

    def fits(size: int) -> bool:
        """Marks only make it longer, and finding them takes most of the time."""
        return count_tokens(listed(size, list)) <= max_tokens and count_tokens(listed(size)) <= max_tokens

    return listed(longest_that_fits(len(ranked), fits))
