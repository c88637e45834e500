"""The settings of compaction, and how they are read from a file, from variables and from the database.

Settings stand at three levels, each over the one before it: the server's (file and environment), the
conversation's, the request's. `apply_settings` puts one over the other and refuses what makes no sense, with the field
and the range that is allowed.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from typing import Any, Final, Literal, cast, get_args, get_type_hints

from everthread.context.budget import check_range
from everthread.context.window import WindowBounds
from everthread.core.errors import Invalid

ExpectedKind = Literal["auto", "chat", "tool-heavy", "coding"]
Trigger = Literal["threshold", "messages", "hard_limit", "manual"]
NO_MODEL: Final = "none"
"""The `summary_model` that switches off whatever model there is."""
AUTOMATIC: tuple[Trigger, ...] = ("threshold", "messages")
"""Those that nothing forces: what a person has undone stays so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionPolicy:
    """When and how conversations are compacted. Every field can also be set for the server, a conversation or a call.

    ```python
    policy = everthread.CompactionPolicy(threshold=0.7, keep_recent=20)
    et = everthread.open("memory://", compaction=policy)
    ```
    """

    enabled: bool = True
    """Whether it happens automatically. Manual compactions and the hard limit work either way."""
    compact_ahead: bool = False
    """Whether a conversation is summarised, and read for memories, while it grows, before anybody has asked for its
    context. Otherwise one that is only archived costs its log and the index of its words, and nothing more."""
    threshold: float = 0.8
    """The share of the budget at which a compaction is due."""
    keep_recent: int = 10
    """How many of the newest messages are not compacted, unless they alone take a quarter of the budget."""
    max_message_history: int | None = None
    """How many messages the window may grow to; a compaction is also due shortly before that. None: as many as
    `threshold` has tokens for, up to 1,000."""
    recent_share: float = 0.15
    """The share of the budget that the newest messages take after an automatic compaction, where
    `max_message_history` is None; what is older is summarised."""
    summaries_share: float = 0.4
    """The share of the budget that summaries may take. Each stretch is shown in the most detail that fits, the newest
    first; where not even the least detail fits, the oldest summaries are shortened."""
    summary_max_tokens: int = 4_000
    """How long a summary may be at most. It takes a quarter of what it stands for, or 1,000 tokens if that is more."""
    summary_model: str | None = None
    """Who writes summaries: a model by its name; None for the one that was given to `open`, if any; `none` for the
    extractive summariser, which needs no model."""
    summary_timeout_seconds: float = 30.0
    """How long a summary model may take; after that the extractive summariser writes the summary."""
    strategy: ExpectedKind = "auto"
    """What kind of conversation the summariser should expect; `auto` detects it. (`Compaction.strategy` is
    another thing: how one summary was made.)"""
    fan_in: int = 8
    """When a level has more summaries than this, the oldest are condensed into one of the next level."""
    leaf_max_tokens: int = 16_000
    """How many tokens of messages one summary may stand for; a longer stretch becomes several summaries."""
    leaf_max_messages: int = 60
    """How many messages one summary may stand for."""
    least_freed: float = 0.1
    """After one that freed a smaller share of the request, none is made automatically until a new user turn."""
    recalled_max_tokens: int = 1000
    """How many tokens `context(query=…)` may bring back from before the window; 0 for none."""
    memory_max_tokens: int = 600
    """How many tokens memories may take at the start of a context, and again beside what is recalled; 0 for none."""
    extract_memories: bool = True
    """Whether what users say about themselves is remembered automatically."""
    breaker_failures: int = 3
    """How many failures of a summary model in a row it takes until it is not asked for a while."""
    breaker_seconds: float = 60.0
    """How long it is not asked then."""

    def __post_init__(self) -> None:
        for name in ("enabled", "compact_ahead", "extract_memories"):
            if not isinstance(getattr(self, name), bool):
                raise Invalid(f"must be true or false, not {getattr(self, name)!r}", field=name)
        check_range("threshold", self.threshold, 0.05, 1.0)
        if self.max_message_history is not None:
            check_range("max_message_history", self.max_message_history, 10, MOST_MESSAGES)
        check_range("keep_recent", self.keep_recent, 1, (self.max_message_history or MOST_KEPT + 1) - 1)
        check_range("recent_share", self.recent_share, 0.01, 0.75)
        check_range("summaries_share", self.summaries_share, 0.05, 0.75)
        check_range("summary_max_tokens", self.summary_max_tokens, 50, 100_000)
        check_range("summary_timeout_seconds", self.summary_timeout_seconds, 0.01, 3600.0)
        check_range("fan_in", self.fan_in, 2, 100)
        check_range("leaf_max_tokens", self.leaf_max_tokens, 500, 1_000_000)
        check_range("leaf_max_messages", self.leaf_max_messages, 4, 10_000)
        check_range("least_freed", self.least_freed, 0.0, 1.0)
        check_range("recalled_max_tokens", self.recalled_max_tokens, 0, 100_000)
        check_range("memory_max_tokens", self.memory_max_tokens, 0, 100_000)
        check_range("breaker_failures", self.breaker_failures, 1, 1000)
        check_range("breaker_seconds", self.breaker_seconds, 0.0, 86_400.0)
        if self.strategy not in get_args(ExpectedKind):
            raise Invalid(
                f"must be one of {', '.join(get_args(ExpectedKind))}, not {self.strategy!r}", field="strategy"
            )
        if not isinstance(self.summary_model, str | None):
            raise Invalid("must be a model's name, or null for none", field="summary_model")

    @property
    def message_mark(self) -> int:
        """How many uncovered messages make a compaction due.

        It lies a turn or two before the window is full and would have to jump, so that the summary is ready in time and
        the beginning of the request changes once, not twice.
        """
        return _mark(window_bounds(self))

    @property
    def ahead_mark(self) -> int:
        """The same where nobody has said how large the model's window is."""
        most = self.max_message_history or MESSAGES_OF_UNKNOWN_WINDOW
        return _mark(_bounds(most, min(self.keep_recent, most - 1)))


MESSAGES_OF_UNKNOWN_WINDOW: Final = 40
MOST_MESSAGES: Final = 1_000
"""Of a window that only tokens bound. Each message of a request costs some 0.03 ms whenever one is built, and as much
again in a turn of our agent, where LangGraph and LangChain read it too."""
MOST_KEPT: Final = 99
"""Of `keep_recent` where no number bounds the window."""
SUMMARY_SHARE: Final = 4
"""What part of its source a summary may take, where that is more than `ORDINARY_SUMMARY_TOKENS`."""
ORDINARY_SUMMARY_TOKENS: Final = 1_000
"""How long any summary may be, however short its source."""


def summary_tokens(policy: CompactionPolicy, source_tokens: int) -> int:
    """How long a summary of so much may be."""
    return min(policy.summary_max_tokens, max(ORDINARY_SUMMARY_TOKENS, source_tokens // SUMMARY_SHARE))


def window_bounds(policy: CompactionPolicy) -> WindowBounds:
    """The window's part of the settings."""
    return _bounds(policy.max_message_history or MOST_MESSAGES, policy.keep_recent)


def _mark(bounds: WindowBounds) -> int:
    return bounds.max_message_history - bounds.slack // 2


@cache
def _bounds(max_message_history: int, keep_recent: int) -> WindowBounds:
    """Made once: every append asks for them."""
    return WindowBounds(max_message_history=max_message_history, keep_recent=keep_recent)


def check_trigger(trigger: object) -> Trigger:
    """One of the words for why a compaction is made, or Invalid."""
    for known in get_args(Trigger):
        if trigger == known:
            return cast(Trigger, known)
    raise Invalid(f"must be one of {', '.join(get_args(Trigger))}, not {trigger!r}", field="trigger")


def apply_settings(policy: CompactionPolicy, changes: Mapping[str, Any]) -> CompactionPolicy:
    """The policy with these fields set; Invalid names an unknown field or a value out of range. A window too small
    for the `keep_recent` there was lowers that."""
    if not isinstance(changes, Mapping):
        raise Invalid(f"must be a dict of settings, not {type(changes).__name__}", field="compaction")
    known = {field.name for field in fields(CompactionPolicy)}
    for name in changes:
        if name not in known:
            raise Invalid(f"unknown compaction setting; available: {', '.join(sorted(known))}", field=name)
    most = changes.get("max_message_history")
    if "keep_recent" not in changes and isinstance(most, int) and 1 < most <= policy.keep_recent:
        changes = {**changes, "keep_recent": most - 1}
    return replace(policy, **changes)


def apply_stored_settings(policy: CompactionPolicy, kept: Mapping[str, Any]) -> CompactionPolicy:
    """The policy with settings that were valid when they were kept, as far as they still are: what was set below
    them since may not stop a turn."""
    try:
        return apply_settings(policy, kept)
    except Invalid:
        for name, value in kept.items():
            with suppress(Invalid):
                policy = apply_settings(policy, {name: value})
        return policy


def policy_as_dict(policy: CompactionPolicy) -> dict[str, Any]:
    """The policy as plain values."""
    return asdict(policy)


LEGACY_VARIABLE = "MAX_MESSAGE_HISTORY"
"""Known by this name to programs that had such a setting before; it is honoured wherever a database is opened."""
SETTING_NAMES = tuple(field.name for field in fields(CompactionPolicy))

_TYPES = get_type_hints(CompactionPolicy)
_BOOLEANS = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}


def parse_setting(name: str, text: str) -> object:
    """The value that the text of a variable means; text that means none is left for the policy to refuse."""
    kind = int if name == "max_message_history" else _TYPES[name]
    if kind is bool:
        return _BOOLEANS.get(text.strip().lower(), text)
    if kind not in (int, float):
        return text
    try:
        return int(text) if kind is int else float(text)
    except ValueError:
        return text


def policy_from_settings(values: Mapping[str, Any]) -> CompactionPolicy:
    """The defaults with these values."""
    return apply_settings(CompactionPolicy(), values)


def policy_from_environment(environ: Mapping[str, str]) -> CompactionPolicy:
    """What a program has that only opens a database: the defaults, and the one variable of that old name."""
    text = environ.get(LEGACY_VARIABLE)
    if not text:
        return CompactionPolicy()
    try:
        return policy_from_settings({"max_message_history": parse_setting("max_message_history", text)})
    except Invalid as problem:
        raise Invalid(f"{problem} (set by {LEGACY_VARIABLE} in the environment)", field=LEGACY_VARIABLE) from None
