"""Units: the atoms a context is cut into.

A unit is an assistant message with all its tool results (parallel calls included) and the reasoning that came
before it; every other message is a unit of its own. A provider refuses a call without its result and a result
without its call, so a view is cut between units and nowhere else.

Which result answers which call is decided here once, for units and for `repair`. A call id is only as good as the model
that made it: some use `call_1` in every message, some leave it empty, some repeat it inside one message. So a result
belongs to the *nearest* earlier message that made a call of its id, and there to the first call of that id still
unanswered. A result without an id takes, once all others are placed, the first open call of the nearest earlier
caller. Nothing answers a call that comes after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from everthread.context.message_format import (
    REASONING_BLOCKS,
    Call,
    CallResult,
    Message,
    blocks_of,
    calls_of,
    check_messages,
    has_content,
    results_of,
    role_of,
)
from everthread.core.payloads import block_type


def units(messages: Sequence[Message]) -> list[list[Message]]:
    """The messages in atomic groups: joined together again they are the input, in its order."""
    return [[messages[index] for index in span] for span in unit_spans(messages)]


def unit_spans(messages: Sequence[Message]) -> list[range]:
    """The same groups as index ranges. What stands between a call and a late result of it is part of the
    group: only `repair` moves messages, this only says where a cut is safe."""
    check_messages(messages)
    reach = list(range(len(messages)))
    for call, answer in pair_results(messages).answers.items():
        reach[call.message] = max(reach[call.message], answer.message)
    for index in range(len(messages) - 1):
        if _is_reasoning_only(messages[index]) and role_of(messages[index + 1]) == "assistant":
            reach[index] = max(reach[index], index + 1)
    return _merge_overlapping(reach)


def _merge_overlapping(reach: list[int]) -> list[range]:
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


def _is_reasoning_only(message: Message) -> bool:
    """Reasoning streamed as a message of its own belongs to the message that follows from it."""
    if role_of(message) != "assistant" or calls_of(message) or has_content(message):
        return False
    return any(block_type(block) in REASONING_BLOCKS for block in blocks_of(message))


@dataclass(frozen=True, slots=True, order=True)
class CallRef:
    """The `slot`-th call (or answer) of the `message`-th message."""

    message: int
    slot: int


@dataclass(slots=True)
class Pairing:
    """Every call with its answer, and the answers that belong to no call."""

    answers: dict[CallRef, CallRef] = field(default_factory=dict)
    """call → answer"""
    orphans: set[CallRef] = field(default_factory=set)
    """answers to a call that is not there"""
    repeats: set[CallRef] = field(default_factory=set)
    """answers to a call that has one"""


def pair_results(messages: Sequence[Message]) -> Pairing:
    """Match every result with its call."""
    return pair(list(map(calls_of, messages)), list(map(results_of, messages)))


def pair(calls_made: Sequence[Sequence[Call]], results: Sequence[Sequence[CallResult]]) -> Pairing:
    """The same, from the calls and the results of every message; total, in one pass over them."""
    pairing = Pairing()
    open_calls: dict[str, list[CallRef]] = {}
    newest_caller: list[CallRef] = []
    without_id: list[tuple[CallRef, list[CallRef]]] = []
    for position, calls in enumerate(calls_made):
        if calls:
            newest_caller = [CallRef(position, slot) for slot in range(len(calls))]
            by_id: dict[str, list[CallRef]] = {}
            for ref, call in zip(newest_caller, calls, strict=True):
                by_id.setdefault(call.id, []).append(ref)
            open_calls.update(by_id)
        for slot, answer in enumerate(results[position]):
            ref = CallRef(position, slot)
            if answer.call_id:
                _assign(pairing, ref, open_calls.get(answer.call_id, ()))
            else:
                without_id.append((ref, newest_caller))
    for ref, caller in without_id:
        _assign(pairing, ref, caller)
    return pairing


def _assign(pairing: Pairing, answer: CallRef, candidates: Iterable[CallRef]) -> None:
    known = False
    for call in candidates:
        if call not in pairing.answers:
            pairing.answers[call] = answer
            return
        known = True
    (pairing.repeats if known else pairing.orphans).add(answer)
