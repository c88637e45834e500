"""Bytes on the disk against the bytes of the payloads, with and without the search index: one log, many, none, and
conversations that were really held. `turns`: what one turn of our agent adds to the file of an old conversation, in all
and by table."""

from __future__ import annotations

import argparse
import asyncio
import random
import sqlite3
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import everthread
from benchmarks import facts_kept
from benchmarks.facts_kept import DATA, Talk
from benchmarks.report import Row
from benchmarks.systems import Ours
from benchmarks.tokens import messages_of
from everthread import Everthread
from everthread.testing import Reply, ScriptedModel

_EACH = 100
"""Messages of each of many conversations."""


def run(options: argparse.Namespace) -> Sequence[Row]:
    """A new file; one conversation of each length; many of a hundred messages that grow side by side."""
    return [
        _kept("new file", 0, lambda ours: None),
        *(_kept("one conversation", length, _one_of(length)) for length in options.lengths),
        _kept(f"{options.conversations:,} conversations", options.conversations * _EACH, _many(options.conversations)),
        *(_recorded(name, list(talks)) for name, talks in _sets()),
    ]


def _sets() -> Iterator[tuple[str, Iterable[Talk]]]:
    """Recorded conversations, each set in a file of its own; none where the data are not there."""
    if DATA.exists():
        yield "LoCoMo, chat", facts_kept.locomo(DATA / "locomo" / "dev.json")
        yield "zh-dev, Chinese chat", facts_kept.recall_set(DATA / "recall" / "zh-dev.json")
        yield "tools-dev, an agent's tools", facts_kept.recall_set(DATA / "recall" / "tools-dev.json")
        yield "BEAM, long answers", facts_kept.beam(DATA / "beam")
        yield "SWE-agent trajectories", facts_kept.swe_agent(DATA / "trajectories" / "swe-agent")


def _recorded(name: str, talks: Sequence[Talk]) -> Row:
    def fill(ours: Ours) -> None:
        for number, talk in enumerate(talks):
            messages = messages_of(talk)
            ours.seed(f"c{number}", [messages[start : start + 4] for start in range(0, len(messages), 4)])

    return _kept(f"{len(talks)} of {name}", sum(len(talk.sources) for talk in talks), fill)


def _one_of(length: int) -> Callable[[Ours], None]:
    from perf.data import Gen  # noqa: PLC0415 - importable only with the harness

    def fill(ours: Ours) -> None:
        for start in range(0, length, 1_000):
            ours.seed("t", Gen(start).turns(min(1_000, length - start)))

    return fill


def _many(conversations: int) -> Callable[[Ours], None]:
    """A turn of each, then the next of each, as a service is used: new entries stand in the middle of the table."""
    from perf.data import Gen  # noqa: PLC0415

    async def work(ours: Ours) -> None:
        made = Gen(3)
        for _ in range(_EACH // 5):
            await asyncio.gather(*(ours.aappend(f"c{number}", made.turn()) for number in range(conversations)))
        await ours.acatch_up()

    return lambda ours: ours.run_async(work(ours))


def _kept(what: str, messages: int, fill: Callable[[Ours], None]) -> Row:
    folder = tempfile.mkdtemp(prefix="bench-")
    ours = Ours(folder)
    ours.open()
    fill(ours)
    payload = ours.run_async(ours.et.stats())["payload_bytes"]
    ours.close()
    file = Path(folder) / "et.db"
    size = file.stat().st_size
    row: Row = {"system": f"everthread: {what}", "messages": messages, "payload bytes": payload, "file bytes": size}
    if not payload:
        return row
    return {**row, "times payload": size / payload, "without index": (size - _index_bytes(file)) / payload}


# -- what a turn adds ------------------------------------------------------------------------------------------------

_SAID_BYTES = 400
"""Of a question, and of an answer."""
_WORDS = [word for word in (Path(__file__).parents[1] / "README.md").read_text("utf-8").split() if word.isalpha()]
_LEAST_BYTES = 4
"""A table that takes less a turn is not shown."""


def turns(options: argparse.Namespace) -> Sequence[Row]:
    """What turns of 0.8 KB add to a file after some, when everything in the background is done."""
    return [row for before in options.turns_before for row in asyncio.run(_grown(before, options.turns_measured))]


async def _grown(before: int, measured: int) -> list[Row]:
    given, file = random.Random(3), Path(tempfile.mkdtemp(prefix="bench-")) / "et.db"
    pages: list[dict[str, int]] = []
    async with everthread.open(f"sqlite:///{file}") as et:
        conversation = await et.conversations.create()
        replies = [Reply(text=_said(given), pace_seconds=0) for _ in range(before + measured)]
        agent = everthread.agent(et, model=ScriptedModel(replies))
        for count in (before, measured):
            for _ in range(count):
                async for _ in everthread.run_turn(conversation, _said(given), agent=agent):
                    pass
            pages.append(await _idle_tables(et, file))
    added = {name: (size - pages[0].get(name, 0)) / measured for name, size in pages[1].items()}
    payload = 2 * _SAID_BYTES

    def row(what: str, size: float) -> Row:
        return {"what": what, "turns before": before, "bytes a turn": size, "times what was said": size / payload}

    parts = sorted(((name, size) for name, size in added.items() if size >= _LEAST_BYTES), key=lambda part: -part[1])
    return [row("the file", sum(added.values())), *(row(name, size) for name, size in parts)]


def _said(given: random.Random) -> str:
    return " ".join(given.choices(_WORDS, k=_SAID_BYTES))[:_SAID_BYTES]


async def _idle_tables(et: Everthread, file: Path) -> dict[str, int]:
    """The bytes of each table and index, and of free pages, when all jobs are done and the write-ahead log is in it."""
    while (report := await et.jobs()).waiting or report.running:  # noqa: ASYNC110 - nothing else tells
        await asyncio.sleep(0.05)
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        found: dict[str, int] = dict(
            connection.execute("SELECT name, sum(pgsize) FROM dbstat GROUP BY name").fetchall()
        )
        (free,) = connection.execute(
            "SELECT freelist_count * page_size FROM pragma_freelist_count(), pragma_page_size()"
        )
        return {**found, "free pages": free[0]}


_INDEX = """
SELECT (SELECT coalesce(sum(pgsize), 0) FROM dbstat WHERE name LIKE 'words%') + freelist_count * page_size
FROM pragma_freelist_count(), pragma_page_size()"""
"""Only the index gives pages back, when it merges its parts; whatever grows next takes them."""


def _index_bytes(file: Path) -> int:
    with closing(sqlite3.connect(file)) as connection:
        return int(connection.execute(_INDEX).fetchone()[0])
