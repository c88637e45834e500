"""How well the rules find what is worth remembering.

    python -m benchmarks memory_sentences [--show-misses]

`memory_sentences/open.txt` was looked at while the rules were written; `memory_sentences/sealed.txt` was written before
they were read, sealed by the hash in `sealed.sha256`, and opened once, when they were done. `styles_open.txt` and
`styles_sealed.txt` came after those rules, by somebody who had not read them, in styles unlike each other, and were
measured before the rules were changed for the first of the two. `messy_open.txt` and `messy_sealed.txt` are the same
with several statements in a line, plans beside facts, slang, and both languages mixed. `changed_open.txt` and
`changed_sealed.txt` are about what is taken back, replaced, said after an interjection, or in jest: there a line may be
several messages, with // between them, and what counts is what is remembered after the last. `daily_open.txt` and
`daily_sealed.txt` are everyday sentences, half of them with nothing to remember. Each line is what a user says, then
the words that a memory of it must hold, or a dash where nothing is worth remembering. Right is a memory with all of
the words, or none where there is none to be had. Wrong is a memory where there is none to be had, or one without the
words (cut short, of something else) or with some that no memory may hold (`!word`). The rest is missed.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path

import everthread
from benchmarks.report import Row
from everthread.core.nouns import Ref
from everthread.recall.memory_extraction import ExtractionOptions, extract_memories
from everthread.text.language import language_of_text

FOLDER = Path(__file__).parent / "memory_sentences"
NEXT_MESSAGE = " // "


def sentences(name: str) -> Iterator[tuple[str, list[str]]]:
    """What is said, and the words that must be remembered; none where nothing is."""
    for line in (FOLDER / f"{name}.txt").read_text("utf-8").splitlines():
        if line and not line.startswith("#"):
            said, _, wanted = line.rpartition(" | ")
            yield said, [] if wanted == "-" else wanted.split("; ")


def remembered(said: str) -> list[str]:
    """The memories that are live after these messages of one user."""
    return asyncio.run(_remembered(said.split(NEXT_MESSAGE)))


async def _remembered(messages: Sequence[str]) -> list[str]:
    async with everthread.open("memory://", worker=False, embedder=None) as et:
        for text in messages:
            conv = await et.conversations.create(owner="user")
            await conv.append({"role": "user", "content": text})
            await extract_memories(et.store, Ref("user", conv.id), ExtractionOptions())
        return [memory.text for memory in (await et.memories.list("user")).items]


def verdict(said: str, wanted: Sequence[str]) -> str:
    """`right`, `missed` or `wrong`."""
    found = " ".join(remembered(said))
    if not found:
        return "missed" if any(not word.startswith("!") for word in wanted) else "right"
    has = [word.removeprefix("!").lower() in found.lower() for word in wanted]
    return "right" if has and has == [not word.startswith("!") for word in wanted] else "wrong"


def measure(name: str, language: str, *, show: bool = False) -> Row:
    """One row."""
    counts = {"right": 0, "missed": 0, "wrong": 0}
    for said, wanted in sentences(name):
        if language_of_text(said) == language:
            judged = verdict(said, wanted)
            counts[judged] += 1
            if show and judged != "right":
                print(f"  {judged}: {said} -> {remembered(said)}")
    total = sum(counts.values())
    return {
        "system": f"{name}, {language}",
        "sentences": total,
        **{f"{judged} %": 100 * count / total for judged, count in counts.items()},
    }


def run(options: argparse.Namespace) -> Sequence[Row]:
    """Every set, both languages."""
    return [
        measure(name, language, show=options.show_misses and name.endswith("open"))
        for kind in ("", "styles_", "messy_", "changed_", "daily_")
        for name in (f"{kind}open", f"{kind}sealed")
        for language in ("en", "zh")
    ]
