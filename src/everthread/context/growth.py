"""The window of a conversation that goes on: it grows, and its start moves in jumps.

It begins where the summaries end and only grows between two compactions; when one lands, `keep_recent` messages are
left. Where none comes in time, the start jumps over a whole stretch of messages, which are then named as left out.
It never slides: a window whose start moves by a message each turn changes the beginning of every request, and no
prompt cache ever hits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from everthread.context.budget import check_range
from everthread.context.shape import Message, is_user_turn
from everthread.context.units import spans


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowBounds:
    """How long a window may grow, and what a compaction leaves of it."""

    max_message_history: int = 40
    keep_recent: int = 10

    def __post_init__(self) -> None:
        check_range("max_message_history", self.max_message_history, 10, 100)
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
    starts = [span.start for span in spans(messages)]
    jumped = covered + jump(len(messages) - covered, bounds)
    if jumped == covered:
        index = max((start for start in starts if start <= covered), default=0)
        index = covered if covered == len(messages) else index
    else:
        index = _landing(messages, starts, jumped, bounds)
    return WindowStart(index=index, anchor=_anchor(messages, index))


def jump(uncovered: int, bounds: WindowBounds = DEFAULT_BOUNDS) -> int:
    """How many uncovered messages a window passes over: none while they are within the bound, then whole steps."""
    over = uncovered - bounds.max_message_history
    return 0 if over <= 0 else -(-over // bounds.step) * bounds.step


def coverage_end(messages: Sequence[Message], *, covered: int = 0, bounds: WindowBounds = DEFAULT_BOUNDS) -> int:
    """Where a compaction that lands now should end its coverage: at least `keep_recent` messages stay, it ends
    before a user's turn if one is near, else between units; `covered` again when there is nothing to cover."""
    newest = len(messages) - bounds.keep_recent
    starts = [span.start for span in spans(messages) if covered < span.start <= newest]
    turns = [start for start in starts if is_user_turn(messages[start]) and start >= newest - bounds.slack]
    return max(turns or starts, default=covered)


def _landing(messages: Sequence[Message], starts: list[int], jumped: int, bounds: WindowBounds) -> int:
    near = [start for start in starts if jumped <= start <= jumped + bounds.slack]
    turns = [start for start in near if is_user_turn(messages[start])]
    if turns or near:
        return (turns or near)[0]
    return max(start for start in starts if start <= jumped)


def _anchor(messages: Sequence[Message], index: int) -> int | None:
    if index >= len(messages) or is_user_turn(messages[index]):
        return None
    return next((at for at in range(index - 1, -1, -1) if is_user_turn(messages[at])), None)
