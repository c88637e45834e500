"""Units: the atoms a context is cut into.

A unit is an assistant message with all its tool results (parallel calls included) and the reasoning that came
before it; every other message is a unit of its own. A provider refuses a call without its result and a result
without its call, so a view is cut between units and nowhere else.
"""

from __future__ import annotations

from collections.abc import Sequence

from everthread.context.pairing import pair
from everthread.context.shape import (
    REASONING_BLOCKS,
    Message,
    blocks_of,
    calls_of,
    check_messages,
    role_of,
    says_something,
)


def units(messages: Sequence[Message]) -> list[list[Message]]:
    """The messages in atomic groups: joined together again they are the input, in its order."""
    return [[messages[index] for index in span] for span in spans(messages)]


def spans(messages: Sequence[Message]) -> list[range]:
    """The same groups as index ranges. What stands between a call and a late result of it is part of the
    group: only `repair` moves messages, this only says where a cut is safe."""
    check_messages(messages)
    reach = list(range(len(messages)))
    for call, answer in pair(messages).answers.items():
        reach[call.message] = max(reach[call.message], answer.message)
    for index in range(len(messages) - 1):
        if _only_reasons(messages[index]) and role_of(messages[index + 1]) == "assistant":
            reach[index] = max(reach[index], index + 1)
    return _merged(reach)


def _merged(reach: list[int]) -> list[range]:
    groups: list[range] = []
    start, end = 0, -1
    for index, furthest in enumerate(reach):
        if index > end and index > start:
            groups.append(range(start, index))
            start = index
        end = max(end, furthest)
    if reach:
        groups.append(range(start, len(reach)))
    return groups


def _only_reasons(message: Message) -> bool:
    """Reasoning streamed as a message of its own belongs to the message that follows from it."""
    if role_of(message) != "assistant" or calls_of(message) or says_something(message):
        return False
    return any(block.get("type") in REASONING_BLOCKS for block in blocks_of(message))
