"""How much of what a question needs is found again by `conv.recall`, beside plain BM25 over the same messages.

    python -m benchmarks.recall [--embedder minilm] [--sets open,locomo] [--out FILE.json] [--against FILE.json]

`open`, `sealed`, `later` and the halves of `lately` and `typed` are the project's own (`benchmarks/everyday`) and run
anywhere; all but the first only when they are named, because what is looked at often is tuned on. The others
are files in `data` of the folder that EVERTHREAD_SHARED names, else of `../shared`; those that are missing are skipped,
and it is said where to get them.

`frac by default`, of questions that ask for many things, is what `conv.recall(question)` gives: ten hits, 2,000 tokens.

One configuration for all kinds of conversation. Each is appended to a SQLite file, every message with its own time and
name; where an embedder is given, its vectors are made first. Differences, to BM25 and to an earlier run's file, are
over the same questions, with the interval that holds the mean difference in 95 of 100 draws.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Protocol

import everthread
from benchmarks import SHARED, report
from benchmarks.everyday import Talk
from benchmarks.recall_data import SETS
from benchmarks.recall_scores import FoundText, PlainBM25, Scores, paired_interval, score
from everthread import Conversation, Everthread
from everthread.recall.collecting import asks_for_several
from everthread.settings import Settings

SEALED = ("sealed", "later", "lately_open", "lately_sealed", "typed_open", "typed_sealed")
DEFAULT_SETS = tuple(name for name in SETS if name not in SEALED)
BY_KIND = ("open", *SEALED)
"""Sets whose kinds are conversations of their own: each kind is a row."""
BASELINE = "bm25"
_LIMIT = 200
"""Enough hits to fill the budget that is counted, with short messages too."""
_DEFAULT_LIMIT = 10
_SHOWN = ("all@10", "frac@10", "all@2000t", "frac@2000t", "mrr")
ByQuestion = dict[str, tuple[str, Scores]]
"""The kind and the scores of each question, by its id."""


class Retriever(Protocol):
    """Whatever can be asked."""

    def index(self, talk: Talk) -> None:
        """Take a whole conversation."""

    def search(self, question: str, limit: int, asked_at: datetime | None = None) -> Sequence[FoundText]:
        """What is found, best first."""

    def close(self) -> None:
        """Let go of what is held."""


class ThroughTheApi:
    """`conv.recall` over a SQLite file; with no more hits than by default, also within the tokens of the default."""

    def __init__(self, embedder: str | None, loop: asyncio.AbstractEventLoop) -> None:
        self._embedder = embedder
        self._loop = loop
        self._folder = tempfile.TemporaryDirectory(prefix="everthread-recall-")
        self._et: Everthread | None = None
        self._conv: Conversation | None = None

    def index(self, talk: Talk) -> None:
        """Append a whole conversation, and have its vectors made."""
        self._loop.run_until_complete(self._index(talk))

    async def _index(self, talk: Talk) -> None:
        url = f"sqlite:///{self._folder.name}/et.db"
        self._et = await everthread.open(
            url, settings=Settings.load(), embedder=self._embedder, worker=False
        ).__aenter__()
        self._conv = await self._et.conversations.create()
        messages = [one.payload for one in talk.messages]
        for at in range(0, len(messages), 100):
            await self._conv.append(messages[at : at + 100])
        await self._et.index_ready(self._conv)

    def search(self, question: str, limit: int, asked_at: datetime | None = None) -> list[FoundText]:
        """Ask as a program would."""
        assert self._conv is not None
        max_tokens = 1_000_000 if limit > _DEFAULT_LIMIT else 2_000
        recall = self._conv.recall(question, limit=limit, max_tokens=max_tokens, asked_at=asked_at)
        return [FoundText(hit.ids, hit.text) for hit in self._loop.run_until_complete(recall)]

    def close(self) -> None:
        """Let go of the file."""
        if self._et is not None:
            self._loop.run_until_complete(self._et.close())
        self._folder.cleanup()


def measure(make: Callable[[], Retriever], talks: Iterable[Talk]) -> ByQuestion:
    """Ask every question of its own conversation."""
    found: ByQuestion = {}
    for talk in talks:
        retriever = make()
        try:
            retriever.index(talk)
            for one in talk.questions:
                hits = retriever.search(one.text, _LIMIT, one.asked_at)
                scores = dict(score(hits, one.evidence))
                if asks_for_several(one.text):
                    hits = retriever.search(one.text, _DEFAULT_LIMIT, one.asked_at)
                    scores["frac by default"] = score(hits, one.evidence)["frac@2000t"]
                found[one.id] = one.category, scores
        finally:
            retriever.close()
    return found


def run(
    names: Sequence[str], embedder: str | None, earlier: Mapping[str, Mapping[str, Scores]]
) -> tuple[list[report.Row], dict[str, dict[str, Scores]]]:
    """A row for each set (or kind) and system; and every question's scores by system."""
    rows: list[report.Row] = []
    kept: dict[str, dict[str, Scores]] = {}
    loop = asyncio.new_event_loop()
    for name in names:
        talks = SETS[name].load()
        systems: dict[str, Callable[[], Retriever]] = {
            BASELINE: PlainBM25,
            "everthread, words": lambda: ThroughTheApi(None, loop),
            **({f"everthread, {embedder}": lambda: ThroughTheApi(embedder, loop)} if embedder else {}),
        }
        measured = {system: measure(make, talks) for system, make in systems.items()}
        for system, found in measured.items():
            kept.setdefault(system, {}).update({asked: scores for asked, (_, scores) in found.items()})
        for label, asked in _groups(name, measured[BASELINE]).items():
            for system, found in measured.items():
                scores = {one: found[one][1] for one in asked}
                base = None if system == BASELINE else {one: measured[BASELINE][one][1] for one in asked}
                rows.append(_row(label, system, scores, base, earlier.get(system, {})))
                print(rows[-1], file=sys.stderr, flush=True)
    loop.close()
    return rows, kept


def _groups(name: str, found: ByQuestion) -> dict[str, list[str]]:
    """The questions of each row; multi-hop ones have a row of their own beside their set's."""
    many = [asked for asked, (_, scores) in found.items() if "frac by default" in scores]
    asking = {f"{name} asking for many": many} if many else {}
    if name not in BY_KIND:
        hop = [asked for asked, (kind, _) in found.items() if kind == "multi-hop"]
        return {name: list(found), **({f"{name} multi-hop": hop} if hop else {}), **asking}
    kinds: dict[str, list[str]] = {}
    for asked, (kind, _) in found.items():
        kinds.setdefault(f"{name} {kind}", []).append(asked)
    return {**kinds, **asking, f"{name} all": list(found)}


def _row(
    label: str,
    system: str,
    scores: Mapping[str, Scores],
    base: Mapping[str, Scores] | None,
    before: Mapping[str, Scores],
) -> report.Row:
    mean = {name: sum(one[name] for one in scores.values()) / len(scores) for name in (*_SHOWN, "tokens@10")}
    if all("frac by default" in one for one in scores.values()):
        mean["frac by default"] = sum(one["frac by default"] for one in scores.values()) / len(scores)
    comparable = before if scores.keys() <= before.keys() else None
    compared = ("all@10", "frac@2000t", *(("frac by default",) if "frac by default" in mean else ()))
    return {
        "system": system,
        "set": label,
        "questions": len(scores),
        **{name: round(100 * mean[name], 1) for name in _SHOWN},
        "tokens@10": round(mean["tokens@10"]),
        **({"frac by default": round(100 * mean["frac by default"], 1)} if "frac by default" in mean else {}),
        **{
            f"{name} over {other}": _difference(name, scores, those)
            for other, those in ((BASELINE, base), ("earlier", comparable))
            if those
            for name in compared
        },
    }


def _difference(name: str, scores: Mapping[str, Scores], others: Mapping[str, Scores]) -> str:
    """Such as `+9.1 [+6.0, +12.2]`, in points."""
    # Files from before questions that collect have no figure by default: ten hits then counted to less than the limit.
    differences = [
        100 * (one[name] - others[asked].get(name, others[asked]["frac@10"])) for asked, one in scores.items()
    ]
    low, high = paired_interval(differences)
    return f"{sum(differences) / len(differences):+.1f} [{low:+.1f}, {high:+.1f}]"


def _here(names: Sequence[str]) -> list[str]:
    """The sets that can be measured; of the others it is said where they come from."""
    unknown = [name for name in names if name not in SETS]
    if unknown:
        raise SystemExit(f"There is no set {', '.join(unknown)}; there are {', '.join(SETS)}.")
    for name in names:
        path = SETS[name].path
        if path is not None and not path.exists():
            print(f"{name}: skipped, {path} does not exist. It is from {SETS[name].origin}", file=sys.stderr)
    here = [name for name in names if (path := SETS[name].path) is None or path.exists()]
    if len(here) < len(names):
        print(f"Files are looked for in {SHARED}; EVERTHREAD_SHARED names another folder.", file=sys.stderr)
    return here


def main() -> None:
    """Parse, run, show, and write when asked to."""
    parser = argparse.ArgumentParser(
        prog="benchmarks.recall", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--embedder", default=None, help="such as minilm; none for words alone")
    parser.add_argument("--sets", default=",".join(DEFAULT_SETS), help=f"of {', '.join(SETS)}")
    parser.add_argument("--out", type=Path, help="write JSON here, with the scores of every question")
    parser.add_argument("--against", type=Path, help="an earlier run's JSON, to compare with question by question")
    given = parser.parse_args()
    names = _here(given.sets.split(","))
    if not names:
        raise SystemExit("None of these conversations is here; `open` is part of the project.")
    earlier = json.loads(given.against.read_text())["questions"] if given.against else {}
    rows, kept = run(names, given.embedder, earlier)
    report.show("recall", rows)
    if given.out:
        report.write(given.out, {"recall": rows}, questions=kept)


if __name__ == "__main__":
    main()
