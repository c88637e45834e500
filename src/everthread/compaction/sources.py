"""What a summary is made from: the messages of a span, reduced to what summarising needs.

The log's own messages never come this far; the code that plans a compaction fills these plain values
from it, so everything in this room can be tried without a store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from everthread.text.language import Language, language_of_text, readable

TokenCounter = Callable[[str], int]

# A message longer than this is read at its two ends: the middle of a pasted log or a dumped file is
# opened by its seq, not summarised.
READ_CHARS = 25_000
_LEAST_READ_CHARS = 500
_SPAN_CHARS = 2_000_000
# Enough to tell the language of a conversation; reading all of a long one would cost and add nothing.
_LANGUAGE_SAMPLE_CHARS = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class CallSketch:
    """A tool call as the model asked for it."""

    name: str
    arguments: str
    """The arguments as text, usually a JSON object; never parsed strictly."""
    call_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One message of the span, with the place in the log where it can be opened."""

    seq: int
    role: str
    name: str | None = None
    """The speaker, where several people share a role."""
    text: str = ""
    said_at: datetime | None = None
    tool_name: str | None = None
    is_tool_result: bool = False
    calls: tuple[CallSketch, ...] = ()
    call_id: str | None = None
    """Of a tool result: the call it answers, where the log knows it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """A summary that is itself to be condensed, with the span it stands for."""

    first_seq: int
    last_seq: int
    text: str


def both_ends(text: str, limit: int = READ_CHARS) -> str:
    """A text over the limit by its head and its tail."""
    if len(text) <= limit:
        return text
    tail = limit // 5
    return f"{text[: limit - tail]}\n…\n{text[-tail:]}"


def prepared(sources: Sequence[Source]) -> list[Source]:
    """The sources as the summariser reads them: printable, and bounded in size.

    In a span of millions of characters what tools and models wrote is read at its ends only.
    """
    total = sum(len(source.text) for source in sources)
    share = READ_CHARS if total <= _SPAN_CHARS else max(_LEAST_READ_CHARS, _SPAN_CHARS // len(sources))
    return [
        replace(source, text=both_ends(readable(source.text), READ_CHARS if is_user(source) else share))
        for source in sources
    ]


def is_empty(source: Source) -> bool:
    """Whether a message says and does nothing."""
    return not source.text.strip() and not source.calls


def is_user(source: Source) -> bool:
    """Whether a person said it: their words weigh most."""
    return source.role in ("user", "human")


def speaker(source: Source) -> str:
    """Who said it, as a transcript names them: `user`, `user Ada`, `tool search`."""
    named = source.name or source.tool_name
    return f"{source.role} {named}" if named else source.role


def language_of(sources: Sequence[Source]) -> Language:
    """The language a summary's heads are written in: what the people write, else what anyone does."""
    said = _sample(source.text for source in sources if is_user(source))
    return language_of_text(said or _sample(source.text for source in sources))


def _sample(texts: Iterable[str]) -> str:
    taken: list[str] = []
    room = _LANGUAGE_SAMPLE_CHARS
    for text in texts:
        taken.append(text[:room])
        room -= len(taken[-1])
        if room <= 0:
            break
    return "\n".join(taken)
