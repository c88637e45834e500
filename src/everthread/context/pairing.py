"""Which result answers which call: the one matching that units and repair share.

A call id is only as good as the model that made it: some use `call_1` in every message, some leave it empty,
some repeat it inside one message. So a result belongs to the *nearest* earlier message that made a call of its
id, and there to the first call of that id still unanswered. A result without an id takes, once all others are
placed, the first open call of the nearest earlier caller. Nothing answers a call that comes after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from everthread.context.shape import Message, answers_of, calls_of


@dataclass(frozen=True, slots=True, order=True)
class Ref:
    """The `slot`-th call (or answer) of the `message`-th message."""

    message: int
    slot: int


@dataclass(slots=True)
class Pairing:
    """Every call with its answer, and the answers that belong to no call."""

    answers: dict[Ref, Ref] = field(default_factory=dict)
    """call → answer"""
    orphans: set[Ref] = field(default_factory=set)
    """answers to a call that is not there"""
    repeats: set[Ref] = field(default_factory=set)
    """answers to a call that has one"""


def pair(messages: Sequence[Message]) -> Pairing:
    """Match every result with its call; total, in one pass over the messages."""
    pairing = Pairing()
    open_calls: dict[str, list[Ref]] = {}
    newest_caller: list[Ref] = []
    without_id: list[tuple[Ref, list[Ref]]] = []
    for position, message in enumerate(messages):
        calls = calls_of(message)
        if calls:
            newest_caller = [Ref(position, slot) for slot in range(len(calls))]
            by_id: dict[str, list[Ref]] = {}
            for ref, call in zip(newest_caller, calls, strict=True):
                by_id.setdefault(call.id, []).append(ref)
            open_calls.update(by_id)
        for slot, answer in enumerate(answers_of(message)):
            ref = Ref(position, slot)
            if answer.call_id:
                _settle(pairing, ref, open_calls.get(answer.call_id, ()))
            else:
                without_id.append((ref, newest_caller))
    for ref, caller in without_id:
        _settle(pairing, ref, caller)
    return pairing


def _settle(pairing: Pairing, answer: Ref, candidates: Iterable[Ref]) -> None:
    known = False
    for call in candidates:
        if call not in pairing.answers:
            pairing.answers[call] = answer
            return
        known = True
    (pairing.repeats if known else pairing.orphans).add(answer)
