"""What a model was shown, by reference: small enough to keep for every call, enough to render it again.

It names entries and summaries instead of holding their text, so what is erased from the log is gone from here too.
The system prompt and the tool schemas, the same in a thousand requests, are named by their hash and kept once. The
digest of the rendered messages shows whether a context rendered again is what was sent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from hashlib import sha256
from typing import Any

import orjson

from everthread.context.budget import Budget

RENDERER = 10
"""The version of the rendering; a manifest names it, so that a later one does not claim to show what was sent."""

QUARANTINED = "quarantined"
"""The reason for which a message is left out that is not to be trusted."""
MERGED = "summaries_merged"
"""The reason for a stretch whose summaries were shortened into one text, since there was no room for them."""
RECALL_DROPPED = "recall_over_budget"
"""The reason for a message that the question recalled, and that there was no room for."""

RevisionRef = tuple[int, int]
"""(seq, entry_seq) of a message: which revision was shown."""


PassageRef = tuple[int, int, int, int]
"""(seq, entry_seq, start, end): which characters of a message's text were recalled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Omission:
    """A message, or a stretch of messages, that the model does not see, and why.

    ```python
    context = await conv.context(budget=everthread.Budget(window=2_000))
    for omission in context.omitted:
        print(omission.seq, omission.last_seq, omission.reason)
    ```
    """

    seq: int
    reason: str
    last_seq: int | None = None
    """Where the stretch ends, if it is more than one message."""
    memory_id: str | None = None
    """The memory that is left out, where it is one; `seq` is then the message it is from, or 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What a request was made from, by reference, and what was left out of it.

    `digest` is the hash of the rendered messages. If rendering them again from the log gives a different one, something
    has been erased since.

    ```python
    context = await conv.context(system="You plan trips.")
    print(context.manifest.summary_ids, len(context.manifest.window), context.manifest.digest)
    ```
    """

    renderer: int
    system_digest: str | None
    tools_digest: str | None
    summary_ids: tuple[str, ...]
    pinned: tuple[RevisionRef, ...]
    window: tuple[RevisionRef, ...]
    recalled: tuple[PassageRef, ...]
    passed_over: tuple[int, int] | None
    old_before: int
    live_calls: tuple[str, ...]
    budget: Mapping[str, Any]
    provider: str | None
    clamped: tuple[int, ...]
    omitted: tuple[Omission, ...]
    repairs: tuple[str, ...]
    tokens: int
    digest: str
    standing: tuple[RevisionRef, ...] = ()
    memory_ids: tuple[str, ...] = ()
    """The memories at the beginning, which only change with a compaction."""
    reminded_ids: tuple[str, ...] = ()
    """The memories quoted with what was recalled."""
    summaries_room: int | None = None
    """How many tokens the summaries were made to fit in."""
    recalled_changes: tuple[tuple[int, int], ...] = ()
    """(seq, changed_by) of what was recalled and shown as changed since."""


def budget_fields(budget: Budget) -> dict[str, Any]:
    """What of a budget decides how a request is rendered."""
    return {name: getattr(budget, name) for name in ("window", "output_reserve", "tools_tokens", "factor")}


def text_digest(text: bytes) -> str:
    """The name of a text that many requests share."""
    return sha256(text).hexdigest()


def dump(manifest: Manifest) -> bytes:
    """The manifest as it is stored."""
    whole = {one.name: getattr(manifest, one.name) for one in fields(manifest)}
    return orjson.dumps({**whole, "window": list(_runs(manifest.window))})


def load(stored: bytes) -> Manifest:
    """The manifest as it was."""
    found: dict[str, Any] = orjson.loads(stored)
    for name in ("summary_ids", "live_calls", "clamped", "repairs", "memory_ids", "reminded_ids"):
        found[name] = tuple(found.get(name, ()))
    for name in ("pinned", "recalled", "standing", "recalled_changes"):
        found[name] = tuple(map(tuple, found.get(name, ())))
    found["window"] = tuple(ref for part in found["window"] for ref in _refs(*part))
    found["passed_over"] = found["passed_over"] and tuple(found["passed_over"])
    found["omitted"] = tuple(Omission(**omission) for omission in found["omitted"])
    return Manifest(**found)


def _runs(refs: Sequence[RevisionRef]) -> Iterator[Sequence[int]]:
    """The same, with (first, first, last) for messages that follow each other and were never revised."""
    first = last = 0
    for seq, entry_seq in refs:
        if seq == entry_seq == last + 1 and first:
            last = seq
            continue
        if first:
            yield (first, first) if first == last else (first, first, last)
        first = last = seq if seq == entry_seq else 0
        if seq != entry_seq:
            yield (seq, entry_seq)
    if first:
        yield (first, first) if first == last else (first, first, last)


def _refs(seq: int, entry_seq: int, last: int | None = None) -> Iterator[RevisionRef]:
    if last is None:
        yield (seq, entry_seq)
    else:
        yield from ((one, one) for one in range(seq, last + 1))


_PIECE = 2_048
"""Characters of a text that are written at once: for each, orjson asks for eight bytes or more."""


def messages_digest(messages: Sequence[Mapping[str, Any]]) -> str:
    """The hash of rendered messages as one JSON list with sorted keys, without ever holding that list as text."""
    hashed = sha256(b"[")
    for at, message in enumerate(messages):
        hashed.update(b"," if at else b"")
        content = message.get("content")
        if not isinstance(content, str) or len(content) <= _PIECE:
            hashed.update(orjson.dumps(message, option=orjson.OPT_SORT_KEYS))
            continue
        for piece in _with_long_text(message):
            hashed.update(piece)
    hashed.update(b"]")
    return hashed.hexdigest()


def _with_long_text(message: Mapping[str, Any]) -> Iterator[bytes]:
    """The same JSON, a part after the other."""
    for at, key in enumerate(sorted(message)):
        yield b"%c%b:" % (b"," if at else b"{", orjson.dumps(key))
        if key == "content":
            yield b'"'
            for start in range(0, len(text := message[key]), _PIECE):
                yield orjson.dumps(text[start : start + _PIECE])[1:-1]
            yield b'"'
        else:
            yield orjson.dumps(message[key], option=orjson.OPT_SORT_KEYS)
    yield b"}"
