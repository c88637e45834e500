"""Fit: the last word before a request goes out. Whatever the history, it comes out within the limit.

The steps are taken in this order and only as far as needed, so that what the user said last is the last to suffer:

1. tool output before the newest turn becomes an excerpt, its images a reference; the oldest first
2. any message that takes more than its share of the room is shown in part
3. whole units are left out, the oldest first; pinned ones, the newest user's turn and the newest unit stay
4. what stays is shown in part; then pinned units, then the newest unit, are left out
5. the newest user's turn alone is shown in part

A valid list stays valid: units go as a whole and the first message shown is a user's turn. Each message is shortened at
most three times and left out at most once, so the number of steps is bounded. Only a system prompt that leaves no
room at all is refused.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from everthread.context.budget import Budget
from everthread.context.clamp import (
    DEFAULT_POLICY,
    Clamp,
    ClampPolicy,
    ClampReason,
    clamp_message,
    elide_message,
    even_share,
)
from everthread.context.message_format import Message, is_system
from everthread.context.tokens import TokenCounter, count_tokens, message_tokens
from everthread.context.window import Omitted, user_turn_of_each
from everthread.core.errors import ContextOverflow

LARGEST_SHARE = 8
"""Step 2: no message before the newest turn takes more than one part in this many of the room."""
LARGEST_SHARE_NOW = 3
"""The same of messages of the newest turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FitResult:
    """What is sent."""

    messages: tuple[Message, ...]
    indexes: tuple[int, ...]
    """The position of each in the units laid end to end."""
    clamped: tuple[Clamp, ...]
    """Messages shown in part."""
    omitted: tuple[Omitted, ...]
    """Messages left out."""
    tokens: int
    limit: int
    steps: int
    """How many times a message was shortened or a unit left out."""


def fit(
    units: Sequence[Sequence[Message]],
    budget: Budget,
    *,
    pinned: Collection[int] = (),
    seqs: Sequence[int | None] | None = None,
    tokens: Sequence[int] | None = None,
    policy: ClampPolicy = DEFAULT_POLICY,
    count: TokenCounter = count_tokens,
) -> FitResult:
    """The units within `budget.limit`. `pinned`, `seqs` and `tokens` (as `message_tokens` counts, where that is known)
    go by the position of a message in the units laid end to end. Raises ContextOverflow when the system prompt leaves
    no room."""
    draft = _Draft(units, budget.limit, seqs, tokens, count)
    draft.pin(pinned)
    stages = (draft.elide_old(policy), draft.clamp_large(), draft.drop_oldest(), draft.clamp_rest())
    for stage in stages if draft.room > 0 else ():
        while draft.total > draft.limit and next(stage, None) is not None:
            draft.steps += 1
    return draft.fitted()


class _Draft:
    """The request while it is being made to fit. Each stage is a series of small steps, and after every one of them
    the list is valid; whoever drives it stops as soon as it is within the limit."""

    def __init__(
        self,
        units: Sequence[Sequence[Message]],
        limit: int,
        seqs: Sequence[int | None] | None,
        tokens: Sequence[int] | None,
        count: TokenCounter,
    ) -> None:
        self.messages = [message for unit in units for message in unit]
        self.groups = list(_ranges(units))
        self.limit = limit
        self.count = count
        self.seqs = seqs if seqs is not None else [None] * len(self.messages)
        self.tokens = list(tokens) if tokens is not None else [self._measure(m) for m in self.messages]
        self.total = sum(self.tokens)
        self.steps = 0
        self.clamps: dict[int, Clamp] = {}
        self.dropped: set[int] = set()
        self.pinned: set[int] = set()
        self.system = {at for at, unit in enumerate(units) if all(is_system(message) for message in unit)}
        self.question_of = user_turn_of_each(self.messages, self.groups)
        self.newest = max(set(range(len(self.groups))) - self.system, default=None)
        self.turn = self.question_of[self.newest] if self.newest is not None else None
        self.room = limit - sum(self.tokens[index] for at in self.system for index in self.groups[at])

    def pin(self, indexes: Collection[int]) -> None:
        """A pinned answer keeps its question: without it the view might begin with the assistant."""
        pinned = frozenset(indexes)
        for number, group in enumerate(self.groups):
            if number not in self.system and any(index in pinned for index in group):
                question = self.question_of[number]
                self.pinned |= {number} if question is None else {number, question}

    # --- the stages, each a series of steps ---

    def elide_old(self, policy: ClampPolicy) -> Iterator[bool]:
        for number in self._older():
            for index in self.groups[number]:
                message, seq = self.messages[index], self.seqs[index]
                short = elide_message(message, is_old=True, seq=seq, policy=policy, count=self.count)
                if short is not message:
                    self._show(index, short, "old")
                    yield True

    def clamp_large(self) -> Iterator[bool]:
        for number in self._older():
            yield from self._clamp_all(self.groups[number], self.room // LARGEST_SHARE)
        for number in self._newest():
            yield from self._clamp_all(self.groups[number], self.room // LARGEST_SHARE_NOW)

    def drop_oldest(self) -> Iterator[bool]:
        """Turn by turn before the newest turn; within it, unit by unit."""
        older = [number for number in self._older() if number not in self.pinned]
        for _, turn in groupby(older, key=lambda number: self.question_of[number]):
            now = list(turn)
            for step in [now] if self.question_of[now[0]] != self.turn else [[number] for number in now]:
                self._drop(step)
                yield True

    def clamp_rest(self) -> Iterator[bool]:
        shown = [index for number in self._kept() for index in self.groups[number]]
        cap = even_share([self.tokens[index] for index in shown], self.room)
        yield from self._clamp_all(shown, cap)
        pins = [number for number in self._older() if number in self.pinned]
        for _, turn in groupby(pins, key=lambda number: self.question_of[number]):
            self._drop(turn)
            yield True
        if self.newest is not None and self.newest != self.turn and self.turn is not None:
            self._drop([self.newest])
            yield True
        for number in self._kept():
            yield from self._clamp_all(self.groups[number], self.room)

    def fitted(self) -> FitResult:
        if self.room <= 0 < self.total - self.limit:
            raise ContextOverflow(
                f"the system prompt alone is {self.limit - self.room:,} tokens; the limit is {self.limit:,}. "
                "Shorten it, or give the model a larger window"
            )
        if self.total > self.limit:
            raise ContextOverflow(
                f"the smallest request is {self.total:,} tokens; the limit is {self.limit:,}, which leaves "
                f"{self.room:,} after the system prompt. Shorten the prompt, or give the model a larger window"
            )
        shown = [index for number, group in enumerate(self.groups) if number not in self.dropped for index in group]
        left_out = sorted(index for number in self.dropped for index in self.groups[number])
        return FitResult(
            messages=tuple(self.messages[index] for index in shown),
            indexes=tuple(shown),
            clamped=tuple(self.clamps[index] for index in shown if index in self.clamps),
            omitted=tuple(Omitted(index=index, reason="over_budget") for index in left_out),
            tokens=self.total,
            limit=self.limit,
            steps=self.steps,
        )

    # --- what they are made of ---

    def _newest(self) -> list[int]:
        """What suffers last: the user's newest turn, and the newest unit."""
        return sorted({number for number in (self.turn, self.newest) if number is not None})

    def _kept(self) -> list[int]:
        return [at for at in range(len(self.groups)) if at not in self.system and at not in self.dropped]

    def _older(self) -> list[int]:
        newest = self._newest()
        return [number for number in self._kept() if number not in newest]

    def _clamp_all(self, indexes: Iterable[int], cap: int) -> Iterator[bool]:
        """Each to the cap, but none shorter than it takes for the whole to fit."""
        for index in indexes:
            enough = max(cap, self.limit - (self.total - self.tokens[index]))
            if self.tokens[index] > enough and self._clamp(index, enough):
                yield True

    def _clamp(self, index: int, cap: int) -> bool:
        try:
            short = clamp_message(self.messages[index], cap, seq=self.seqs[index], count=self.count)
        except ContextOverflow:
            return False
        self._show(index, short, "over_budget")
        return True

    def _show(self, index: int, short: Message, reason: ClampReason) -> None:
        before = self.clamps[index].tokens_before if index in self.clamps else self.tokens[index]
        after = self._measure(short)
        self.total += after - self.tokens[index]
        self.messages[index], self.tokens[index] = short, after
        self.clamps[index] = Clamp(index=index, tokens_before=before, tokens_after=after, reason=reason)

    def _drop(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            self.dropped.add(number)
            self.total -= sum(self.tokens[index] for index in self.groups[number])

    def _measure(self, message: Message) -> int:
        return message_tokens(message, self.count)


def _ranges(units: Sequence[Sequence[Message]]) -> Iterator[range]:
    start = 0
    for unit in units:
        yield range(start, start + len(unit))
        start += len(unit)
