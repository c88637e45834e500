"""What a conversation without a title is called: its first question, without greetings and cut at the end of a word; or
what a model calls it, as far as that is a title.
"""

from __future__ import annotations

import asyncio
import re
from typing import Protocol

from everthread.core.errors import ModelError

MOST_CHARACTERS = 60
_GREETING = re.compile(
    r"^(?:(?:hi|hello|hey|dear|good (?:morning|afternoon|evening))\b[^.!?,，。！\n]{0,20}[.!?,，。！\s]+"
    r"|(?:你好|您好|大家好|早上好|晚上好)[，。！!,\s]*)",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"(?<=[。！？])|(?<=[.!?])\s|\n")
_MARKS = re.compile(r"[`*_#>\x00-\x1f\ud800-\udfff]+")


class Titler(Protocol):
    """A model that names conversations. It may fail with ModelError, hang, or write anything."""

    async def title(self, text: str) -> str: ...


async def title_by_model(model: Titler, beginning: str, seconds: float) -> str | None:
    """What a model calls a conversation that begins so; None when it fails, is too slow, or gives no title."""
    try:
        async with asyncio.timeout(seconds):
            said = await model.title(beginning)
    except (ModelError, TimeoutError):
        return None
    return title_by_rules(said.strip().strip("\"'“”《》「」"))


def title_by_rules(question: str) -> str | None:
    """A title by rules; None when the question says nothing."""
    text = " ".join(_MARKS.sub(" ", _first_sentence(question)).split())
    if len(text) > MOST_CHARACTERS:
        cut = text[: MOST_CHARACTERS - 1]
        whole = cut.rpartition(" ")[0]
        text = (whole if len(whole) > MOST_CHARACTERS // 2 else cut).rstrip(" ,;:，；：、") + "…"
    return text.rstrip(".。") or None


def _first_sentence(question: str) -> str:
    """The first that is more than a greeting; a question of nothing else is called by it."""
    said = question.strip()
    rest = _GREETING.sub("", said, count=1).strip() or said
    return next((part.strip() for part in _SENTENCE.split(rest) if part.strip()), "")
