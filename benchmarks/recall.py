"""How much of what a question needs is found again: the harness `recallbench` asks its questions of `conv.recall`.

    python -m benchmarks.recall [--embedder minilm] [--sets locomo,beam,zh,tools] [--out FILE.json]

The harness and the conversations are no part of the project: they are looked for in the folder that EVERTHREAD_SHARED
names, else in `../shared` (docs/benchmarks/README.md lists them). Without the harness the benchmark ends and says so;
sets of conversations that are missing are named and skipped.

One configuration for all kinds of conversation. Each is appended to a SQLite file, every message with its own time and
name; where an embedder is given, its vectors are made first.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import Stemmer

import everthread
from benchmarks import SHARED, report
from everthread import Conversation, Everthread
from everthread.settings import Settings

SETS: Mapping[str, tuple[str, str]] = {
    "locomo": ("locomo", "locomo/dev.json"),
    "beam": ("beam", "beam"),
    "zh": ("generic", "recall/zh-dev.json"),
    "tools": ("generic", "recall/tools-dev.json"),
}
_HARNESS = SHARED / "bench" / "recall"
BASELINES = ("recency-40", "bm25", "lexical-structured")
_ROLES = {"user", "assistant", "tool", "system", ""}
_WHERE = (
    f"It is looked for in {SHARED}: set EVERTHREAD_SHARED to the folder that holds bench/recall and data "
    "(docs/benchmarks/README.md says what is in them). Without it, tests/recall and `pytest tests/contracts -k recall` "
    "check how recall ranks."
)
_DEEP = 60
"""Enough hits to fill the largest budget that is counted."""


class ThroughTheApi:
    """The retriever that `recallbench` asks, over an open database."""

    def __init__(self, embedder: str | None, loop: asyncio.AbstractEventLoop) -> None:
        self._embedder = embedder
        self._loop = loop
        self._folder = tempfile.TemporaryDirectory(prefix="everthread-recall-")
        self._et: Everthread | None = None
        self._conv: Conversation | None = None

    def index(self, conversation: Any) -> None:
        """Append a whole conversation, and have its vectors made."""
        self._loop.run_until_complete(self._index(conversation))

    async def _index(self, conversation: Any) -> None:
        url = f"sqlite:///{self._folder.name}/et.db"
        self._et = await everthread.open(
            url, settings=Settings.load(), embedder=self._embedder, worker=False
        ).__aenter__()
        self._conv = await self._et.conversations.create()
        messages = [_message(one) for one in conversation.messages]
        for at in range(0, len(messages), 100):
            await self._conv.append(messages[at : at + 100])
        await self._et.index_ready(self._conv)

    def search(self, query: str, k: int, asked_at: datetime | None = None) -> list[Any]:
        """The hits, in the type of the harness."""
        assert self._conv is not None
        recall = self._conv.recall(query, limit=min(k, _DEEP), max_tokens=1_000_000, asked_at=asked_at)
        hit = importlib.import_module("recallbench.types").Hit
        return [hit(one.ids, one.text, one.score) for one in self._loop.run_until_complete(recall)]

    def close(self) -> None:
        """Let go of the file."""
        if self._et is not None:
            self._loop.run_until_complete(self._et.close())
        self._folder.cleanup()


def _message(one: Any) -> dict[str, Any]:
    name = {} if one.speaker in _ROLES or one.role == "tool" else {"name": one.speaker}
    when = {} if one.time is None else {"created_at": one.time.isoformat()}
    return {"id": one.id, "role": one.role or "user", "content": one.text, **name, **when}


def quality(sets: Sequence[str], embedder: str | None, baselines: Sequence[str]) -> list[report.Row]:
    """One row a set and system."""
    bench = _load_harness()
    missing = {name: SHARED / "data" / SETS[name][1] for name in sets}
    missing = {name: path for name, path in missing.items() if not path.exists()}
    for name, path in missing.items():
        print(f"{name}: skipped, {path} does not exist", file=sys.stderr)
    if len(missing) == len(sets):
        raise SystemExit(f"None of the conversations is there. {_WHERE}")
    loop = asyncio.new_event_loop()
    rows: list[report.Row] = []
    for name in [one for one in sets if one not in missing]:
        layout, inside = SETS[name]
        talks = bench["datasets"].LOADERS[layout](SHARED / "data" / inside)
        systems: dict[str, Callable[[], Any]] = {
            **{one: bench["retrievers"].baselines(None, None)[one] for one in baselines},
            "everthread, words": lambda: ThroughTheApi(None, loop),
            **({f"everthread, {embedder}": lambda: ThroughTheApi(embedder, loop)} if embedder else {}),
        }
        for system, make in systems.items():
            rows.append(_row(name, system, bench["runner"].evaluate(make, talks)))
            print(rows[-1], file=sys.stderr, flush=True)
    loop.close()
    return rows


def _load_harness() -> Mapping[str, Any]:
    """`recallbench`, with our stemmer under the name of the one it asks for: both are Snowball's."""
    if not _HARNESS.is_dir():
        raise SystemExit(f"The harness recallbench is not in {_HARNESS}. {_WHERE}")
    sys.path.insert(0, str(_HARNESS))
    lexical = importlib.import_module("recallbench.lexical")
    vars(lexical)["_stemmer"] = lambda: Stemmer.Stemmer("english")
    return {name: importlib.import_module(f"recallbench.{name}") for name in ("datasets", "retrievers", "runner")}


def _row(name: str, system: str, result: Mapping[str, Any]) -> report.Row:
    overall = result["overall"]
    hop = result["by_category"].get("multi-hop", {}).get("frac@10")
    return {
        "system": system,
        "set": name,
        "questions": result["questions"],
        **{score: round(100 * overall[score], 1) for score in ("all@10", "frac@10", "all@2000t", "mrr")},
        "multi-hop frac@10": None if hop is None else round(100 * hop, 1),
        "tokens@10": round(overall["tokens@10"]),
    }


def main() -> None:
    """Parse, run, show, and write when asked to."""
    parser = argparse.ArgumentParser(prog="benchmarks.recall", description=__doc__)
    parser.add_argument("--embedder", default=None, help="such as minilm; none for words alone")
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--baselines", default=",".join(BASELINES))
    parser.add_argument("--out", type=Path, help="write JSON here")
    given = parser.parse_args()
    baselines = [one for one in given.baselines.split(",") if one]
    found = {"recall": quality(given.sets.split(","), given.embedder, baselines)}
    report.show("recall", found["recall"])
    if given.out:
        report.write(given.out, found)


if __name__ == "__main__":
    main()
