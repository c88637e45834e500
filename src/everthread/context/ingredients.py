"""What a request is made from: the messages, summaries, memories and prompts that `assemble` is given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from everthread.context.clamp import text_reference
from everthread.context.message_format import count_leading_system
from everthread.core import payloads
from everthread.core.recent import Recent


@dataclass(frozen=True, slots=True, kw_only=True)
class LogMessage:
    """A message of the log, as assembling needs it."""

    seq: int
    entry_seq: int
    payload: Mapping[str, Any]
    tokens: int
    said: str = ""
    """When it was said, for a quotation."""
    prepared: dict[Any, Any] = field(default_factory=dict, init=False, compare=False, repr=False)
    """What `prepare` made of it, by provider."""


recent_messages: Recent[tuple[bytes, bytes, int, int], LogMessage] = Recent(16_000_000)
"""Those read lately, by the hashes of their entries: between two turns most of a window does not change."""
MESSAGE_BYTES = 1_500
"""What one takes there beside its texts."""


def quotable_text(payload: payloads.Payload) -> str:
    """The text of a message; where it only calls tools, what it calls them with."""
    return payloads.text(payload) or payloads.searchable(payload)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecalledPassage:
    """A passage of an earlier message that has to do with what is asked now."""

    stored: LogMessage
    start: int
    end: int
    """Where it stands in the message's text, by characters."""
    rank: int = 0
    """Its place among what was recalled, the best first: where not all of it fits, the last is left out first."""
    changed_by: tuple[int, ...] = ()
    """The messages that took it back or changed a part of it."""

    @property
    def is_whole(self) -> bool:
        return self.start == 0 and self.end >= len(self._whole)

    @property
    def _whole(self) -> str:
        """An empty passage stays empty: requests that were kept before calls were quoted are shown as they were."""
        return quotable_text(self.stored.payload) if self.end else payloads.text(self.stored.payload)

    @property
    def text(self) -> str:
        whole = self._whole
        passage = whole[self.start : self.end]
        return passage if self.is_whole else f"{passage}\n{text_reference(whole, self.stored.seq)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotedMemory:
    """A memory, as a request quotes it: by what of it never changes."""

    id: str
    text: str
    tokens: int | None = None
    """What the text counts to, where that is known."""
    noted: str = ""
    """When it was written down."""
    conversation: str | None = None
    """Where it is from, when that is another conversation."""
    message: int | None = None
    """The message of this conversation that it is from."""
    is_confirmed: bool = True
    """Whether it is the user's; else it may come from text that others wrote, and is quoted as such."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotedSummary:
    """A summary that stands for a stretch of the path."""

    id: str
    first_seq: int
    last_seq: int
    text: str
    tokens: int | None = None
    """What the text counts to, where that is known."""
    earlier_ids: tuple[str, ...] = ()
    """Summaries before it that were shortened with it into one text."""

    @property
    def ids(self) -> tuple[str, ...]:
        """All that it is made of, oldest first."""
        return (*self.earlier_ids, self.id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ingredients:
    """Everything a request is made of."""

    system: str | None = None
    standing: Sequence[LogMessage] = ()
    """System messages of the log that hold wherever the window is, without those that it begins with: they go into the
    system slot, after `system`."""
    tools: Sequence[Mapping[str, Any]] = ()
    """The schemas sent beside the messages; the budget has left room for them."""
    memories: Sequence[QuotedMemory] = ()
    """What is known of the user whatever is asked, as it was when the window last began anew."""
    summaries: Sequence[QuotedSummary] = ()
    summaries_room: int | None = None
    """How many tokens they were made to fit in."""
    pinned: Sequence[LogMessage] = ()
    """Pinned messages that are before the window."""
    window: Sequence[LogMessage] = ()
    recalled: Sequence[RecalledPassage] = ()
    reminded: Sequence[QuotedMemory] = ()
    """Memories that have to do with what is asked now, or are new."""
    quarantined: Sequence[int] = ()
    """Messages of the path that were taken out of every view; they are named as left out."""
    passed_over: tuple[int, int] | None = None
    """The stretch between the summaries and the window, when the window had to jump."""
    old_before: int = 0
    """How many messages of the window are old, so that their long tool output is shown in part."""
    live_calls: frozenset[str] = frozenset()
    is_of_older_renderer: bool = False
    """Whether the record says all that can be said of records, in English, as it did before renderer 10."""

    @property
    def leading(self) -> int:
        """How many messages of the window are instructions that the path begins with."""
        return (
            0 if self.summaries or self.passed_over else count_leading_system(stored.payload for stored in self.window)
        )
