"""What one way of building requests costs and keeps: tokens, money, cache hits, facts. Two ways without summaries serve
as baselines: the newest messages only, and all of them. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from everthread.replay.transcript import Transcript


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """What a million tokens cost, in any currency."""

    input: float
    output: float
    cached: float
    """The price of tokens that a prompt cache has from the request before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The result of one way of building requests, over a whole conversation."""

    way: str
    turns: int
    requests: int
    tokens: int
    """Tokens of all requests together."""
    cached_tokens: int
    """Of these, those that the request before began with, message by message."""
    answer_tokens: int
    over_limit: int
    """Requests that the model would have refused."""
    compactions: int
    facts_total: int
    """Distinct facts of the whole conversation."""
    facts_kept: int
    """How many of them the last request still has."""

    @property
    def tokens_per_turn(self) -> float:
        return self.tokens / max(1, self.turns)

    @property
    def stability(self) -> float:
        """The share of the tokens sent that a prompt cache would have had."""
        return self.cached_tokens / max(1, self.tokens)

    def cost(self, prices: Prices) -> float:
        """The price of the whole conversation."""
        paid = (self.tokens - self.cached_tokens) * prices.input + self.cached_tokens * prices.cached
        return (paid + self.answer_tokens * prices.output) / 1_000_000


FIXED_WINDOW: Final = 40


def full_history(transcript: Transcript, limit: int) -> Figures:
    """Everything in every request, even beyond what a model accepts."""
    return _without_summaries("full history", transcript, limit, None)


def fixed_window(transcript: Transcript, limit: int, size: int = FIXED_WINDOW) -> Figures:
    """The newest messages in every request. Its start moves with each turn, so a cache rarely helps."""
    return _without_summaries(f"newest {size} messages", transcript, limit, size)


def _without_summaries(way: str, transcript: Transcript, limit: int, size: int | None) -> Figures:
    upto = [0, *accumulate(one.tokens for one in transcript.messages)]
    tokens = cached = over = 0
    before = (0, 0)
    for end in transcript.requests:
        start = 0 if size is None else max(0, end - size)
        request = upto[end] - upto[start]
        tokens += request
        over += request > limit
        cached += upto[before[1]] - upto[start] if start == before[0] else 0
        before = (start, end)
    shown = {normal for one in transcript.messages[slice(*before)] for normal in one.facts}
    return Figures(
        way=way,
        turns=transcript.turns,
        requests=len(transcript.requests),
        tokens=tokens,
        cached_tokens=cached,
        answer_tokens=transcript.answer_tokens,
        over_limit=over,
        compactions=0,
        facts_total=len(transcript.facts),
        facts_kept=len(shown),
    )
