"""How far a text is trusted. The door that an entry came through decides, and nothing that is made of entries is
trusted more than the least trusted of them: no model, tool or caller can set it.

Tools of any kind are trusted alike, and least: a file, a page and a database row may hold what somebody else wrote, and
our own tools that quote earlier messages could otherwise make more of them than they are.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from everthread.core.entries import EntryOrigin


class Trust(StrEnum):
    """How far a text is trusted: said by the user, by a model, or data that anybody may have written.

    ```python
    memory = await conv.remember("The user lives in Kunming.")
    assert memory.trust is everthread.Trust.USER
    ```
    """

    DATA = "data"
    """From tools, imports and subagents."""
    MODEL = "model"
    """From a model that had read nothing but what users and models said."""
    USER = "user"
    """From the user, or the program that everthread is part of."""


_RISING = tuple(Trust)
_OF_ORIGIN = {EntryOrigin.USER: Trust.USER, EntryOrigin.MODEL: Trust.MODEL}
_OF_ROLE = {"assistant": Trust.MODEL, "tool": Trust.DATA}


def trust_of(origin: int, role: str) -> Trust:
    """How far an entry is trusted. One from before origins were kept is judged by its role."""
    if origin == EntryOrigin.UNKNOWN:
        return _OF_ROLE.get(role, Trust.USER)
    return _OF_ORIGIN.get(EntryOrigin(origin), Trust.DATA)


def is_trusted_as(one: Trust, other: Trust) -> bool:
    """Whether one is trusted at least as far as the other."""
    return _RISING.index(one) >= _RISING.index(other)


def least_trust(trusts: Iterable[Trust]) -> Trust:
    """What is made of all of these is trusted as the least of them; what is made of nothing, as the program's own."""
    return min(trusts, key=_RISING.index, default=Trust.USER)
