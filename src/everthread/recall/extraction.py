"""What a model finds worth remembering, taken with care: it may fail, hang, or write anything.

A line is taken only when it names a message that the model was shown, is of a known kind, says little more than that
message does, and speaks of no secret. So the worst that a hostile model can do is to remember nothing.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping
from typing import Protocol, runtime_checkable

from everthread.core.cancellation import cancel_count
from everthread.core.errors import ModelError
from everthread.core.memories import ALWAYS_SHOWN, MemoryKind
from everthread.recall.remarks import SECRET, Remark
from everthread.text.secrets import find_secrets
from everthread.text.words import fold, split_runs_and_words, stem

MAX_TOKENS = 600
_MOST_LINES = 20
_LONGEST = 300
_LEAST_GROUNDED = 0.6
"""Which share of a line's own words its message must have."""
_LINE = re.compile(r"\s*(?:[-*]\s*)?\[#(\d{1,10})\]\s*(\w+)\s*\|([^|\n]{0,60})\|\s*([^\n<>]{3,})\s*$")
_OWN_WORDS = frozenset(
    map(
        stem,
        "user is are was be has have the a an to of in on at for and or not no with that who wants want likes like "
        "prefers prefer dislikes called name named lives works says said told asks asked their them they his her he "
        "she its it always never should does do about using use as by from".split(),
    )
)
_OWN_CHARACTERS = frozenset("用户的是了在希望被称为叫名字喜欢不住来自对和与有要请以后他她说过想")


@runtime_checkable
class Extractor(Protocol):
    """A model that reads what people said, and writes down what is worth remembering."""

    async def extract(self, text: str, *, max_tokens: int) -> str:
        """A line for each: `[#seq] kind | subject | text`. ModelError when it fails."""


async def asked(model: Extractor, said: Mapping[int, str], seconds: float) -> Mapping[int, list[Remark]]:
    """What a model finds in these messages, by their seqs. ModelError when it fails or takes too long."""
    transcript = "\n".join(f"[#{seq}] user: {text}" for seq, text in said.items())
    try:
        async with asyncio.timeout(seconds):
            answer = await _answer(model, transcript)
    except TimeoutError as problem:
        raise ModelError(f"the model that reads for memories did not answer in {seconds:g} s") from problem
    found: dict[int, list[Remark]] = {}
    for seq, remark in _taken(answer, said):
        found.setdefault(seq, []).append(remark)
    return found


async def _answer(model: Extractor, transcript: str) -> object:
    """It is somebody else's code: whatever it raises is a ModelError here."""
    before = cancel_count()
    try:
        return await model.extract(transcript, max_tokens=MAX_TOKENS)
    except ModelError:
        raise
    except asyncio.CancelledError as problem:
        if cancel_count() > before:  # by the time limit, or by whoever waits for us
            raise
        raise ModelError("the model that reads for memories was cancelled inside itself") from problem
    except Exception as problem:  # the edge of the port: no error of a model may stop a job
        raise ModelError(f"the model that reads for memories raised {type(problem).__name__}") from problem


def _taken(answer: object, said: Mapping[int, str]) -> Iterator[tuple[int, Remark]]:
    lines = answer.splitlines()[: 4 * _MOST_LINES] if isinstance(answer, str) else []
    for match in [match for line in lines if (match := _LINE.match(line))][:_MOST_LINES]:
        seq, kind, subject, text = int(match[1]), match[2].lower(), match[3].strip(), match[4].strip()
        if seq in said and kind in set(MemoryKind) and len(text) <= _LONGEST and _is_grounded(text, said[seq]):
            yield seq, _remark(MemoryKind(kind), subject, text)


def _remark(kind: MemoryKind, subject: str, text: str) -> Remark:
    is_named = subject not in ("", "-", "none", "null")
    return Remark(
        text=text,
        kind=kind,
        subject=subject if is_named else None,
        confidence=0.7,
        is_pinned=kind in ALWAYS_SHOWN,
    )


def _is_grounded(text: str, source: str) -> bool:
    """Whether it says what the message says: numbers all of them, other words for the most part."""
    if SECRET.search(text) or find_secrets(text):
        return False
    own, there = _words(text), _words(source)
    if any(word.isdigit() and word not in there for word in own):
        return False
    return bool(own) and len(own & there) >= _LEAST_GROUNDED * len(own)


def _words(text: str) -> set[str]:
    parts = split_runs_and_words(fold(text))
    words = {stem(word) for _, word in parts if word} - _OWN_WORDS
    return words | {char for run, _ in parts for char in run} - _OWN_CHARACTERS
