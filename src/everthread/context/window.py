"""The window, cut once: the newest units of a list within a number of messages or tokens.

For a conversation that goes on, `growth` decides where its window begins; this is for a list in the hand. It cuts
between units only and begins at a user's turn, and every message is in the window or named in what was left out:
there is no silent hole.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

from everthread.context.budget import TokenCounter, check_range, message_tokens
from everthread.context.shape import Message, is_system, is_user_turn
from everthread.context.tokens import count_tokens
from everthread.context.units import spans

OmitReason = Literal[
    "over_messages",  # older than the number of messages allowed
    "over_tokens",  # older than the number of tokens allowed
    "before_user_turn",  # inside both, but the window begins at a user's turn
    "over_budget",  # dropped by `fit`
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Omitted:
    """A message that is not shown, and why."""

    index: int
    reason: OmitReason


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """What is shown, and what is not. Reads as its messages."""

    messages: tuple[Message, ...]
    indexes: tuple[int, ...]
    """The position of each in the input."""
    omitted: tuple[Omitted, ...]
    within: bool
    """False when the newest unit and what is pinned are over the bounds by themselves: `fit` clamps them."""

    def __iter__(self) -> Iterator[Message]:
        return iter(self.messages)

    def __len__(self) -> int:
        return len(self.messages)


def cut_window(
    messages: Sequence[Message],
    max_messages: int = 40,
    max_tokens: int | None = None,
    *,
    pinned: Collection[int] = (),
    keep_first_user: bool = True,
    tokens: Sequence[int] | None = None,
    count: TokenCounter = count_tokens,
) -> Window:
    """The newest units within the bounds, from a user's turn on.

    Standing instructions and the messages at the positions `pinned` stay, each pinned answer with its question;
    so does the first thing the user asked, where there is room. Instructions do not count as messages. The
    newest unit stays even when it is over the bounds alone, unless a bound is zero. `tokens` are the counts of
    the messages where they are known.
    """
    check_range("max_messages", max_messages, 0, 1_000_000_000)
    if max_tokens is not None:
        check_range("max_tokens", max_tokens, 0, 1_000_000_000_000)
    cut = _Cut(messages, max_messages, max_tokens, _measure(messages, tokens, count, max_tokens))
    cut.keep_fixed(frozenset(pinned))
    cut.keep_newest()
    cut.begin_at_user_turn()
    if keep_first_user:
        cut.keep_first_user()
    return cut.window()


def _measure(
    messages: Sequence[Message], tokens: Sequence[int] | None, count: TokenCounter, max_tokens: int | None
) -> Callable[[int], int]:
    if max_tokens is None:
        return lambda _: 0
    if tokens is not None:
        return tokens.__getitem__
    return cache(lambda index: message_tokens(messages[index], count))


class _Cut:
    """The window while it is being chosen: groups are taken as a whole, by number."""

    def __init__(
        self,
        messages: Sequence[Message],
        max_messages: int,
        max_tokens: int | None,
        measure: Callable[[int], int],
    ) -> None:
        self.messages = messages
        self.max_messages = max_messages
        self.max_tokens = max_tokens
        self.measure = measure
        self.groups = spans(messages)
        self.question_of = questions(messages, self.groups)
        self.kept: set[int] = set()
        self.taken: deque[int] = deque()
        """Those of the kept that are there for being new, oldest first."""
        self.reasons: dict[int, OmitReason] = {}
        self.used_messages = 0
        self.used_tokens = 0

    def keep_fixed(self, pinned: Collection[int]) -> None:
        for number, group in enumerate(self.groups):
            if all(is_system(self.messages[index]) for index in group):
                self._keep(number)
            elif any(index in pinned for index in group):
                question = self.question_of[number]
                self._keep(number if question is None else question)
                self._keep(number)

    def keep_newest(self) -> None:
        nothing_fits = self.max_messages == 0 or self.max_tokens == 0
        for number in reversed([number for number in range(len(self.groups)) if number not in self.kept]):
            over = self._over(*self._size(number))
            if nothing_fits or (over and self.taken):
                self.reasons |= {older: over or "over_messages" for older in range(number + 1)}
                return
            self._keep(number)
            self.taken.appendleft(number)

    def begin_at_user_turn(self) -> None:
        """Drop what stands before the first turn taken; where none was taken, bring the one they belong to. A list
        that was not cut keeps the beginning it has."""
        if not self.taken or not self.reasons:
            return
        if any(self.question_of[number] == number for number in self.taken):
            while self.question_of[self.taken[0]] != self.taken[0]:
                self._drop_oldest("before_user_turn")
            return
        question = self.question_of[self.taken[0]]
        if question is not None:
            self._keep(question)
            while len(self.taken) > 1 and (over := self._over()):
                self._drop_oldest(over)

    def keep_first_user(self) -> None:
        first = next((at for at, question in enumerate(self.question_of) if question == at), None)
        if first is not None and not self._over(*self._size(first)):
            self._keep(first)

    def window(self) -> Window:
        shown = [index for number in sorted(self.kept) for index in self.groups[number]]
        omitted = [
            Omitted(index=index, reason=self.reasons[number])
            for number, group in enumerate(self.groups)
            if number not in self.kept
            for index in group
        ]
        return Window(
            messages=tuple(self.messages[index] for index in shown),
            indexes=tuple(shown),
            omitted=tuple(omitted),
            within=self._over() is None,
        )

    def _keep(self, number: int) -> None:
        if number not in self.kept:
            self.kept.add(number)
            self._use(number, 1)

    def _drop_oldest(self, reason: OmitReason) -> None:
        number = self.taken.popleft()
        self.kept.discard(number)
        self.reasons[number] = reason
        self._use(number, -1)

    def _use(self, number: int, sign: int) -> None:
        messages, tokens = self._size(number)
        self.used_messages += sign * messages
        self.used_tokens += sign * tokens

    def _size(self, number: int) -> tuple[int, int]:
        group = self.groups[number]
        counted = sum(not is_system(self.messages[index]) for index in group)
        return counted, sum(map(self.measure, group))

    def _over(self, messages: int = 0, tokens: int = 0) -> OmitReason | None:
        """Which bound is broken by what is kept, and by so much on top of it."""
        if self.used_messages + messages > self.max_messages:
            return "over_messages"
        over_tokens = self.max_tokens is not None and self.used_tokens + tokens > self.max_tokens
        return "over_tokens" if over_tokens else None


def questions(messages: Sequence[Message], groups: Sequence[range]) -> list[int | None]:
    """For every group the number of the group with the user's turn it belongs to (itself, if it is one)."""
    found: list[int | None] = []
    newest: int | None = None
    for number, group in enumerate(groups):
        newest = number if is_user_turn(messages[group.start]) else newest
        found.append(newest)
    return found
