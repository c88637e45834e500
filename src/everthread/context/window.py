"""The window: which of the newest messages are shown as they are.

`window_start` is for a conversation that goes on. Its window begins where the summaries end and only grows between two
compactions; when one lands, `keep_recent` messages are left. Where none comes in time, the start jumps over a whole
stretch of messages, which are then named as left out. It never slides: a window whose start moves by a message each
turn changes the beginning of every request, and no prompt cache ever hits.

`cut_window` is for a plain list of messages, with no conversation stored behind it: it keeps the newest units within a
number of messages or tokens. It cuts between units only and begins at a user's turn, and every message is in the window
or named in what was left out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

from everthread.context.budget import check_range
from everthread.context.message_format import Message, is_system, is_user_turn
from everthread.context.tokens import TokenCounter, count_tokens, message_tokens
from everthread.context.units import unit_spans


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowBounds:
    """How long a window may grow, and what a compaction leaves of it."""

    max_message_history: int = 40
    keep_recent: int = 10

    def __post_init__(self) -> None:
        check_range("max_message_history", self.max_message_history, 10, 1_000)
        check_range("keep_recent", self.keep_recent, 1, self.max_message_history - 1)

    @property
    def slack(self) -> int:
        """How far a jump may look for a user's turn to land on."""
        return (self.max_message_history - self.keep_recent) // 3

    @property
    def step(self) -> int:
        """How many messages a jump passes: so many that `keep_recent` remain wherever it lands."""
        return self.max_message_history - self.keep_recent - self.slack


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowStart:
    """Where a window begins."""

    index: int
    """The first message shown; a unit begins here."""
    anchor: int | None
    """When that is not a user's turn (a long run of tools): the turn it belongs to, shown before it."""


DEFAULT_BOUNDS = WindowBounds()


def window_start(
    messages: Sequence[Message], *, covered: int = 0, bounds: WindowBounds = DEFAULT_BOUNDS
) -> WindowStart:
    """Where the window begins, `covered` being the number of messages that summaries stand for.

    It depends only on messages that were there when it last moved, so it is the same in every process and on
    every turn until the next jump or compaction.
    """
    covered = min(max(covered, 0), len(messages))
    starts = [span.start for span in unit_spans(messages)]
    jumped = covered + jump_length(len(messages) - covered, bounds)
    if jumped == covered:
        index = max((start for start in starts if start <= covered), default=0)
        index = covered if covered == len(messages) else index
    else:
        index = _start_near(messages, starts, jumped, bounds)
    return WindowStart(index=index, anchor=_anchor(messages, index))


def jump_length(uncovered: int, bounds: WindowBounds = DEFAULT_BOUNDS) -> int:
    """How many uncovered messages a window passes over: none while they are within the bound, then whole steps."""
    over = uncovered - bounds.max_message_history
    return 0 if over <= 0 else -(-over // bounds.step) * bounds.step


def coverage_end(messages: Sequence[Message], *, covered: int = 0, bounds: WindowBounds = DEFAULT_BOUNDS) -> int:
    """Where a compaction that lands now should end its coverage: at least `keep_recent` messages stay, it ends
    before a user's turn if one is near, else between units; `covered` again when there is nothing to cover."""
    newest = len(messages) - bounds.keep_recent
    starts = [span.start for span in unit_spans(messages) if covered < span.start <= newest]
    turns = [start for start in starts if is_user_turn(messages[start]) and start >= newest - bounds.slack]
    return max(turns or starts, default=covered)


def _start_near(messages: Sequence[Message], starts: list[int], jumped: int, bounds: WindowBounds) -> int:
    near = [start for start in starts if jumped <= start <= jumped + bounds.slack]
    turns = [start for start in near if is_user_turn(messages[start])]
    if turns or near:
        return (turns or near)[0]
    return max(start for start in starts if start <= jumped)


def _anchor(messages: Sequence[Message], index: int) -> int | None:
    if index >= len(messages) or is_user_turn(messages[index]):
        return None
    return next((at for at in range(index - 1, -1, -1) if is_user_turn(messages[at])), None)


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
        self.groups = unit_spans(messages)
        self.question_of = user_turn_of_each(messages, self.groups)
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


def user_turn_of_each(messages: Sequence[Message], groups: Sequence[range]) -> list[int | None]:
    """For every group the number of the group with the user's turn it belongs to (itself, if it is one)."""
    found: list[int | None] = []
    newest: int | None = None
    for number, group in enumerate(groups):
        newest = number if is_user_turn(messages[group.start]) else newest
        found.append(newest)
    return found
