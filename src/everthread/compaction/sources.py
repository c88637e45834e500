"""What a summary is made from: the messages of a stretch, reduced to what summarising needs.

`sources_from` makes these plain values of the log's messages, so everything that reads them can be tried without a
store. Also here: what kind of conversation they are (measured, never guessed by a model), the same without secrets, and
all of them as one text for a model.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal

from everthread.context.clamp import even_share
from everthread.context.content_blocks import media_labels
from everthread.context.ingredients import LogMessage
from everthread.context.message_format import as_text, calls_of, role_of, unwrap
from everthread.core import payloads
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
class SourceCall:
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
    calls: tuple[SourceCall, ...] = ()
    call_id: str | None = None
    """Of a tool result: the call it answers, where the log knows it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildSummary:
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


def prepare_sources(sources: Sequence[Source]) -> list[Source]:
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


ConversationKind = Literal["chat", "tool-heavy", "coding"]

# A third of the messages show code: someone is programming. Below that, code is only talked about.
CODING_SHARE = 0.3
# A quarter of the messages are calls or results: one turn in two goes through a tool.
TOOL_SHARE = 0.25

_READ_CHARS = 8_000
_CODE_SIGN = re.compile(
    r"^\s{0,8}(?:```|~~~)|^(?:\+\+\+|---) [ab]/|^@@ -\d|^[^\S\n]*+\$ \w|Traceback \(most recent call last\)"
    r"|^[^\S\n]*+(?:def|class|async def|function|import|from \w[\w.]* import|#include|package|public class|const|let"
    r"|var) ?\b.{0,80}[:;{(=]"
    r"|^[^\S\n]*+at [\w.$<>]{1,80}\([\w./]{1,80}:\d+"
    r"|\b[\w/-]{1,80}\.(?:py|ipynb|[jt]sx?|go|rs|rb|java|kt|swift|cc?|cpp|hpp?|cs|php|sh|sql|vue|toml|ya?ml)\b",
    re.MULTILINE,
)


def conversation_kind(sources: Sequence[Source]) -> ConversationKind:
    """Coding when enough messages show code, else tool-heavy when enough are calls or results, else chat."""
    said = [source for source in sources if not is_empty(source)]
    if not said:
        return "chat"
    if sum(map(_shows_code, said)) >= CODING_SHARE * len(said):
        return "coding"
    using_tools = sum(source.is_tool_result or bool(source.calls) for source in said)
    return "tool-heavy" if using_tools >= TOOL_SHARE * len(said) else "chat"


def _shows_code(source: Source) -> bool:
    if _CODE_SIGN.search(source.text[:_READ_CHARS]):
        return True
    return any(_CODE_SIGN.search(call.arguments[:_READ_CHARS]) for call in source.calls)


Redact = Callable[[str], str]
"""Takes secrets out of a text."""

_MARGIN_CHARS = 10_000
"""Redacted beyond what is read of a long text: a secret that the cut goes through is then still found whole."""
_LEAST_CHARS = 200
_ARGUMENT_CHARS = 400
"""Of a call's arguments a model is shown the two ends; its result says what became of it."""


def redact_sources(sources: Sequence[Source], redact: Redact) -> Sequence[Source]:
    """The sources with their texts and the arguments of their calls as `redact` leaves them."""
    if redact is str:
        return sources
    return [
        replace(
            source,
            text=redact(both_ends(source.text, READ_CHARS + _MARGIN_CHARS)),
            calls=tuple(
                replace(call, arguments=redact(both_ends(call.arguments, READ_CHARS + _MARGIN_CHARS)))
                for call in source.calls
            ),
        )
        for source in sources
    ]


_INVISIBLE = "\u00ad\u034f\u061c\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff"
_FORGED_HEAD = re.compile(
    rf"(?:^|(?<=[\r\v\f\x85\u2028\u2029]))(?=[^\S\n]{{0,64}}+[{_INVISIBLE}]{{0,16}}+[\[［﹇][\s{_INVISIBLE}]{{0,16}}+[#＃﹟])",
    re.MULTILINE,
)
"""A line within a message that begins as one of the transcript's messages does."""


def _no_forged_heads(text: str) -> str:
    return _FORGED_HEAD.sub("| ", text)


def transcript(sources: Sequence[Source], *, share: float = 1.0) -> str:
    """The messages as one text, each after its number and its speaker.

    `share` below 1 is the part that a model should be given: the longest messages are then shown by their two ends.
    """
    said = [source for source in prepare_sources(sources) if not is_empty(source)]
    lengths = [len(source.text) for source in said]
    most = max(_LEAST_CHARS, even_share(lengths, int(min(share, 1.0) * sum(lengths))))
    lines: list[str] = []
    for source in said:
        lines.append(f"[#{source.seq}] {speaker(source)}: {_no_forged_heads(both_ends(source.text, most))}")
        lines += [f"  calls {call.name}({both_ends(call.arguments, _ARGUMENT_CHARS)})" for call in source.calls]
    return "\n".join(lines)


def sources_from(stretch: Sequence[LogMessage]) -> list[Source]:
    """The messages as the summarisers read them."""
    return [_source(message) for message in stretch]


def _source(stored: LogMessage) -> Source:
    payload = stored.payload
    role = role_of(payload) or "user"
    fields = unwrap(payload)
    call_id = fields.get("tool_call_id")
    return Source(
        seq=stored.seq,
        role=role,
        name=None if role == "tool" else payloads.name(payload),
        text=_text(payload),
        said_at=payloads.said_at(payload),
        tool_name=payloads.name(payload) if role == "tool" else None,
        is_tool_result=role == "tool",
        calls=tuple(
            SourceCall(name=call.name, arguments=as_text(call.arguments), call_id=call.id or None)
            for call in calls_of(payload)
        ),
        call_id=call_id if isinstance(call_id, str) else None,
    )


def _text(payload: Mapping[str, Any]) -> str:
    """What it says; images and files are named, so that a summary can say that there were any."""
    said, shown = payloads.text(payload), media_labels(payload)
    return "\n".join((said, *shown) if said else shown) if shown else said
