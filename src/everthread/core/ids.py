"""Ids: what is allowed, and UUIDv7 for what comes without one."""

from __future__ import annotations

import os
import time
from hashlib import blake2b
from typing import NewType
from uuid import UUID

from everthread.core.errors import Invalid

Owner = NewType("Owner", str)

LOCAL: Owner = Owner("local")
"""The owner of everything when a program serves only itself."""

MAX_ID_CHARACTERS = 128


def new_id() -> str:
    """A UUIDv7: unique everywhere, and roughly in order of time for a human eye (never relied upon)."""
    tail = int.from_bytes(os.urandom(10), "big")
    number = (time.time_ns() // 1_000_000 & (1 << 48) - 1) << 80 | tail
    number = number & ~(0xF << 76) | 0x7 << 76
    number = number & ~(0x3 << 62) | 0x2 << 62
    digits = f"{number:032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def check_id(value: object, field: str) -> str:
    """The id as given, or Invalid: a string of 1 to 128 characters that any database can hold."""
    if not isinstance(value, str):
        raise Invalid(f"must be a string, not {type(value).__name__}", field=field)
    if not value:
        raise Invalid(f"must not be empty; use 1 to {MAX_ID_CHARACTERS} characters", field=field)
    if len(value) > MAX_ID_CHARACTERS:
        raise Invalid(
            f"must have at most {MAX_ID_CHARACTERS} characters, this has {len(value)}; use a shorter id", field=field
        )
    return check_text(value, field)


def check_conversation_id(value: object, field: str = "id") -> str:
    """A conversation's id, or Invalid. Programs that number theirs may give the number: 123 is "123"; or a UUID."""
    return check_id(str(value) if isinstance(value, int | UUID) and not isinstance(value, bool) else value, field)


def check_text(value: str, field: str) -> str:
    """Plain text for a database column: no NUL and no half of a surrogate pair."""
    if "\x00" in value:
        raise Invalid("must not contain a NUL character; remove it", field=field)
    if value.isascii():
        return value
    try:
        value.encode()
    except UnicodeEncodeError as problem:
        raise Invalid(
            f"holds half of a surrogate pair at position {problem.start}; remove it", field=field
        ) from problem
    return value


def owner_scope(owner: str) -> str:
    """The word that stands for an owner inside a search index: short, and letters and digits only.

    Two owners could in principle share one; so a store still checks the owner of what it found.
    """
    return "o" + blake2b(owner.encode(), digest_size=8).hexdigest()
