"""What repair writes down: every message on its way through it, and every thing that was put right."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from everthread.context.dialect import Fields
from everthread.context.mend import MendKind

RepairKind = (
    MendKind
    | Literal[
        "interrupted",  # a call of a dead run, answered by us
        "orphan_result",  # a result without a call, left out
        "second_result",  # a second result of the same call, left out
        "moved_result",  # a result that stood apart from its call
        "renamed_call",  # a call id that was empty, taken, or not to a provider's taste
        "system_moved",  # a standing instruction in mid conversation, moved to the start
        "system_superseded",  # a standing instruction that a newer one of its key replaces, left out
        "empty_message",  # a message with nothing in it, left out
        "unknown_role",  # a message no provider has a role for, left out
        "opened",  # a user's word put before a conversation that the assistant begins
        "trimmed",  # white space at the end of a closing assistant message
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """One thing that was put right."""

    kind: RepairKind
    index: int
    """Position of the message in the input."""
    call_id: str = ""
    """The id in the input, where a call or a result is concerned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairReport:
    """The repaired view and how it came about."""

    messages: tuple[Fields, ...]
    sources: tuple[tuple[int, ...], ...]
    """For each message of the view the positions in the input it comes from; none when it is ours."""
    repairs: tuple[Repair, ...]


@dataclass(frozen=True, slots=True)
class Item:
    """A message of the view, and the positions in the input it comes from."""

    message: Fields
    sources: tuple[int, ...]


@dataclass(slots=True)
class Ledger:
    """What has been done so far."""

    repairs: list[Repair] = field(default_factory=list)

    def note(self, kind: RepairKind, item: Item, call_id: str = "") -> None:
        self.repairs.append(Repair(kind=kind, index=item.sources[0] if item.sources else 0, call_id=call_id))
