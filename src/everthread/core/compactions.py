"""A compaction: a summary that stands for a stretch of one path, in views only. The log never changes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

FRAMEWORK: Final = "framework"
"""The trigger noted for a compaction that a framework or an agent made for itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction:
    """A summary and the stretch of messages it stands for in the model's view. The log itself never changes.

    ```python
    async for compaction in conv.compactions():
        print(compaction.first_seq, compaction.last_seq, compaction.tokens_before, "->", compaction.tokens_after)
    ```
    """

    id: str
    level: int
    """1 for a summary of messages, higher for a summary of the summaries below it."""
    first_seq: int
    last_seq: int
    after_seq: int
    """The seq of the message before the stretch; 0 at the beginning of the conversation."""
    branch: int
    """The number of the branch that the last message is on. A path that has this message has the whole stretch."""
    span_hash: str
    """The hash of the revisions in the stretch: compacting the same span again changes nothing."""
    children: tuple[str, ...]
    """The ids of the lower-level compactions it was made from."""
    summary: str
    strategy: str
    """How the summary was made: `model:chat`, `extract:coding`, `condense`, ... (not the setting of this name)."""
    model: str | None
    trigger: str
    original_count: int
    """How many messages the model's view had before …"""
    new_count: int
    """… and after, counting the summary as one."""
    tokens_before: int
    tokens_after: int
    facts_total: int
    facts_kept: int
    """Of the facts of the messages themselves, also where the summary was made from summaries."""
    seconds: float
    created_at: datetime
    undone_at: datetime | None = None
    invalid_at: datetime | None = None
    """When a message inside was revised, deleted or erased; since then no view uses it."""
    struck: tuple[str, ...] = ()
    """What a summary model said that the messages do not: each sentence that was taken out, after the reason."""

    @property
    def is_live(self) -> bool:
        """Whether views may use it: ours, neither undone nor invalidated by a later change of its messages."""
        return self.undone_at is None and self.invalid_at is None and self.trigger != FRAMEWORK
