"""Build a message from fields that were checked before, past pydantic's validation. A measured trick, kept here alone.

What it gives: 5 µs for a message where `model_construct` takes 22 and the constructor 61, and most of reading a thread
is building messages. With `model_construct` a turn takes 3 to 12 % more CPU at 100 turns, 12 to 25 % more at 1,000
(docs/decisions/0024). It writes the four attributes that every pydantic model has (`__dict__`,
`__pydantic_fields_set__`, `__pydantic_extra__`, `__pydantic_private__`).

To remove it: set `ENABLED` to False, then inline `model_construct` into `JsonTemplate.build`.
"""

from __future__ import annotations

from typing import Any

from langchain_core.messages import BaseMessage

ENABLED = True

_FIELD_NAMES: dict[type[BaseMessage], set[str]] = {}
"""What is set in a message: one set for all of a class, since each name is in it already. A set of its own would be
half of what a message takes in memory."""


def build_message(kind: type[BaseMessage], fields: dict[str, Any], extra: dict[str, Any]) -> BaseMessage:
    """A message with all fields of its class; it owns both dicts from here on."""
    names = _FIELD_NAMES.get(kind)
    if names is None:
        names = _FIELD_NAMES[kind] = set(kind.model_fields)
    if not ENABLED:
        return kind.model_construct(names, **fields, **extra)
    message = object.__new__(kind)
    _set(message, "__dict__", fields)
    _set(message, "__pydantic_fields_set__", names)
    _set(message, "__pydantic_extra__", extra)
    _set(message, "__pydantic_private__", None)
    return message


_set = object.__setattr__
