"""How recall is set, and what it gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Literal, overload

from everthread.core.errors import Invalid
from everthread.recall.evidence import RecallWeights

Scope = Literal["conversation", "owner"]
SCOPES: tuple[Scope, ...] = ("conversation", "owner")
_MOST_WEIGHT = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallPolicy:
    """How the old is looked for."""

    top_k: int = 3
    """How many episodes `context(query=…)` brings back: a user's turn with its answer."""
    scope: Scope = "conversation"
    """Where `recall` looks unless it is told: in its conversation, or in all that its owner has."""
    time_limit_seconds: float = 2.0
    """How long meaning may take; words answer without it then, and say so."""
    weights: RecallWeights = field(default_factory=RecallWeights)

    def __post_init__(self) -> None:
        check_scope(self.scope)
        if isinstance(self.top_k, bool) or not isinstance(self.top_k, int) or not 0 <= self.top_k <= 100:
            raise Invalid(f"must be a whole number from 0 to 100, not {self.top_k!r}", field="recall.top_k")
        if not 0 < self.time_limit_seconds <= 600:
            raise Invalid(
                f"must be above 0, up to 600, not {self.time_limit_seconds!r}", field="recall.time_limit_seconds"
            )
        for one in fields(self.weights):
            value = getattr(self.weights, one.name)
            most = 1.0 if one.name == "meaning" else 100_000 if one.name == "alone_tokens" else _MOST_WEIGHT
            if not 0 <= value <= most or (one.name == "alone_tokens" and value < 1):
                raise Invalid(f"must be from 0 to {most:g}, not {value!r}", field=f"recall.weights.{one.name}")


def check_scope(scope: object) -> Scope:
    """A scope, or Invalid."""
    for known in SCOPES:
        if scope == known:
            return known
    raise Invalid(f"must be one of {', '.join(SCOPES)}, not {scope!r}", field="scope")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallHit:
    """A message that has to do with what was asked, or the passage of it that has."""

    conversation_id: str
    ids: tuple[str, ...]
    """The messages that the text is from."""
    seqs: tuple[int, ...]
    text: str
    score: float
    """Compares only with the others of the same question."""
    said_at: datetime
    speaker: str
    """The name it was said under, else the role."""
    is_passage: bool = False
    """Whether the text is a part of a longer message."""


@dataclass(frozen=True, slots=True)
class RecallHits(Sequence[RecallHit]):
    """What was recalled, best first, and how well it could be looked for."""

    items: tuple[RecallHit, ...] = ()
    is_behind: bool = False
    """Whether some messages could not be found by meaning yet, because their vectors are still to be made."""
    unanswered: tuple[str, ...] = ()
    """Parts that did not answer, with why; words alone were searched then."""
    truncated: bool = False
    """Whether a word of the question is so common that only the newest messages with it were looked at."""
    by_meaning: bool = False
    """Whether likeness in meaning took part; without an embedder it never does."""

    @overload
    def __getitem__(self, index: int) -> RecallHit: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[RecallHit, ...]: ...
    def __getitem__(self, index: int | slice) -> RecallHit | tuple[RecallHit, ...]:
        return self.items[index]

    def __len__(self) -> int:
        return len(self.items)
