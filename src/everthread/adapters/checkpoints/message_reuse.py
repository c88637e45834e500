"""Hand out messages again that nobody holds any more, by their reference counts. A measured trick, kept here alone.

What it gives: if they are built again for every read, the messages of a thread are most of what Python's collector
has to look through. Where messages have nothing in them that can be changed in place (no tool calls, no metadata), a
turn takes some 20 % less CPU at 100 turns and 28 % less at 1,000 (docs/decisions/0024). Messages with such parts are
built again each time: somebody may hold a part without holding the message, and checking for that costs more
than building (39 % of a turn at 1,000 turns, when it was tried).

CPython only: elsewhere the counts mean something else, no message ever looks unreferenced, and all are built again.

To remove it: set `ENABLED` to False, then delete this module and `ListSnapshot.split`, `ThreadCache.take_back`.
"""

from __future__ import annotations

from collections.abc import Iterable
from sys import getrefcount

ENABLED = True

_OWN_REFERENCES = 3
"""References to a message that nobody else holds: its snapshot's, that of the segment it stands in, and one to count
them by. To what is in it: its own, that of the segment or of a list made to look at it, and the same."""


def are_unreferenced(objects: Iterable[object]) -> bool:
    """Whether nobody but the snapshot holds any of these. Counted into a set without entering Python code: a loop
    would cost ten times as much, with every checkpoint."""
    return {*map(getrefcount, objects)} <= {_OWN_REFERENCES}


def is_any_referenced(objects: Iterable[object]) -> bool:
    """Whether somebody else still holds one of these messages."""
    return not ENABLED or max(map(getrefcount, objects), default=0) > _OWN_REFERENCES
