"""The events of compactions, recall and turns: ids, numbers and a few fixed words, never what anybody said.

A conversation passes each event to a `Listener`, which logs and counts it. `name` and `level` are its log line's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Literal, Protocol

from everthread.core.timings import Timings

Level = Literal["info", "warning", "error"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionTriggered:
    """A compaction begins."""

    name: ClassVar[str] = "compaction_triggered"
    level: ClassVar[Level] = "info"

    owner: str
    conversation_id: str
    trigger: str
    """`threshold`, `messages`, `hard_limit` or `manual`."""
    used_tokens: int
    """What the next request would count to; without a budget, what summaries and window count to."""
    usage_percent: float | None
    """Of the budget; None when no budget is known, as by hand."""
    message_count: int
    """Messages that no summary stands for."""
    threshold: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionCompleted:
    """A compaction ended without an error."""

    name: ClassVar[str] = "compaction_completed"
    level: ClassVar[Level] = "info"

    owner: str
    conversation_id: str
    trigger: str
    before_count: int
    """Messages that no summary stands for, before …"""
    after_count: int
    """… and after, the summary counted as one."""
    compressed: bool
    """False when nothing was old enough to be summarised."""
    summary_length: int
    """In characters."""
    tokens_before: int
    """Of what is summarised."""
    tokens: int
    """Of the summaries that stand for it."""
    seconds: float
    by: str
    """`model`, `model-terse`, `extract`, `terse` or `condense`; empty when nothing was summarised."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionFailed:
    """A compaction came to nothing; the view is what it was."""

    name: ClassVar[str] = "compaction_failed"
    level: ClassVar[Level] = "warning"

    owner: str
    conversation_id: str
    trigger: str
    reason: str
    """`not-smaller` or `conflict`."""
    will_wait_for_hard_limit: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionCancelled:
    """Whoever waited for a compaction gave it up; what was summarised until then stays."""

    name: ClassVar[str] = "compaction_cancelled"
    level: ClassVar[Level] = "info"

    owner: str
    conversation_id: str
    trigger: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionException:
    """Something raised in a compaction: a summary model, the database, a defect."""

    name: ClassVar[str] = "compaction_exception"
    level: ClassVar[Level] = "error"

    owner: str
    conversation_id: str
    trigger: str
    error: str
    """Its kind by name: what it says may quote what was sent."""
    will_continue: bool
    """Whether the compaction, or at least the turn, goes on without it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryRefused:
    """A summary model's answer could not be taken; the next attempt follows."""

    name: ClassVar[str] = "summary_refused"
    level: ClassVar[Level] = "warning"

    owner: str
    conversation_id: str
    trigger: str
    stage: str
    """`model` or `model-terse`."""
    reason: str
    """`timeout`, or why the gate refused it: `empty`, `too-long`, `echo`, `tool-syntax` …"""


@dataclass(frozen=True, slots=True, kw_only=True)
class TruncationBegun:
    """The request would exceed the hard limit: from here on it is made to fit. The log is not touched."""

    name: ClassVar[str] = "truncation_begun"
    level: ClassVar[Level] = "warning"

    owner: str
    conversation_id: str
    message_count: int
    used_tokens: int
    max_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TruncationDone:
    """The request fits."""

    name: ClassVar[str] = "truncation_done"
    level: ClassVar[Level] = "warning"

    owner: str
    conversation_id: str
    before_count: int
    """Messages that no summary stood for."""
    after_count: int
    """Messages shown, whole or in part."""
    removed_count: int
    """Messages now summarised or left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """A turn asked for what was said before its window."""

    name: ClassVar[str] = "recalled"
    level: ClassVar[Level] = "info"

    owner: str
    conversation_id: str
    turn_id: str
    found: int
    """Messages that were brought back."""
    seconds: float
    """For the whole request: the window and the summaries, and what was looked for."""
    degraded: bool
    """Whether it failed or took too long, so that the turn went on without it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnEnded:
    """A turn is over."""

    name: ClassVar[str] = "turn_ended"
    level: ClassVar[Level] = "info"

    owner: str
    conversation_id: str
    turn_id: str
    state: str
    """`complete`, `failed` or `cancelled`; another where a second process ended it."""
    seconds: float
    """Since it was begun here, what it waited for others included."""
    input_tokens: int
    """As the provider counts them …"""
    output_tokens: int
    """… in all its requests."""


Event = (
    CompactionTriggered
    | CompactionCompleted
    | CompactionFailed
    | CompactionCancelled
    | CompactionException
    | SummaryRefused
    | TruncationBegun
    | TruncationDone
    | Recalled
    | TurnEnded
)


TimingsReader = Callable[[], Mapping[tuple[str, ...], Timings]]
"""Gives timings by the values of their labels; without labels, by the empty tuple."""


class Metrics(Protocol):
    """Counters since the database was opened in this process: `et.metrics`.

    ```python
    print(et.metrics.values())
    print(et.metrics.text())  # for Prometheus
    ```
    """

    def text(self) -> str:
        """Return the counters in Prometheus' text format."""

    def values(self) -> Mapping[str, float]:
        """Return the counters by name and labels."""


class Listener(Protocol):
    """Receives every event."""

    def on_event(self, event: Event) -> None:
        """Log and count an event. Never raises, never waits."""

    def watch(self, name: str, meaning: str, read: TimingsReader, labels: Sequence[str] = ()) -> None:
        """Show timings among the metrics; they are read when the metrics are."""

    @property
    def metrics(self) -> Metrics: ...

    @property
    def recent(self) -> Sequence[tuple[datetime, Event]]:
        """The latest events with their times, newest first."""


class NoListener:
    """Ignores every event: for conversations that are only tried out."""

    def on_event(self, event: Event) -> None:
        """Ignore the event."""

    def watch(self, name: str, meaning: str, read: TimingsReader, labels: Sequence[str] = ()) -> None:
        """There is nothing to show them in."""

    @property
    def metrics(self) -> NoListener:
        return self

    @property
    def recent(self) -> tuple[()]:
        return ()

    def text(self) -> str:
        return ""

    def values(self) -> Mapping[str, float]:
        return {}
