"""How a summary tells what people took back or changed: which lines say so, and what the gate strikes of it.

    python -m benchmarks changed_minds [--show-misses]

`changed_minds/` holds short conversations in English and Chinese in which an order, a plan or a figure is cancelled or
corrected, or nothing is (`.` marks a message that still holds, `~ 1 5` says that message 5 replaces message 1). With
each come true sentences and lies, most of them an opposite or a name that nobody said, at the start of the sentence.
They were written before the rules were changed and halved by the hash of each; `open.txt` was looked at, `sealed.txt`
is sealed by the hash in `sealed.sha256`: its lines were not looked at, its figures were read after each change. In the
near-misses of `near_open.txt` and `near_sealed.txt`, "mixed" among them, two things have the same day, amount or
number, and one is changed; the second file was opened once, at the end.

- struck, caught: the true sentences and the lies of a model's summary that the gate strikes
- marked: of the messages that were replaced, those whose line says by which one, or that are not told at all, where the
  later message is told too. Each is tried in one extractive summary, in two that follow each other, and in a
  model's, which is completed with what it left out
- wrongly marked: messages that still hold and whose line says that they do not
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.report import Row
from benchmarks.summary_truth import Count, passed
from everthread.compaction.claims import check_claims
from everthread.compaction.condense import summaries_within
from everthread.compaction.extract import extract
from everthread.compaction.sources import Source
from everthread.compaction.summary_format import SummaryLine, parse_summary
from everthread.context.tokens import count_tokens
from everthread.core.compactions import Compaction
from everthread.core.ids import new_id

FOLDER = Path(__file__).parent / "changed_minds"
_ROLES = {"u": "user", "a": "assistant"}
_PLENTY_TOKENS = 1_000
_SUMMARY_TOKENS = 500
_MARK = re.compile(r"[(（](?:replaced|changed|taken back|已被|已由)?[^)）]{0,20}\[#(\d+)\]")
_ASIDES = {
    "en": (
        "Shelf {0} in the cellar holds {1} jars of jam.",
        "The bus to the lake leaves from stop {0} every {1} minutes.",
    ),
    "zh": ("地下室第{0}个架子上有{1}罐果酱。", "去湖边的公交从第{0}站出发，每{1}分钟一班。"),
    "mixed": ("cellar 里第{0}个架子上有{1}罐 jam。", "去湖边的 bus 从第{0}站出发，每{1}分钟一班。"),
}
_ASIDE_PAIRS = 8


@dataclass(kw_only=True)
class Talk:
    """A conversation, what is true and false of it, and which message replaces which."""

    language: str
    name: str
    sources: list[Source] = field(default_factory=list)
    true: list[str] = field(default_factory=list)
    false: list[str] = field(default_factory=list)
    replaced: list[tuple[int, int]] = field(default_factory=list)
    holds: list[int] = field(default_factory=list)


def load(half: str, language: str) -> list[Talk]:
    """The conversations of a half in a language."""
    talks: list[Talk] = []
    for line in (FOLDER / f"{half}.txt").read_text("utf-8").splitlines():
        mark, _, rest = line.partition(" ")
        if mark == "==":
            written_in, _, name = rest.partition(" ")
            talks.append(Talk(language=written_in, name=name))
        elif mark in ("u:", "a:"):
            sources = talks[-1].sources
            sources.append(Source(seq=len(sources) + 1, role=_ROLES[mark[0]], text=rest))
        elif mark == "~":
            earlier, later = map(int, rest.split())
            talks[-1].replaced.append((earlier, later))
        elif mark == ".":
            talks[-1].holds.append(int(rest))
        else:
            (talks[-1].true if mark == "=" else talks[-1].false).append(rest)
    return [talk for talk in talks if talk.language == language]


def measure(half: str, language: str, *, show: bool = False) -> Row:
    """One row: what is struck, caught and marked."""
    counts = {name: Count() for name in ("true", "lies", "replaced", "hold")}
    for talk in load(half, language):
        for what, is_noted, about in _judgements(talk):
            counts[what].note(hit=is_noted)
            if show and is_noted != (what in ("lies", "replaced")):
                print(f"  {talk.name}: {what}: {about}")
    return {
        "system": f"{half}, {language}",
        "true": counts["true"].total,
        "struck %": counts["true"].percent,
        "lies": counts["lies"].total,
        "caught %": counts["lies"].percent,
        "replaced": counts["replaced"].total,
        "marked %": counts["replaced"].percent,
        "hold": counts["hold"].total,
        "wrongly marked %": counts["hold"].percent,
    }


def _judgements(talk: Talk) -> Iterator[tuple[str, bool, str]]:
    """What is counted, whether it is so, and what it is about."""
    for what, sentences in (("true", talk.true), ("lies", talk.false)):
        for sentence in sentences:
            told = "\n".join(f"- {one}" for one in dict.fromkeys([*talk.true, sentence]))
            struck = check_claims(told, talk.sources).struck
            found = [str(one) for one in struck if _packed(one.text) == _packed(sentence)]
            yield what, bool(found), f"{sentence} {found}"
    for way, lines in _ways(talk):
        for earlier, later in talk.replaced:
            about = f"{way}, by {later}: {_about(lines, earlier, later)}"
            yield "replaced", _is_marked(lines, earlier, later), about
        for seq in talk.holds:
            yield "hold", any(_MARK.search(line.text) for line in _of(lines, seq)), f"{way}: {_about(lines, seq)}"


def _ways(talk: Talk) -> Iterator[tuple[str, Sequence[SummaryLine]]]:
    yield "one", _in_one(talk)
    yield "two", _in_two(talk)
    if talk.true:
        yield "model", _in_a_models(talk)


def _packed(sentence: str) -> str:
    return sentence.replace(" ", "")


def _of(lines: Sequence[SummaryLine], seq: int) -> list[SummaryLine]:
    return [line for line in lines if line.first_seq <= seq <= line.last_seq]


def _about(lines: Sequence[SummaryLine], *seqs: int) -> list[str]:
    return [f"[#{line.first_seq}] {line.text}" for seq in seqs for line in _of(lines, seq)]


def _is_marked(lines: Sequence[SummaryLine], earlier: int, later: int) -> bool:
    marks = [_MARK.search(line.text) for line in _of(lines, earlier) if line.last_seq < later]
    return bool(_of(lines, later)) and all(mark is not None and int(mark[1]) == later for mark in marks)


def _in_a_models(talk: Talk) -> list[SummaryLine]:
    """The true sentences as a model's summary, with what the gate adds to it."""
    summary = "\n".join(["## Facts" if talk.language == "en" else "## 事实", *(f"- {one}" for one in talk.true)])
    return list(_lines(passed(summary, talk.sources, _PLENTY_TOKENS)))


def _with_asides(sources: Sequence[Source], language: str) -> list[Source]:
    """The messages with others after them, so that a summary may be long enough to tell all of them."""
    user, assistant = _ASIDES[language]
    after = sources[-1].seq
    asides = [
        Source(
            seq=after + at + 1,
            role="user" if at % 2 == 0 else "assistant",
            text=(user, assistant)[at % 2].format(at + 30, at * 7 + 61),
        )
        for at in range(2 * _ASIDE_PAIRS)
    ]
    return [*sources, *asides]


def _lines(text: str) -> Iterator[SummaryLine]:
    return (line for line in parse_summary(text) if isinstance(line, SummaryLine))


def _in_one(talk: Talk) -> list[SummaryLine]:
    whole = _with_asides(talk.sources, talk.language)
    return list(_lines(extract(whole, max_tokens=_SUMMARY_TOKENS, count_tokens=count_tokens)))


def _in_two(talk: Talk) -> list[SummaryLine]:
    """As a request shows two summaries: the first ends before the message that replaces something."""
    cut = max((later for _, later in talk.replaced), default=talk.sources[-1].seq)
    first = _with_asides([one for one in talk.sources if one.seq < cut], talk.language)
    seqs_added = len(first)
    rest = [one for one in talk.sources if one.seq >= cut]
    moved = [Source(seq=seqs_added + at + 1, role=one.role, text=one.text) for at, one in enumerate(rest)]
    second = _with_asides(moved, talk.language)
    texts = [extract(part, max_tokens=_SUMMARY_TOKENS, count_tokens=count_tokens) for part in (first, second)]
    shown = summaries_within(
        tuple(_compaction(part, text) for part, text in zip((first, second), texts, strict=True)), None
    )
    # Back to the numbers of the conversation: what came after the cut was moved behind the asides.
    shift = seqs_added - cut + 1
    found: list[SummaryLine] = []
    for line in (line for one in shown for line in _lines(one.text)):
        is_later = line.first_seq > seqs_added
        if cut <= line.first_seq <= seqs_added:
            continue
        text = _MARK.sub(lambda m: m[0].replace(m[1], str(int(m[1]) - shift)), line.text)
        moved_by = shift if is_later else 0
        found.append(
            SummaryLine(
                section=line.section, text=text, first_seq=line.first_seq - moved_by, last_seq=line.last_seq - moved_by
            )
        )
    return found


def _compaction(part: Sequence[Source], text: str) -> Compaction:
    return Compaction(
        id=new_id(),
        level=1,
        first_seq=part[0].seq,
        last_seq=part[-1].seq,
        after_seq=part[0].seq - 1,
        branch=0,
        span_hash="",
        children=(),
        summary=text,
        strategy="extract:chat",
        model=None,
        trigger="messages",
        original_count=len(part),
        new_count=1,
        tokens_before=_PLENTY_TOKENS,
        tokens_after=count_tokens(text),
        facts_total=0,
        facts_kept=0,
        seconds=0.0,
        created_at=datetime(2024, 5, 3, tzinfo=UTC),
    )


def run(options: argparse.Namespace) -> Sequence[Row]:
    """Both halves of both sets, in all their languages."""
    return [
        measure(half, language, show=options.show_misses and half.endswith("open"))
        for kind, languages in (("", ("en", "zh")), ("near_", ("en", "zh", "mixed")))
        for half in (f"{kind}open", f"{kind}sealed")
        for language in languages
    ]
