"""Named places where a crash test may pull the plug. In production `reach` is one comparison."""

from __future__ import annotations

from collections.abc import Callable

FAILPOINTS = (
    "create.written",
    "append.locked",
    "append.entries_written",
    "blob.written",
    "blob.deleted",
    "append.search_written",
    "append.head_written",
    "ids.indexed",
    "index.written",
    "commit.before",
    "commit.after",
    "ack.before",
    "mark.written",
    "fork.written",
    "compaction.written",
    "checkpoint.written",
    "job.written",
    "vectors.written",
    "erase.words_removed",
    "erase.payloads_blanked",
    "erase.recorded",
    "erase.committed",
    "erase.compacted",
    "migrate.begun",
    "migrate.step_done",
    "migrate.before_commit",
)
"""Every name that is reached somewhere; the crash tests walk this list and fail on one never reached."""

_armed: Callable[[str], None] | None = None


def arm(trap: Callable[[str], None] | None) -> None:
    """Call `trap(name)` at each place reached from now on; None disarms."""
    global _armed
    _armed = trap


def reach(name: str) -> None:
    """Mark that the flow is at this place."""
    if _armed is not None:
        _armed(name)
