"""Names in English text: capitalised words that the place in the sentence does not explain.

A word at the start of a sentence, in a heading or in a line set in title case says nothing by its
capital, so it counts only as part of a longer name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_WORD = r"[A-Z][A-Za-zÀ-ÿ0-9]*(?:['’&-][A-Za-zÀ-ÿ0-9]+)*"
_RUN = re.compile(rf"(?<![\w@#/.'’-]){_WORD}(?: (?:of the|of|de|van|von|&|la|del) {_WORD}| {_WORD}){{0,5}}(?![\w@/])")
_HEADING = re.compile(r"^\s*#{1,6}\s")
_LABEL = re.compile(
    r"^\s*(?:[-*+•]|\d{1,3}[.)])?\s*(?:\*\*|__)[^*_\n]{1,80}(?:\*\*|__)\s*:?"
    r"|^\s*(?:[-*+•]|\d{1,3}[.)])\s*[^:\n]{1,50}:"
)
_ANY_WORD = re.compile(r"[A-Za-z][A-Za-z'’-]*")
_BEFORE_START = re.compile(r"(?:^|[.!?:。！？：…\n•*_>#\"“”‘(\[|])[\s*_\"“‘(\[]*$|(?:^|\n)\s*(?:[-+]|\d{1,3}[.)])\s+$")
_LOOK_BACK_CHARS = 12

# Words whose capital is grammar or custom, not a name. Days and months alone date nothing.
NOT_NAMES = frozenset(
    """
    a about after again ah all also alright although am an and another any anyway apart are as at awesome based
    because before being besides best both btw but by bye can certainly check click congrats congratulations
    consider could cool create day dear definitely did do does done each either else ensure especially even
    every everyone exactly example feel few finally first follow for from further furthermore get give go good
    got great had happy has have having he hello help her here hey hi his how however i if implement import in
    include including indeed instead is it its just keep last let lets like look lot love make many may maybe me
    more most moreover my never next nice no none nope not note now of off oh ok okay on once one only open or
    other our out over overall perfect perhaps please put really regarding remember right run same second see
    set shall she should similarly since so some something sometimes soon sorry sounds step still sure take test
    than thank thanks that the their them then there therefore these they third this those though thus to today
    together tomorrow tonight too try two update use using very was way we well were what whatever when where
    whether which while who why will with without would wow yeah yep yes yesterday yet you your monday tuesday
    wednesday thursday friday saturday sunday january february march april june july august september october
    november december jan feb mar apr jun jul aug sep sept oct nov dec mon tue wed thu fri sat sun i'm i'd i'll
    i've it's that's there's here's let's what's who's how's he's she's we're we've we'll you're you've you'll
    they're don't doesn't didn't isn't can't won't mr mrs ms dr am pm true false null id ids aww yay yo whoa
    woah woohoo haha omg lol ooh gosh hmm dude bro
    """.split()
)


def find_names(line: str) -> Iterator[tuple[int, int]]:
    """Where names stand in a line, in its order, as (start, end)."""
    names_from = _after_label(line)
    for run in _RUN.finditer(line, names_from):
        start, end = _without_ordinary_words(line, run.start(), run.end())
        if start >= end:
            continue
        if start != run.start() or " " in line[start:end] or not _opens_a_sentence(line, start):
            yield start, end


def _after_label(line: str) -> int:
    """Where in a line names begin to mean something: behind its label, at its end if it is a title."""
    label = _LABEL.match(line)
    start = label.end() if label else 0
    return len(line) if _is_titled(line[start:]) else start


def _without_ordinary_words(line: str, start: int, end: int) -> tuple[int, int]:
    """The run without words at its edges that are no names: "Thanks Mel" is "Mel"."""
    if line[start:end].endswith(("'s", "’s")):
        end -= 2
    words = line[start:end].split(" ")
    while words and words[0].lower().replace("’", "'") in NOT_NAMES:
        start += len(words.pop(0)) + 1
    while words and words[-1].lower().replace("’", "'") in NOT_NAMES:
        end -= len(words.pop()) + 1
    return (start, min(end, len(line))) if words and len(" ".join(words)) > 1 else (end, end)


def _opens_a_sentence(line: str, start: int) -> bool:
    return bool(_BEFORE_START.search(line[max(0, start - _LOOK_BACK_CHARS) : start]))


def _is_titled(line: str) -> bool:
    if _HEADING.match(line):
        return True
    words = [word for word in _ANY_WORD.findall(line[:200]) if len(word) > 3]
    return len(words) > 4 and sum(word[0].isupper() for word in words) > 0.8 * len(words)
