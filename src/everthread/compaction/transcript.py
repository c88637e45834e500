"""What summarisers may see of a span: its messages without secrets, and for a model all of them as one text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from everthread.compaction.sources import READ_CHARS, Source, both_ends, is_empty, prepared, speaker
from everthread.context.clamp import even_share

Redact = Callable[[str], str]
"""Takes secrets out of a text."""

_MARGIN_CHARS = 10_000
"""Redacted beyond what is read of a long text: a secret that the cut goes through is then still found whole."""
_LEAST_CHARS = 200
_ARGUMENT_CHARS = 400
"""Of a call's arguments a model is shown the two ends; its result says what became of it."""


def redacted(sources: Sequence[Source], redact: Redact) -> Sequence[Source]:
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


def transcript(sources: Sequence[Source], *, share: float = 1.0) -> str:
    """The messages as one text, each after its number and its speaker.

    `share` below 1 is the part that a model should be given: the longest messages are then shown by their two ends.
    """
    said = [source for source in prepared(sources) if not is_empty(source)]
    lengths = [len(source.text) for source in said]
    most = max(_LEAST_CHARS, even_share(lengths, int(min(share, 1.0) * sum(lengths))))
    return "\n".join(line for source in said for line in _lines(source, most))


def _lines(source: Source, most_chars: int) -> list[str]:
    calls = [f"  calls {call.name}({both_ends(call.arguments, _ARGUMENT_CHARS)})" for call in source.calls]
    return [f"[#{source.seq}] {speaker(source)}: {both_ends(source.text, most_chars)}", *calls]
