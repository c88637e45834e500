"""What one way of making requests came to: tokens, money, warm caches, facts. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """What a million tokens cost, in any currency."""

    input: float
    output: float
    cached: float
    """Of what a prompt cache has from the request before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What one way of making requests came to over a whole conversation."""

    way: str
    turns: int
    requests: int
    tokens: int
    """Of all requests together."""
    cached_tokens: int
    """Of these, what stood at the beginning of the request before, message by message."""
    answer_tokens: int
    over_limit: int
    """Requests that the model would have refused."""
    compactions: int
    facts_total: int
    """Distinct facts of the whole conversation."""
    facts_kept: int
    """How many of them the last request still says."""

    @property
    def tokens_per_turn(self) -> float:
        return self.tokens / max(1, self.turns)

    @property
    def stability(self) -> float:
        """The share of all that was sent which a prompt cache would have had."""
        return self.cached_tokens / max(1, self.tokens)

    def cost(self, prices: Prices) -> float:
        """Of the whole conversation."""
        paid = (self.tokens - self.cached_tokens) * prices.input + self.cached_tokens * prices.cached
        return (paid + self.answer_tokens * prices.output) / 1_000_000
