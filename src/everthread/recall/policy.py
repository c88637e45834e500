"""The settings of recall: where it searches, how long search by meaning may take, and the weight of each signal in the
ranking (recall/ranking.py)."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Literal

from everthread.core.errors import Invalid

Scope = Literal["conversation", "owner"]
SCOPES: tuple[Scope, ...] = ("conversation", "owner")
_MAX_WEIGHT = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallWeights:
    """How much each signal counts in the ranking; 0 turns it off.

    ```python
    policy = everthread.RecallPolicy(weights=everthread.RecallWeights(meaning=0.5, date=0.0))
    ```
    """

    related: float = 0.6
    """What another word for the same thing counts beside the word that was asked for, at most."""
    neighbours: float = 0.4
    """How much of its score a neighbouring message passes on; half as much at each further step."""
    asking: float = 1.5
    """How many times as much a question passes on to the message after it."""
    topic: float = 0.3
    """How much it counts that the messages around are about the question's topic."""
    meaning: float = 0.3
    """The weight of meaning against words, for a question that the embedder understands."""
    user: float = 0.3
    """How much more the user's messages count, where speakers have no names."""
    assistant: float = 0.5
    """How much more the assistant's messages count, when the question asks what the assistant said."""
    speaker: float = 0.3
    """How much more the messages of a speaker count whom the question names, and those without any of its words."""
    wish: float = 0.55
    """What a standing wish gets beside the best message, where something is asked to be done."""
    date: float = 0.5
    """How much more messages count that are from the time the question names."""
    alone_tokens: int = 100
    """A message with this many tokens takes half as much from its neighbours as a short one."""
    tool_damping: float = 3.0
    """How strongly neighbours and meaning are damped as more of the messages are tool results."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallPolicy:
    """Where recall searches, how long it may take, and how it ranks.

    ```python
    et = everthread.open("memory://", recall=everthread.RecallPolicy(top_k=5, scope="owner"))
    ```
    """

    top_k: int = 3
    """How many episodes, a user's message with its answer, `context(query=…)` brings back."""
    scope: Scope = "conversation"
    """Where `recall` searches by default: in its conversation, or in everything its owner has."""
    time_limit_seconds: float = 2.0
    """How long the search by meaning may take; after that only words are searched, and the result says so."""
    embed_ahead: bool = False
    """Whether messages get their vectors as they are stored; else when meaning is first asked for in a conversation."""
    weights: RecallWeights = field(default_factory=RecallWeights)

    def __post_init__(self) -> None:
        check_scope(self.scope)
        if not isinstance(self.embed_ahead, bool):
            raise Invalid(f"must be true or false, not {self.embed_ahead!r}", field="recall.embed_ahead")
        if isinstance(self.top_k, bool) or not isinstance(self.top_k, int) or not 0 <= self.top_k <= 100:
            raise Invalid(f"must be a whole number from 0 to 100, not {self.top_k!r}", field="recall.top_k")
        if not 0 < self.time_limit_seconds <= 600:
            raise Invalid(
                f"must be above 0, up to 600, not {self.time_limit_seconds!r}", field="recall.time_limit_seconds"
            )
        for one in fields(self.weights):
            value = getattr(self.weights, one.name)
            most = 1.0 if one.name in ("meaning", "related") else 100_000 if one.name == "alone_tokens" else _MAX_WEIGHT
            if not 0 <= value <= most or (one.name == "alone_tokens" and value < 1):
                raise Invalid(f"must be from 0 to {most:g}, not {value!r}", field=f"recall.weights.{one.name}")


def check_scope(scope: object) -> Scope:
    """Return the scope. Raises Invalid when it is not one of `SCOPES`."""
    for known in SCOPES:
        if scope == known:
            return known
    raise Invalid(f"must be one of {', '.join(SCOPES)}, not {scope!r}", field="scope")
