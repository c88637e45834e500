"""Faults: what a provider would refuse about a request, before it is sent.

An empty list, or one of standing instructions only, is not a request yet: it has no faults.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from everthread.context.rules import ANTHROPIC_RULES, OPENAI_RULES, SHARED_RULES
from everthread.context.shape import Message, Provider, check_messages, check_provider, is_message, role_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One reason to refuse the request."""

    kind: str
    index: int
    """Position of the message in the request."""
    message: str
    """What is wrong, in a sentence."""


def faults(messages: Sequence[Message], provider: Provider | None = None) -> list[Fault]:
    """Every reason why the provider (or, without one, either of them) would refuse; [] when it would accept."""
    check_provider(provider)
    check_messages(messages)
    rules = SHARED_RULES + (OPENAI_RULES if provider != "anthropic" else ())
    rules += ANTHROPIC_RULES if provider != "openai" else ()
    unreadable = list(_unreadable(messages))
    if unreadable:
        return unreadable
    found = [Fault(kind=rule.__name__, index=index, message=text) for rule in rules for index, text in rule(messages)]
    return sorted(found, key=lambda fault: fault.index)


def _unreadable(messages: Sequence[Message]) -> Iterator[Fault]:
    """The other rules only make sense for messages that have a role."""
    for index, message in enumerate(messages):
        if not is_message(message):
            said = role_of(message)
            yield Fault(kind="unknown_role", index=index, message=f"{said!r} is not a role a provider knows")
