"""Messages that are nothing but words as LangChain has them, past pydantic's validation. A trick, kept here alone.

What it gives: 2 µs for a message of a window where LangChain's `convert_to_messages` takes 10 to 16, for each message
of each request. It copies the four attributes that every pydantic model has from a message that LangChain made, and
gives each message containers of its own, since who is handed a message may change it.

To remove it: set `ENABLED` to False, then call `convert_to_messages` in `model_call.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from langchain_core.messages import BaseMessage, convert_to_messages

ENABLED = True

_ROLES: Final = ("user", "assistant", "system")


class _Shape(NamedTuple):
    """What a message of a role is made of."""

    kind: type[BaseMessage]
    fields: Mapping[str, Any]
    containers: Sequence[tuple[str, type[dict[str, Any]] | type[list[Any]]]]
    """The empty ones, by the names of their fields."""


def _shape(message: BaseMessage) -> _Shape:
    fields = message.__dict__
    return _Shape(
        type(message), fields, [(name, type(value)) for name, value in fields.items() if type(value) in (dict, list)]
    )


_SHAPES: Final = {role: _shape(convert_to_messages([{"role": role, "content": ""}])[0]) for role in _ROLES}


def to_langchain(messages: Sequence[dict[str, Any]]) -> list[BaseMessage]:
    """The same messages as `convert_to_messages` makes."""
    if not ENABLED:
        return list(convert_to_messages(messages))
    return [
        _build(_SHAPES[message["role"]], message["content"])
        if _is_plain(message)
        else convert_to_messages([message])[0]
        for message in messages
    ]


def _is_plain(message: Mapping[str, Any]) -> bool:
    """Whether there is nothing but a text in it."""
    return len(message) == 2 and message.get("role") in _SHAPES and type(message.get("content")) is str


def _build(shape: _Shape, text: str) -> BaseMessage:
    fields = {**shape.fields, "content": text}
    for name, make in shape.containers:
        fields[name] = make()
    made = object.__new__(shape.kind)
    _set(made, "__dict__", fields)
    _set(made, "__pydantic_fields_set__", {"content"})
    _set(made, "__pydantic_extra__", {})
    _set(made, "__pydantic_private__", None)
    return made


_set = object.__setattr__
