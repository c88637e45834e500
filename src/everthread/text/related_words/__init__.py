"""Words for the same or nearly the same thing, in English, Chinese and from one to the other: bike and bicycle, 抱怨
and complain. Recall looks for them too, and counts them less than the words that were asked for.

The tables are made by `tools/related_words.py`, which says of what. They are read when first asked for: two files,
two megabytes together, held as they are; a line is taken apart when its word is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

_FOLDER = Path(__file__).parent
_LONGEST_WORD = 4


def related_words(word: str) -> Mapping[str, float]:
    """Of a stem or a Chinese word its related ones, and how close each is, above 0 and below 1."""
    tables = _tables()
    return {one[:-1]: int(one[-1]) / 10 for table in tables for one in table.get(word, "").split()}


def chinese_words(run: str) -> Iterator[str]:
    """The words of a run without spaces that have related ones, each as long as possible."""
    _, chinese = _tables()
    at = 0
    while at < len(run):
        longest = (run[at : at + length] for length in range(min(_LONGEST_WORD, len(run) - at), 0, -1))
        word = next((part for part in longest if part in chinese), None)
        if word is not None:
            yield word
        at += len(word or run[at])


@cache
def _tables() -> tuple[Mapping[str, str], Mapping[str, str]]:
    return _read("english.tsv"), _read("chinese.tsv")


def _read(name: str) -> Mapping[str, str]:
    lines = (_FOLDER / name).read_text(encoding="utf-8").splitlines()
    return {word: related for word, _, related in (line.partition("\t") for line in lines)}
