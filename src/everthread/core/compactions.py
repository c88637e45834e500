"""A compaction: a summary that stands for a stretch of one path, in views only. The log never changes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


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
    """1 is made from messages, each higher one from summaries of the level below."""
    first_seq: int
    last_seq: int
    after_seq: int
    """The message before the stretch on its path; 0 when it begins the conversation."""
    branch: int
    """The number of the branch that holds the last message. A path has the whole stretch when it has that one."""
    span_hash: str
    """Of the revisions in the stretch: the same span again is no new compaction."""
    children: tuple[str, ...]
    """The compactions of the level below that it was made from."""
    summary: str
    strategy: str
    model: str | None
    trigger: str
    original_count: int
    """Messages in the model's view before, and …"""
    new_count: int
    """… after, the summary counted as one."""
    tokens_before: int
    tokens_after: int
    facts_total: int
    facts_kept: int
    seconds: float
    created_at: datetime
    undone_at: datetime | None = None
    invalid_at: datetime | None = None
    """When a message inside was revised, deleted or erased: from then on no view uses it."""

    @property
    def is_live(self) -> bool:
        """Whether views may use it: neither undone nor invalidated by a later change of its messages."""
        return self.undone_at is None and self.invalid_at is None
