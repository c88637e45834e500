"""What the demo found, as values: for a table, for JSON and for a test."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoSearch:
    """A question about something that was said at the very beginning."""

    query: str
    seq: int
    """Where in the log its best answer stands; 0 when nothing was found."""
    role: str
    text: str
    in_checkpoint: bool
    """Whether the framework's own state still has that message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoResult:
    """Three counts of the same conversation, and the proof of one of them."""

    conversation_id: str
    database: str | None
    """The address of the database it was captured into; None for a temporary file, which is gone."""
    turns: int
    said: int
    """Messages that were really said, counted by a witness inside the agent."""
    in_checkpoint: int
    """Those of them that the framework's state still has."""
    in_log: int
    """Those of them that the log has, as history."""
    is_exact: bool
    """Whether the log's history is just what was said: each message once, in order, in the same words."""
    summaries: int
    """Summaries that the framework made of the rest; the log keeps them apart from history."""
    verified_entries: int
    """Entries whose hashes were computed anew and whose chain holds."""
    is_verified: bool
    searches: Sequence[DemoSearch]
    seconds: float

    @property
    def ok(self) -> bool:
        """Whether the demo shows what it is there to show."""
        found = all(search.seq and not search.in_checkpoint for search in self.searches)
        return self.is_exact and self.is_verified and found and self.in_log == self.said > self.in_checkpoint

    def as_json(self) -> dict[str, Any]:
        """The same as one JSON document."""
        return {**asdict(self), "ok": self.ok}
