"""How well the rules find what is worth remembering.

    python -m benchmarks memory_sentences [--show-misses]

`memory_sentences/open.txt` was looked at while the rules were written; `memory_sentences/sealed.txt` was written before
they were read, sealed by the hash in `sealed.sha256`, and opened once, when they were done. `styles_open.txt` and
`styles_sealed.txt` came after those rules, by somebody who had not read them, in styles unlike each other, and were
measured before the rules were changed for the first of the two. `messy_open.txt` and `messy_sealed.txt` are the same
with several statements in a line, plans beside facts, slang, and both languages mixed. Each line is what a user says,
then the words that a memory of it must hold, or a dash where nothing is worth remembering. Right is a memory with all
of the words, or none where there is none to be had. Wrong is a memory where there is none to be had, or one without the
words (cut short, of something else) or with some that no memory may hold (`!word`). The rest is missed.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.report import Row
from everthread.recall.memory_rules import extract_by_rules
from everthread.text.language import language_of_text

FOLDER = Path(__file__).parent / "memory_sentences"


def sentences(name: str) -> Iterator[tuple[str, list[str]]]:
    """What is said, and the words that must be remembered; none where nothing is."""
    for line in (FOLDER / f"{name}.txt").read_text("utf-8").splitlines():
        if line and not line.startswith("#"):
            said, _, wanted = line.rpartition(" | ")
            yield said, [] if wanted == "-" else wanted.split("; ")


def verdict(said: str, wanted: Sequence[str]) -> str:
    """`right`, `missed` or `wrong`."""
    found = " ".join(memory.text for memory in extract_by_rules(said))
    if not found:
        return "missed" if wanted else "right"
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
                print(f"  {judged}: {said} -> {[memory.text for memory in extract_by_rules(said)]}")
    total = sum(counts.values())
    return {
        "system": f"{name}, {language}",
        "sentences": total,
        **{f"{judged} %": 100 * count / total for judged, count in counts.items()},
    }


def run(options: argparse.Namespace) -> Sequence[Row]:
    """Both sets, both languages."""
    return [
        measure(name, language, show=options.show_misses and name.endswith("open"))
        for name in ("open", "sealed", "styles_open", "styles_sealed", "messy_open", "messy_sealed")
        if (FOLDER / f"{name}.txt").exists()
        for language in ("en", "zh")
    ]
