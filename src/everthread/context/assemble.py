"""Assembling a request: what the model will see, from what the log and the summaries hold. Pure.

In this order: the system prompt · a record of what is before the window (summaries oldest first, pinned messages)
as quoted data · the window · the newest user message. What stands before the newest user message only grows between
two compactions, so prompt caches stay warm. Every message of the path is in a summary's span, in the window, or
named in `omitted`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Literal

import orjson

from everthread.context.budget import Budget, message_tokens
from everthread.context.clamp import DEFAULT_POLICY, ClampPolicy, elide
from everthread.context.dialect import Fields
from everthread.context.fit import fit
from everthread.context.openai import to_openai
from everthread.context.quote import quoted, record
from everthread.context.repair import repair_report
from everthread.context.shape import Provider, is_system
from everthread.context.tokens import count_tokens
from everthread.context.units import spans
from everthread.core import payloads

RENDERER = 1
"""The version of this rendering; a manifest names it, so that a later one does not claim to show what was sent."""

PartKind = Literal["system", "pinned", "summary", "window", "recalled"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A message of the log, as assembling needs it."""

    seq: int
    entry_seq: int
    payload: Mapping[str, Any]
    tokens: int
    said: str = ""
    """When it was said, for a quotation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summed:
    """A summary that stands for a stretch of the path."""

    id: str
    first_seq: int
    last_seq: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ingredients:
    """Everything a request is made of."""

    system: str | None = None
    summaries: Sequence[Summed] = ()
    pinned: Sequence[Stored] = ()
    """Pinned messages that are before the window."""
    window: Sequence[Stored] = ()
    passed_over: tuple[int, int] | None = None
    """The stretch between the summaries and the window, when the window had to jump."""
    old_before: int = 0
    """How many messages of the window are old, so that their long tool output is shown in part."""
    live_calls: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One part of a request and what it costs."""

    kind: PartKind
    tokens: int
    seqs: tuple[int, ...] = ()
    summary_ids: tuple[str, ...] = ()
    exact: bool = True
    """Whether the count is the model's own, or an estimate for a model whose vocabulary we do not have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Omission:
    """A message that the model does not see, and why; or a stretch of them."""

    seq: int
    reason: str
    last_seq: int | None = None
    """Where the stretch ends, when it is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What was taken and what was left out, small enough to keep for every model call.

    `digest` is the hash of the rendered messages: rendering them again from the log must give the same, or
    something was erased since.
    """

    renderer: int
    system: str | None
    summary_ids: tuple[str, ...]
    pinned: tuple[tuple[int, int], ...]
    """(seq, entry_seq) of each: which revision was shown."""
    window: tuple[tuple[int, int], ...]
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """A request, ready to be sent."""

    messages: list[Fields]
    """In OpenAI's shape."""
    parts: tuple[Part, ...]
    omitted: tuple[Omission, ...]
    manifest: Manifest
    tokens: int
    """What it counts to; never above `limit`."""
    limit: int
    wanted_tokens: int = field(default=0)
    """What it would count to with nothing shortened or left out: what decides whether a compaction is due."""


def assemble(
    given: Ingredients,
    budget: Budget,
    *,
    provider: Provider | None = None,
    policy: ClampPolicy = DEFAULT_POLICY,
    exact: bool = True,
) -> Context:
    """The request within the budget. ContextOverflow when the system prompt leaves no room at all."""
    draft = _Draft(given, provider)
    sizes = [message_tokens(message) for message in draft.messages]
    short = elide(draft.messages, old_before=draft.old_before, seqs=draft.seqs, policy=policy)
    shown_sizes = [
        size if shown is message else message_tokens(shown)
        for message, shown, size in zip(draft.messages, short.messages, sizes, strict=True)
    ]
    grouped = [[short.messages[index] for index in span] for span in spans(short.messages)]
    fitted = fit(grouped, budget, pinned=draft.fixed, seqs=draft.seqs, tokens=shown_sizes, policy=policy)
    messages = [dict(message) for message in fitted.messages]
    omitted = draft.omissions([gone.index for gone in fitted.omitted])
    clamped = sorted(
        {seq for clamp in (*short.clamps, *fitted.clamped) if (seq := draft.seqs[clamp.index]) is not None}
    )
    manifest = Manifest(
        renderer=RENDERER,
        system=given.system,
        summary_ids=tuple(summary.id for summary in given.summaries),
        pinned=tuple((stored.seq, stored.entry_seq) for stored in given.pinned),
        window=tuple((stored.seq, stored.entry_seq) for stored in given.window),
        passed_over=given.passed_over,
        old_before=given.old_before,
        live_calls=tuple(sorted(given.live_calls)),
        budget={name: getattr(budget, name) for name in ("window", "output_reserve", "tools_tokens", "factor")},
        provider=provider,
        clamped=tuple(clamped),
        omitted=omitted,
        repairs=tuple(f"{repair.kind}:{repair.call_id}" for repair in draft.repairs),
        tokens=fitted.tokens,
        digest=digest(messages),
    )
    return Context(
        messages=messages,
        parts=draft.parts(dict(zip(fitted.indexes, map(message_tokens, messages), strict=True)), exact),
        omitted=omitted,
        manifest=manifest,
        tokens=fitted.tokens,
        limit=fitted.limit,
        wanted_tokens=sum(shown_sizes),
    )


def digest(messages: Sequence[Mapping[str, Any]]) -> str:
    """The hash of rendered messages."""
    return sha256(orjson.dumps(list(messages), option=orjson.OPT_SORT_KEYS)).hexdigest()


class _Draft:
    """The request before anything is shortened: one dialect, valid, and each message with its source."""

    def __init__(self, given: Ingredients, provider: Provider | None) -> None:
        self._given = given
        laid: list[tuple[Fields, int | None]] = []
        if given.system:
            laid.append(({"role": "system", "content": given.system}, None))
        self._record = self._written_record()
        record_at = len(laid) if self._record is not None else None
        if self._record is not None:
            laid.append((self._record, None))
        for stored in given.window:
            laid += [(message, stored.seq) for message in to_openai(stored.payload)]
        report = repair_report([message for message, _ in laid], given.live_calls, provider=provider)
        self.messages: tuple[Fields, ...] = report.messages
        self.repairs = report.repairs
        self.seqs = [next((laid[at][1] for at in sources), None) for sources in report.sources]
        self.fixed = [index for index, sources in enumerate(report.sources) if sources == (record_at,)]
        self._shown = {laid[at][1] for sources in report.sources for at in sources}
        self.old_before = self._first_recent(given)

    def _written_record(self) -> Fields | None:
        blocks = [
            quoted("summary", summary.text, messages=f"{summary.first_seq}-{summary.last_seq}")
            for summary in self._given.summaries
        ]
        return record([*blocks, *self._pinned_blocks()]) if blocks or self._given.pinned else None

    def _pinned_blocks(self) -> list[str]:
        return [
            quoted(
                "pinned",
                payloads.text(stored.payload),
                message=stored.seq,
                speaker=payloads.name(stored.payload) or payloads.role(stored.payload),
                said=stored.said or None,
            )
            for stored in self._given.pinned
        ]

    def _first_recent(self, given: Ingredients) -> int:
        """Where the recent messages begin, among those of the request."""
        old = {stored.seq for stored in given.window[: given.old_before]}
        return next((at for at, seq in enumerate(self.seqs) if seq is not None and seq not in old), len(self.seqs))

    def omissions(self, dropped: Sequence[int]) -> tuple[Omission, ...]:
        """Everything of the path that is neither shown nor summed up."""
        gone: list[Omission] = []
        if self._given.passed_over is not None:
            first, last = self._given.passed_over
            gone.append(Omission(seq=first, last_seq=last, reason="passed_over"))
        unshown = [stored.seq for stored in self._given.window if stored.seq not in self._shown]
        gone += [Omission(seq=seq, reason="unanswerable") for seq in unshown]
        lost = dict.fromkeys(seq for index in dropped if (seq := self.seqs[index]) is not None)
        gone += [Omission(seq=seq, reason="over_budget") for seq in lost]
        if set(dropped) & set(self.fixed):
            gone += [
                Omission(seq=summary.first_seq, last_seq=summary.last_seq, reason="over_budget")
                for summary in self._given.summaries
            ]
            gone += [Omission(seq=stored.seq, reason="over_budget") for stored in self._given.pinned]
        return tuple(sorted(gone, key=lambda omission: omission.seq))

    def parts(self, tokens: Mapping[int, int], exact: bool) -> tuple[Part, ...]:
        """What each part counts to; `tokens` by the position of what is sent."""
        system = sum(count for index, count in tokens.items() if is_system(self.messages[index]))
        recorded = sum(count for index, count in tokens.items() if index in self.fixed)
        pinned = min(recorded, sum(map(count_tokens, self._pinned_blocks()))) if recorded else 0
        seqs = tuple(dict.fromkeys(seq for index in tokens if (seq := self.seqs[index]) is not None))
        found = (
            Part(kind="system", tokens=system, exact=exact),
            Part(
                kind="summary",
                tokens=recorded - pinned,
                seqs=tuple(seq for summary in self._given.summaries for seq in (summary.first_seq, summary.last_seq)),
                summary_ids=tuple(summary.id for summary in self._given.summaries),
                exact=exact,
            ),
            Part(kind="pinned", tokens=pinned, seqs=tuple(stored.seq for stored in self._given.pinned), exact=exact),
            Part(kind="window", tokens=sum(tokens.values()) - system - recorded, seqs=seqs, exact=exact),
        )
        return tuple(part for part in found if part.tokens)
