"""Ranked search over many messages, common words and Chinese words of one and two characters included."""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

from benchmarks.report import Row
from benchmarks.systems import Ours, Turn
from tests.postgres import own_server

STORES = ("sqlite", "postgres")
_CONVERSATIONS = 100
_TIMES = 4
"""How often each question is asked: a p95 of thirty answers is one answer."""


def run(options: argparse.Namespace) -> Sequence[Row]:
    """One owner's messages in a hundred conversations; each kind of question asked a hundred times."""
    with _address(options.store) as url:
        ours = Ours(tempfile.mkdtemp(prefix="bench-"), url)
        ours.open()
        began = time.perf_counter()
        _fill(ours, options.messages)
        print(f"({options.messages:,} messages kept and indexed in {time.perf_counter() - began:.0f} s)")
        rows = [_asked(ours, kind, questions, None) for kind, questions in _questions().items()]
        rows.append(_asked(ours, "common, in one conversation", _questions()["common"], "c7"))
        ours.close()
    return [{**row, "store": options.store, "messages": options.messages} for row in rows]


@contextmanager
def _address(store: str) -> Iterator[str | None]:
    """A PostgreSQL of our own with the settings it comes with; for SQLite a file needs none."""
    if store == "sqlite":
        yield None
        return
    with own_server(Path(tempfile.mkdtemp(prefix="bench-"))) as server, server.database() as url:
        yield url


def _fill(ours: Ours, messages: int) -> None:
    from perf.data import ZH, Gen  # noqa: PLC0415 - importable only with the harness

    made, dice = Gen(31), random.Random(32)
    per = messages // _CONVERSATIONS
    for conversation in range(_CONVERSATIONS):
        for start in range(0, per, 500):
            batch: Turn = []
            for number in range(start, min(start + 500, per)):
                text = made.text(120) + (f" 请继续说说{dice.choice(ZH)}的设计" if number % 50 == 0 else "")
                batch.append({"role": "user" if number % 2 else "assistant", "content": text})
            ours.append(f"c{conversation}", batch)
    ours.run_async(ours.et.search("everything"))


def _questions() -> dict[str, list[str]]:
    from perf.data import VOCAB, ZH  # noqa: PLC0415

    dice = random.Random(33)
    middle = [VOCAB[dice.randrange(200, 2000)] for _ in range(31)]
    return {
        "rare": [VOCAB[dice.randrange(len(VOCAB) - 3000, len(VOCAB))] for _ in range(30)],
        "middling": middle[:30],
        "common": [VOCAB[dice.randrange(1, 6)] for _ in range(30)],
        "two words": [f"{a} {b}" for a, b in pairwise(middle)],
        "two common words": [f"{VOCAB[dice.randrange(1, 6)]} {VOCAB[dice.randrange(6, 12)]}" for _ in range(30)],
        "Chinese, two characters or more": ZH,
        "Chinese, one character": [word[0] for word in ZH],
    }


def _asked(ours: Ours, kind: str, questions: Sequence[str], conversation: str | None) -> Row:
    spent, found = [], 0
    for question in [*questions] * _TIMES:
        began = time.perf_counter()
        hits = ours.run_async(ours.et.search(question, conversation=conversation))
        spent.append((time.perf_counter() - began) * 1e3)
        found += bool(hits)
    cuts = statistics.quantiles(spent, n=20)
    return {
        "system": f"everthread: {kind}",
        "p50 ms": statistics.median(spent),
        "p95 ms": cuts[18],
        "found": found / len(spent),
    }
