"""Checks of arguments that reading and writing share."""

from __future__ import annotations

from everthread.core.errors import Invalid
from everthread.core.log import BranchName
from everthread.core.nouns import Branch

MAX_TITLE_CHARACTERS = 1000
MAX_COUNT = (1 << 32) - 1
"""The greatest possible length of a log: stores keep a seq in 32 bits of their keys."""


def check_count(value: object, field: str, *, most: int = MAX_COUNT) -> int:
    """Return the value. Raises Invalid unless it is a whole number from 0 to `most`."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise Invalid(f"must be a whole number, not {type(value).__name__}", field=field)
    if value < 0:
        raise Invalid(f"must be 0 or more, not {value}", field=field)
    if value > most:
        raise Invalid(f"must be at most {most}; read page by page", field=field)
    return value


def check_branch(branch: Branch | BranchName) -> BranchName:
    """A branch, its id, or the seq of the message a path ends at."""
    if isinstance(branch, Branch):
        return branch.id
    if isinstance(branch, bool) or not isinstance(branch, str | int | None):
        raise Invalid(f"must be a Branch, its id or a seq, not {type(branch).__name__}", field="branch")
    return check_count(branch, "branch") if isinstance(branch, int) else branch
