"""Which parts of a turn are on: set for the server, for a conversation, for one request; the nearer wins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

from everthread.core.errors import Invalid

METADATA_KEY = "features"
"""Where a conversation's own switches stand in its metadata."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Switches:
    """The features of a turn."""

    summary: bool = True
    """Sum up what is old; off, nothing is compacted by itself."""
    recall: bool = True
    """Bring back what the question asks for from before the window."""
    memory: bool = True
    """Show memories, and let the agent make them."""
    retrieval: bool = True
    """Ask a knowledge base when one fits the question."""


NAMES = tuple(field.name for field in fields(Switches))


def laid_over(switches: Switches, *levels: object) -> Switches:
    """The switches with those of nearer levels over them; Invalid names what is none."""
    for level in levels:
        if level is None:
            continue
        if not isinstance(level, Mapping):
            raise Invalid(f"must be a mapping of switches, not {type(level).__name__}", field=METADATA_KEY)
        for name, value in level.items():
            if name not in NAMES:
                raise Invalid(f"there is no switch {name!r}; there are {', '.join(NAMES)}", field=METADATA_KEY)
            if not isinstance(value, bool):
                raise Invalid(f"must be true or false, not {value!r}", field=f"{METADATA_KEY}.{name}")
        switches = replace(switches, **level)
    return switches
