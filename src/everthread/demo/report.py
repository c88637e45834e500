"""What the demo found: as values, as JSON, and as tables in a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text


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
    """Messages that were really said, counted inside the agent."""
    in_checkpoint: int
    """How many of them the framework's state still has."""
    in_log: int
    """How many of them the log has, as history."""
    is_exact: bool
    """Whether the log's history is just what was said: each message once, in order, in the same words."""
    summaries: int
    """Summaries that the framework made of the rest; the log keeps them apart from history."""
    verified_entries: int
    """Entries whose hash was recomputed and whose chain holds."""
    is_verified: bool
    searches: Sequence[DemoSearch]
    seconds: float

    @property
    def ok(self) -> bool:
        """Whether the demo proves its point."""
        found = all(search.seq and not search.in_checkpoint for search in self.searches)
        return self.is_exact and self.is_verified and found and self.in_log == self.said > self.in_checkpoint

    def as_json(self) -> dict[str, Any]:
        """The same as one JSON document."""
        return {**asdict(self), "ok": self.ok}


def render(result: DemoResult, console: Console) -> None:
    """Print the counts, the searches, and what to try next."""
    console.print(f"\n{result.turns} turns of a scripted agent, under LangChain's SummarizationMiddleware:\n")
    console.print(_counts(result))
    console.print("\nAsked at the end about what was said at the beginning:\n")
    console.print(_searches(result))
    console.print(f"\n{_next_step(result)}\n", soft_wrap=True)


def _counts(result: DemoResult) -> Table:
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column()
    table.add_column(justify="right", style="bold")
    table.add_column()
    kept = f"{result.in_checkpoint / result.said:.0%} of them" if result.said else ""
    exact = "every one, once, in order" if result.is_exact else "NOT what was said"
    table.add_row("messages really said", str(result.said), "counted by a witness inside the agent")
    table.add_row(
        "left in the checkpoint", str(result.in_checkpoint), f"{kept}, and the last of {result.summaries} summaries"
    )
    table.add_row("in everthread's log", str(result.in_log), exact, style="green" if result.is_exact else "red")
    proof = "hash chain verified" if result.is_verified else "hash chain BROKEN"
    table.add_row(
        "entries of the log", str(result.verified_entries), proof, style="green" if result.is_verified else "red"
    )
    return table


def _searches(result: DemoResult) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("search", no_wrap=True)
    table.add_column("seq", justify="right", no_wrap=True)
    table.add_column("found in the log")
    table.add_column("checkpoint", no_wrap=True)
    for search in result.searches:
        found = Text(search.text.replace("\n", " ")) if search.seq else Text("nothing", style="red")
        table.add_row(search.query, str(search.seq or ""), found, "still there" if search.in_checkpoint else "gone")
    return table


def _next_step(result: DemoResult) -> str:
    took = f"{result.seconds:.1f} s, no network."
    if result.database is None:
        return f"{took} To keep it and look around: everthread demo --database sqlite:///demo.db"
    return f"{took} Look around: everthread show {result.conversation_id} --database {result.database}"
