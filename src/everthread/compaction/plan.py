"""Which stretch is compacted next: the oldest whole units outside of what is kept recent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from itertools import accumulate

from everthread.compaction.policy import MOST_MESSAGES, ORDINARY_SUMMARY_TOKENS, CompactionPolicy, window_bounds
from everthread.context.ingredients import LogMessage
from everthread.context.message_format import blocks_of, count_leading_system, is_user_turn
from everthread.context.tokens import message_tokens
from everthread.context.units import unit_spans
from everthread.context.window import coverage_end

MIN_STRETCH_TOKENS = 100
"""Of less hardly any summary is shorter, with the numbers of its messages in it."""


MOST_RECENT_SHARE = 0.25
"""Of the budget: with `keep_recent` messages that take more, a compaction would be due again a turn later."""
_LEAST_KEPT = 2
"""The question and what is being done about it."""


def first_kept(recent: Sequence[LogMessage], policy: CompactionPolicy, limit: int) -> int | None:
    """The seq of the oldest message that an automatic compaction leaves as it is; None when it leaves all of them.

    `recent` are the newest messages, as far as they are known, and `limit` is the most tokens that a request may have.
    Where tokens bound the window, its share of them stays, else `keep_recent` messages; these also, where they are
    more, unless they take so much that little room is left for what was before them.
    """
    sizes = [sent_tokens(stored) for stored in reversed(recent)]
    by_count = min(policy.keep_recent, len(sizes))
    by_tokens = sum(used <= policy.recent_share * limit for used in accumulate(sizes))
    kept = by_count
    if sum(sizes[:by_count]) > MOST_RECENT_SHARE * limit:
        kept = min(by_tokens, by_count)
    elif policy.max_message_history is None:
        kept = max(by_count, min(by_tokens, MOST_MESSAGES // 2))
    kept = max(kept, _LEAST_KEPT)
    return None if kept >= len(recent) else recent[-kept].seq


def next_stretch(
    uncovered: Sequence[LogMessage],
    policy: CompactionPolicy,
    *,
    keep_recent: int | None = None,
    opens: bool = False,
    at_a_turn: bool = True,
) -> list[LogMessage]:
    """The messages of the next compaction, oldest first; none when nothing is old enough.

    `uncovered` begins where the summaries end. The stretch ends between units, before a user's turn if one is near,
    and holds no more tokens than one summary can stand for. `keep_recent` says how many of the newest stay (else the
    policy does); without `at_a_turn`, for when room must be made, it ends as late as it may. `opens` says that the path
    begins here: the system messages it begins with are covered with what follows them, since a summary of them alone
    would say nothing.
    """
    messages = [stored.payload for stored in uncovered]
    bounds = window_bounds(policy)
    kept = bounds.keep_recent if keep_recent is None else keep_recent
    if at_a_turn:
        end = coverage_end(messages, bounds=replace(bounds, keep_recent=max(1, kept)))
    else:
        end = max((span.stop for span in unit_spans(messages) if span.stop <= len(messages) - kept), default=0)
    standing = count_leading_system(messages) if opens else 0
    end = end_of_stretch(uncovered[standing:end], policy) + standing
    return list(uncovered[:end]) if end > standing else []


def end_of_stretch(stretch: Sequence[LogMessage], policy: CompactionPolicy) -> int:
    """Where a stretch ends when it holds more than one summary should stand for: after a whole unit, before a user's
    turn where one is near the end, and after more than a summary's worth. A question alone before a giant result
    would make a stretch that nothing is shorter than, and no compaction would ever get past it. Only words fill a
    summary, but images too are worth being taken out of a request."""
    worth = min(policy.summary_max_tokens, ORDINARY_SUMMARY_TOKENS)
    used, sent, end, turn = 0, 0, 0, 0
    for span in unit_spans([stored.payload for stored in stretch]):
        is_half = 2 * span.start >= policy.leaf_max_messages and sent > MIN_STRETCH_TOKENS
        worth_it = is_half or sent > worth
        if worth_it:
            end = span.start
            turn = end if is_user_turn(stretch[end].payload) else turn
        used += sum(stretch[index].tokens for index in span)
        sent += sum(sent_tokens(stretch[index]) for index in span)
        if worth_it and (used > policy.leaf_max_tokens or span.stop > policy.leaf_max_messages):
            return turn if turn > end // 2 else end
    return len(stretch)


def sent_tokens(stored: LogMessage) -> int:
    """What a message counts to when it is sent: its words as counted once, with blocks (images, files, reasoning) all
    of them."""
    return message_tokens(stored.payload) if blocks_of(stored.payload) else stored.tokens


def messages_to_summarise(stretch: Sequence[LogMessage], *, opens: bool) -> Sequence[LogMessage]:
    """What a summary of the stretch tells: not the system messages that the path `opens` with, which every request
    has in full."""
    return stretch[count_leading_system(one.payload for one in stretch) :] if opens else stretch


def span_hash(stretch: Sequence[LogMessage]) -> str:
    """Of the very revisions a summary was made from."""
    return sha256(",".join(f"{stored.seq}:{stored.entry_seq}" for stored in stretch).encode()).hexdigest()
