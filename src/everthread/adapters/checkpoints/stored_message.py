"""One message as it is stored, from which copies are built: every reader gets a copy, so that no edit reaches other
readers.

Most messages come back equal from their JSON (`JsonTemplate`). Those that do not (artifacts, custom classes, chunks)
are kept as the serializer's bytes too, and built from these (`SerdeBytes`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from types import NoneType
from typing import Any, NamedTuple, TypeGuard

import orjson
import ormsgpack
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    BaseMessageChunk,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
    messages_from_dict,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from everthread.adapters.checkpoints.unvalidated import build_message

IMMUTABLE = frozenset({str, int, float, bool, bytes, NoneType})
"""Values that cannot be changed in place."""
_SCALARS = IMMUTABLE - {bytes}
"""Those that JSON has."""

_CLASSES: dict[str, type[BaseMessage]] = {
    "ai": AIMessage,
    "chat": ChatMessage,
    "function": FunctionMessage,
    "human": HumanMessage,
    "system": SystemMessage,
    "tool": ToolMessage,
}
"""What stored JSON may become; anything else needs the serializer's bytes."""

_EXACT = frozenset(_CLASSES.values())
_DEFAULTS: dict[type[BaseMessage], dict[str, Any]] = {
    kind: {
        name: None if field.is_required() else field.get_default(call_default_factory=True)
        for name, field in kind.model_fields.items()
    }
    for kind in _EXACT
}
"""The default of a field that a payload leaves out; never handed out itself."""


def is_loggable(message: object) -> bool:
    """Whether it is a whole message, and not a chunk or an instruction to a reducer."""
    return isinstance(message, BaseMessage) and not isinstance(message, RemoveMessage | BaseMessageChunk)


EmptyFields = tuple[tuple[str, type], ...]
"""Fields that can be changed in place and have nothing in them, with what they are."""


class JsonTemplate(NamedTuple):
    """A message that comes back from its JSON."""

    kind: type[BaseMessage]
    plain: dict[str, Any]
    """Its fields in their order. Of those that can be changed in place only the empty ones are there: to be compared
    with, never to be handed out."""
    empty: EmptyFields
    packed: bytes
    """Its fields that can, as MessagePack; b"" when there are none."""
    extra: bytes

    def build(self, serde: SerializerProtocol) -> BaseMessage:
        """A message of the caller's own."""
        fields = self.plain.copy()
        for name, kind in self.empty:
            fields[name] = kind()
        if self.packed:
            fields.update(ormsgpack.unpackb(self.packed))
        return build_message(self.kind, fields, ormsgpack.unpackb(self.extra) if self.extra else {})


class SerdeBytes(NamedTuple):
    """A message that only the serializer brings back."""

    kind: str
    body: bytes

    def build(self, serde: SerializerProtocol) -> BaseMessage:
        message: BaseMessage | dict[str, Any] = serde.loads_typed((self.kind, self.body))
        if isinstance(message, dict):  # for a reader that does not have the class: as the message that it extends
            message = messages_from_dict([{"type": message["type"], "data": message}])[0]
        return message


StoredMessage = JsonTemplate | SerdeBytes


def is_simple(stored: StoredMessage | None) -> TypeGuard[JsonTemplate]:
    """Whether it holds nothing that can be changed in place; then `plain` is all of it."""
    return isinstance(stored, JsonTemplate) and not stored.packed and not stored.extra


def template_of(payload: Mapping[str, Any]) -> JsonTemplate | None:
    """The template for a payload of LangChain's own fields; None when it is of another shape."""
    kind = _CLASSES.get(str(payload.get("type")))
    if kind is None or "content" not in payload:
        return None
    defaults = _DEFAULTS[kind]
    fields = {**defaults, **payload}
    plain: dict[str, Any] = {}
    full: dict[str, Any] = {}
    empty: list[tuple[str, type]] = []
    for name in defaults:
        value = fields.pop(name)
        plain[name] = value
        if value.__class__ in IMMUTABLE:
            continue
        if value:
            full[name] = value
            plain[name] = None
        else:
            empty.append((name, value.__class__))
            plain[name] = _nothing(value.__class__)
    return JsonTemplate(kind, plain, _shared(tuple(empty)), _packed(full), _packed(fields))


@cache
def _nothing(kind: type) -> Any:
    """One empty dict, one empty list."""
    return kind()


@cache
def _shared(empty: EmptyFields) -> EmptyFields:
    """One object for all messages that leave the same fields empty."""
    return empty


def _packed(fields: dict[str, Any]) -> bytes:
    try:
        return ormsgpack.packb(fields) if fields else b""
    except ormsgpack.MsgpackEncodeError:  # integers over 64 bits, half of a surrogate pair
        return _UNPACKABLE


_UNPACKABLE = b"\xc1"
"""A byte that MessagePack never uses: such a message is kept as the serializer's bytes."""


def stored_message(payload: Mapping[str, Any], message: BaseMessage, serde: SerializerProtocol) -> StoredMessage:
    """How to store a message: a template where that gives the message back exactly, else the serializer's bytes."""
    if type(message) in _EXACT and _is_comparable([vars(message), message.model_extra]):
        template = template_of(payload)
        if (
            template is not None
            and _UNPACKABLE not in (template.packed, template.extra)
            and template.build(serde) == message
        ):
            return template
    return SerdeBytes(*serde.dumps_typed(message))


def _is_comparable(value: object) -> bool:
    """Whether it is of JSON's kinds. Others may have no answer to whether they are equal: arrays and tables raise."""
    if isinstance(value, dict | list):
        inside = value.values() if isinstance(value, dict) else value
        return all(_is_comparable(one) for one in inside if one.__class__ not in _SCALARS)
    return isinstance(value, str | int | float | None)


def template_from_raw(raw: bytes) -> JsonTemplate | None:
    """The template for an entry's bytes."""
    try:
        payload = orjson.loads(raw)
    except orjson.JSONDecodeError:
        payload = json.loads(raw)
    template = template_of(payload) if isinstance(payload, dict) else None
    return None if template is None or _UNPACKABLE in (template.packed, template.extra) else template
