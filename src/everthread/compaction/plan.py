"""Which stretch is compacted next: the oldest whole units outside of what is kept recent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

from everthread.compaction.policy import CompactionPolicy
from everthread.compaction.sources import CallSketch, Source
from everthread.context.content_blocks import media_named
from everthread.context.ingredients import Stored
from everthread.context.message_format import as_text, blocks_of, calls_of, inner, is_user_turn, leading, role_of
from everthread.context.tokens import message_tokens
from everthread.context.units import spans
from everthread.context.window import coverage_end
from everthread.core import payloads

LEAST_TOKENS = 100
"""Of less hardly any summary is shorter, with the numbers of its messages in it."""


def next_stretch(
    uncovered: Sequence[Stored], policy: CompactionPolicy, *, keep_recent: int | None = None, opens: bool = False
) -> list[Stored]:
    """The messages of the next compaction, oldest first; none when nothing is old enough.

    `uncovered` begins where the summaries end. The stretch ends between units, before a user's turn if one is near,
    and holds no more tokens than one summary can stand for. `keep_recent` below the policy's (0: all may go) is for
    when room must be made. `opens` says that the path begins here: the system messages it begins with are covered
    with what follows them, since a summary of them alone would say nothing.
    """
    messages = [stored.payload for stored in uncovered]
    bounds = policy.bounds
    end = coverage_end(messages, bounds=bounds)
    if keep_recent is not None and keep_recent < bounds.keep_recent:
        end = max((span.stop for span in spans(messages) if span.stop <= len(messages) - keep_recent), default=0)
    standing = leading(messages) if opens else 0
    end = _one_leaf(uncovered[standing:end], policy) + standing
    return list(uncovered[:end]) if end > standing else []


def _one_leaf(stretch: Sequence[Stored], policy: CompactionPolicy) -> int:
    """Where a stretch ends when it holds more than one summary should stand for: after a whole unit, before a user's
    turn where one is near the end, and after more than a summary's worth. A question alone before a giant result
    would make a stretch that nothing is shorter than, and no compaction would ever get past it. Only words fill a
    summary, but images too are worth being taken out of a request."""
    used, sent, end, turn = 0, 0, 0, 0
    for span in spans([stored.payload for stored in stretch]):
        is_half = 2 * span.start >= policy.leaf_max_messages and sent > LEAST_TOKENS
        worth_it = is_half or sent > policy.summary_max_tokens
        if worth_it:
            end = span.start
            turn = end if is_user_turn(stretch[end].payload) else turn
        used += sum(stretch[index].tokens for index in span)
        sent += sum(sent_tokens(stretch[index]) for index in span)
        if worth_it and (used > policy.leaf_max_tokens or span.stop > policy.leaf_max_messages):
            return turn if turn > end // 2 else end
    return len(stretch)


def sent_tokens(stored: Stored) -> int:
    """What a message counts to when it is sent: its words as counted once, with blocks (images, files, reasoning) all
    of them."""
    return message_tokens(stored.payload) if blocks_of(stored.payload) else stored.tokens


def summed_up(stretch: Sequence[Stored], *, opens: bool) -> Sequence[Stored]:
    """What a summary of the stretch tells: not the system messages that the path `opens` with, which every request
    has in full."""
    return stretch[leading(one.payload for one in stretch) :] if opens else stretch


def span_hash(stretch: Sequence[Stored]) -> str:
    """Of the very revisions a summary was made from."""
    return sha256(",".join(f"{stored.seq}:{stored.entry_seq}" for stored in stretch).encode()).hexdigest()


def sources(stretch: Sequence[Stored]) -> list[Source]:
    """The messages as the summarisers read them."""
    return [_source(stored) for stored in stretch]


def _source(stored: Stored) -> Source:
    payload = stored.payload
    role = role_of(payload) or "user"
    fields = inner(payload)
    call_id = fields.get("tool_call_id")
    return Source(
        seq=stored.seq,
        role=role,
        name=None if role == "tool" else payloads.name(payload),
        text=_text(payload),
        said_at=payloads.said_at(payload),
        tool_name=payloads.name(payload) if role == "tool" else None,
        is_tool_result=role == "tool",
        calls=tuple(
            CallSketch(name=call.name, arguments=as_text(call.arguments), call_id=call.id or None)
            for call in calls_of(payload)
        ),
        call_id=call_id if isinstance(call_id, str) else None,
    )


def _text(payload: Mapping[str, Any]) -> str:
    """What it says; images and files are named, so that a summary can say that there were any."""
    said, shown = payloads.text(payload), media_named(payload)
    return "\n".join((said, *shown) if said else shown) if shown else said
