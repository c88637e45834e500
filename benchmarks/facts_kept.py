"""What the extractive summary keeps: real conversations cut into stretches, each summarised to a token limit.

    python -m benchmarks facts_kept [--max-tokens 1000] [--out FILE.json] [--show N]

For each data set: tokens before and after; "kept", the share of the distinct facts found by our rules that the
summary still holds, and "user", the same for what users said; "tail", what the newest messages would hold in as many
tokens. Where a set comes with questions, two figures that our rules have no part in: "answers", the share of the
answers that stand word for word in their evidence and still do in the summary, beside the tail's; and "cited", the
share of evidence messages that a line names by seq, so that they can be opened. "up" is the share of the facts of
four summaries that the one condensed from them holds. Sets that are not there are named and skipped.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks import SHARED
from benchmarks.report import Row
from everthread.compaction.condense import condense, facts_of_summaries, sources_of_summaries
from everthread.compaction.extract import extract
from everthread.compaction.fact_ranking import facts_of_sources, rank_facts, split_kept
from everthread.compaction.gate import Rejected, check_summary
from everthread.compaction.sources import ChildSummary, Source, SourceCall
from everthread.compaction.summary_format import SummaryLine, parse_summary
from everthread.context.tokens import count_tokens
from everthread.text.normal_forms import normalise

DATA = SHARED / "data"
# About what a compaction takes: the window of 40 messages, less those kept, to the next user turn.
STRETCH_MESSAGES = 40
FAN_IN = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What someone may later want to know, and the messages that answer it."""

    answer: str
    evidence: frozenset[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Talk:
    """One conversation of a data set."""

    sources: list[Source]
    questions: list[Question] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class Tally:
    """The sums over a data set."""

    stretches: int = 0
    messages: int = 0
    tokens_before: int = 0
    tokens_after: int = 0
    facts_total: int = 0
    facts_kept: int = 0
    tail_facts_kept: int = 0
    user_facts_total: int = 0
    user_facts_kept: int = 0
    answers_total: int = 0
    answers_kept: int = 0
    tail_answers_kept: int = 0
    evidence_total: int = 0
    evidence_cited: int = 0
    condensed_facts_total: int = 0
    condensed_facts_kept: int = 0
    rejected: int = 0
    cpu_seconds: float = 0.0


def locomo(path: Path) -> Iterator[Talk]:
    """Two people, many sessions with a date each."""
    for talk in json.loads(path.read_text("utf-8")):
        sources: list[Source] = []
        seq_of: dict[str, int] = {}
        sessions = talk["conversation"]
        for number in range(1, len(sessions)):
            said_at = _locomo_date(sessions.get(f"session_{number}_date_time"))
            for turn in sessions.get(f"session_{number}", []):
                seq_of[turn["dia_id"]] = len(sources) + 1
                sources.append(
                    Source(seq=len(sources) + 1, role="user", name=turn["speaker"], text=turn["text"], said_at=said_at)
                )
        yield Talk(sources=sources, questions=list(_questions(talk["qa"], seq_of)))


def beam(path: Path) -> Iterator[Talk]:
    """One person and an assistant with long answers; answers to the questions are never the messages' own words."""
    for chat in sorted(path.glob("*/chat.json")):
        turns = [turn for batch in json.loads(chat.read_text("utf-8")) for pair in batch["turns"] for turn in pair]
        sources = [
            Source(seq=seq, role=turn["role"], text=turn["content"].split("->->")[0])
            for seq, turn in enumerate(turns, 1)
        ]
        seq_of = {turn["id"]: seq for seq, turn in enumerate(turns, 1)}
        probing = json.loads((chat.parent / "probing_questions.json").read_text("utf-8"))
        asked = [list(_numbers(one.get("source_chat_ids"))) for kind in probing.values() for one in kind]
        evidence = [frozenset(seq_of[one] for one in ids if one in seq_of) for ids in asked]
        yield Talk(sources=sources, questions=[Question(answer="", evidence=seqs) for seqs in evidence if seqs])


def _numbers(nested: object) -> Iterator[int]:
    if isinstance(nested, int):
        yield nested
    elif isinstance(nested, list | dict):
        for inner in nested.values() if isinstance(nested, dict) else nested:
            yield from _numbers(inner)


def recall_set(path: Path) -> Iterator[Talk]:
    """Our own sets: Chinese talk, and an airline desk with tool calls."""
    for talk in json.loads(path.read_text("utf-8")):
        sources = [_recall_source(seq, message) for seq, message in enumerate(talk["messages"], 1)]
        seq_of = {message["id"]: seq for seq, message in enumerate(talk["messages"], 1)}
        yield Talk(sources=sources, questions=list(_questions(talk["questions"], seq_of)))


def swe_agent(path: Path) -> Iterator[Talk]:
    """Recorded runs of a programming agent; what its shell answers stands as user messages."""
    for run in sorted(path.glob("*.traj")):
        history = json.loads(run.read_text("utf-8"))["history"]
        yield Talk(
            sources=[
                Source(
                    seq=seq,
                    role="tool" if turn.get("message_type") == "observation" and seq > 2 else turn["role"],
                    is_tool_result=turn.get("message_type") == "observation" and seq > 2,
                    text=str(turn["content"]),
                )
                for seq, turn in enumerate(history, 1)
            ]
        )


SETS: dict[str, tuple[str, Callable[[Path], Iterator[Talk]]]] = {
    "locomo (people, en)": ("locomo/dev.json", locomo),
    "beam (chat, en)": ("beam", beam),
    "recall (chat, zh)": ("recall/zh-dev.json", recall_set),
    "recall (tools, en)": ("recall/tools-dev.json", recall_set),
    "swe-agent (coding, en)": ("trajectories/swe-agent", swe_agent),
}


def _locomo_date(text: str | None) -> datetime | None:
    return datetime.strptime(text, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC) if text else None


def _recall_source(seq: int, message: dict[str, Any]) -> Source:
    said_at = datetime.fromisoformat(message["time"]).replace(tzinfo=UTC)
    name, text = message.get("name"), message["text"]
    if name and message.get("kind") == "tool_call":
        call = SourceCall(name=name, arguments=text.removeprefix(name).strip())
        return Source(seq=seq, role=message["role"], said_at=said_at, calls=(call,))
    result = message.get("kind") == "tool_result"
    return Source(seq=seq, role=message["role"], text=text, said_at=said_at, tool_name=name, is_tool_result=result)


def _questions(asked: Sequence[dict[str, Any]], seq_of: dict[str, int]) -> Iterator[Question]:
    for question in asked:
        evidence = frozenset(seq_of[one] for one in question.get("evidence", []) if one in seq_of)
        answers = question.get("answer_strings") or [str(question.get("answer", ""))]
        for answer in answers if evidence else ():
            yield Question(answer=answer, evidence=evidence)


def stretches(sources: Sequence[Source]) -> Iterator[list[Source]]:
    """The conversation as compactions would take it: about 40 messages, each stretch from a user turn on."""
    stretch: list[Source] = []
    for source in sources:
        if len(stretch) >= STRETCH_MESSAGES and source.role == "user":
            yield stretch
            stretch = []
        stretch.append(source)
    if len(stretch) > STRETCH_MESSAGES // 2:
        yield stretch


def tokens_of(sources: Sequence[Source]) -> int:
    """What the stretch itself would cost a request."""
    return sum(count_tokens(source.text) + sum(count_tokens(c.arguments) for c in source.calls) for source in sources)


def measure(talks: Iterator[Talk], max_tokens: int, show: int) -> Tally:
    """Summarise every stretch of a data set and add up what was kept."""
    tally = Tally()
    for talk in talks:
        leaves: list[ChildSummary] = []
        for stretch in stretches(talk.sources):
            summary = _summarised(stretch, max_tokens, tally)
            tail = _tail(stretch, count_tokens(summary))
            _count_facts(stretch, summary, tail, tally)
            _count_answers(stretch, summary, tail, talk.questions, tally)
            leaves.append(ChildSummary(first_seq=stretch[0].seq, last_seq=stretch[-1].seq, text=summary))
            if tally.stretches <= show:
                print(f"--- {len(stretch)} messages from #{stretch[0].seq}\n{summary}\n")
        _count_condensed(leaves, max_tokens, tally)
    return tally


def _summarised(stretch: Sequence[Source], max_tokens: int, tally: Tally) -> str:
    before = tokens_of(stretch)
    began = time.process_time()
    facts = facts_of_sources(stretch)
    text = extract(stretch, max_tokens=max_tokens, count_tokens=count_tokens, facts=facts)
    verdict = check_summary(
        text, stretch, facts, count_tokens=count_tokens, source_tokens=before, max_tokens=max_tokens
    )
    tally.cpu_seconds += time.process_time() - began
    tally.stretches += 1
    tally.messages += len(stretch)
    tally.tokens_before += before
    if isinstance(verdict, Rejected):
        tally.rejected += 1
        return text
    tally.tokens_after += verdict.tokens
    return verdict.text


def _tail(stretch: Sequence[Source], tokens: int) -> str:
    """The newest messages in as many tokens: what cutting off the oldest would leave."""
    kept_texts: list[str] = []
    for source in reversed(stretch):
        text = " ".join([source.text, *(call.arguments for call in source.calls)])
        tokens -= count_tokens(text)
        if tokens < 0:
            break
        kept_texts.insert(0, text)
    return "\n".join(kept_texts)


def _count_facts(stretch: Sequence[Source], summary: str, tail: str, tally: Tally) -> None:
    ranked = rank_facts(facts_of_sources(stretch), stretch)
    tally.facts_total += len(ranked)
    tally.facts_kept += len(split_kept(summary, ranked)[0])
    tally.tail_facts_kept += len(split_kept(tail, ranked)[0])
    users = [source for source in stretch if source.role == "user"]
    said = rank_facts(facts_of_sources(users), users)
    tally.user_facts_total += len(said)
    tally.user_facts_kept += len(split_kept(summary, said)[0])


def _count_answers(
    stretch: Sequence[Source], summary: str, tail: str, questions: Sequence[Question], tally: Tally
) -> None:
    texts = {s.seq: normalise(" ".join([s.text, *(c.arguments for c in s.calls)])) for s in stretch}
    lines = [line for line in parse_summary(summary) if isinstance(line, SummaryLine)]
    cited = {seq for line in lines for seq in range(line.first_seq, line.last_seq + 1)}
    plain, plain_tail = normalise(summary), normalise(tail)
    for question in questions:
        evidence = question.evidence & texts.keys()
        tally.evidence_total += len(evidence)
        tally.evidence_cited += len(evidence & cited)
        answer = normalise(question.answer)
        if answer and any(answer in texts[seq] for seq in evidence):
            tally.answers_total += 1
            tally.answers_kept += answer in plain
            tally.tail_answers_kept += answer in plain_tail


def _count_condensed(leaves: Sequence[ChildSummary], max_tokens: int, tally: Tally) -> None:
    for at in range(0, len(leaves) - FAN_IN + 1, FAN_IN):
        group = leaves[at : at + FAN_IN]
        facts = rank_facts(facts_of_summaries(group), sources_of_summaries(group))
        tally.condensed_facts_total += len(facts)
        text = condense(group, max_tokens=max_tokens, count_tokens=count_tokens)
        tally.condensed_facts_kept += len(split_kept(text, facts)[0])


def _percent(part: int, whole: int) -> float | None:
    return 100 * part / whole if whole else None


def _row(name: str, tally: Tally) -> Row:
    return {
        "system": name,
        "spans": tally.stretches,
        "before": tally.tokens_before,
        "after": tally.tokens_after,
        "facts": tally.facts_total,
        "kept %": _percent(tally.facts_kept, tally.facts_total),
        "tail %": _percent(tally.tail_facts_kept, tally.facts_total),
        "user %": _percent(tally.user_facts_kept, tally.user_facts_total),
        "answers %": _percent(tally.answers_kept, tally.answers_total),
        "tail's %": _percent(tally.tail_answers_kept, tally.answers_total),
        "cited %": _percent(tally.evidence_cited, tally.evidence_total),
        "up %": _percent(tally.condensed_facts_kept, tally.condensed_facts_total),
        "CPU ms": 1000 * tally.cpu_seconds / max(1, tally.stretches),
        "refused": tally.rejected,
    }


def add_options(parser: argparse.ArgumentParser) -> None:
    """What can be chosen."""
    parser.add_argument("--max-tokens", type=int, default=1000, help="facts_kept: of a summary")
    parser.add_argument("--show", type=int, default=0, help="facts_kept: print the first N summaries of each set")


def run(options: argparse.Namespace) -> Sequence[Row]:
    """Measure every set that is there."""
    rows: list[Row] = []
    for name, (place, load) in SETS.items():
        if (DATA / place).exists():
            rows.append(_row(name, measure(load(DATA / place), options.max_tokens, options.show)))
        else:
            print(f"({name} is left out: {place} is not there)")
    return rows
