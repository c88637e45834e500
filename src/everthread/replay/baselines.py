"""Requests without summaries, to compare a policy with: the newest messages only, or all of them. Pure."""

from __future__ import annotations

from itertools import accumulate
from typing import Final

from everthread.replay.figures import Figures
from everthread.replay.talk import Talk

FIXED_WINDOW: Final = 40


def full_history(talk: Talk, limit: int) -> Figures:
    """Everything in every request, also where no model takes that much."""
    return _without_summaries("full history", talk, limit, None)


def fixed_window(talk: Talk, limit: int, size: int = FIXED_WINDOW) -> Figures:
    """The newest messages in every request. Its beginning moves with each turn, so a cache seldom has anything."""
    return _without_summaries(f"newest {size} messages", talk, limit, size)


def _without_summaries(way: str, talk: Talk, limit: int, size: int | None) -> Figures:
    upto = [0, *accumulate(one.tokens for one in talk.said)]
    tokens = cached = over = 0
    before = (0, 0)
    for end in talk.requests:
        start = 0 if size is None else max(0, end - size)
        request = upto[end] - upto[start]
        tokens += request
        over += request > limit
        cached += upto[before[1]] - upto[start] if start == before[0] else 0
        before = (start, end)
    shown = {normal for one in talk.said[slice(*before)] for normal in one.facts}
    return Figures(
        way=way,
        turns=talk.turns,
        requests=len(talk.requests),
        tokens=tokens,
        cached_tokens=cached,
        answer_tokens=talk.answer_tokens,
        over_limit=over,
        compactions=0,
        facts_total=len(talk.facts),
        facts_kept=len(shown),
    )
