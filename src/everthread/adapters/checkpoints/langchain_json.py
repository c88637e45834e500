"""A LangChain message as the JSON payload that the log keeps, and values that JSON has no word for.

A tool may put anything into an artifact or into metadata. What is JSON stays as it is. A value of a few plain types is
written as `{"__everthread__": "bytes", "value": …}` and comes back equal. Any other object leaves its class and the
beginning of its `repr`, and comes back as that note: reviving it would mean running somebody's code on stored data.
"""

from __future__ import annotations

import base64
import json
import reprlib
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal, InvalidOperation
from hashlib import sha256
from typing import Any
from uuid import UUID

from langchain_core.messages import BaseMessage

from everthread.core.errors import Invalid
from everthread.history.made_ids import made_id as made_id

TAG = "__everthread__"
_NOTE = reprlib.Repr()
_NOTE.maxother = 1000

_Writer = Callable[[Any], Any]
_WRITERS: dict[type, tuple[str, _Writer]] = {
    bytes: ("bytes", lambda value: base64.b64encode(value).decode()),
    bytearray: ("bytearray", lambda value: base64.b64encode(value).decode()),
    datetime: ("datetime", datetime.isoformat),
    date: ("date", date.isoformat),
    time: ("time", time.isoformat),
    Decimal: ("decimal", str),
    UUID: ("uuid", str),
    set: ("set", lambda value: _sorted_values(value)),
    frozenset: ("frozenset", lambda value: _sorted_values(value)),
}
_READERS: dict[str, _Writer] = {
    "bytes": lambda value: base64.b64decode(value, validate=True),
    "bytearray": lambda value: bytearray(base64.b64decode(value, validate=True)),
    "datetime": datetime.fromisoformat,
    "date": date.fromisoformat,
    "time": time.fromisoformat,
    "decimal": Decimal,
    "uuid": UUID,
    "set": set,
    "frozenset": frozenset,
    "float": float,
    "mapping": dict,
}


def to_json_value(value: Any) -> Any:
    """The value as JSON. A tuple becomes a list."""
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, float):
        return value if value - value == 0 else {TAG: "float", "value": str(value)}
    if isinstance(value, Mapping):
        return _json_mapping(value)
    if isinstance(value, list | tuple):
        return [to_json_value(item) for item in value]
    kind, write = _WRITERS.get(type(value), ("", None))
    return _note(value) if write is None else {TAG: kind, "value": write(value)}


def _json_mapping(value: Mapping[Any, Any]) -> dict[str, Any]:
    """Keys that are not strings, and a key that looks like our own tag, are written beside their values."""
    if all(type(key) is str for key in value) and TAG not in value:
        return {key: to_json_value(inner) for key, inner in value.items()}
    return {TAG: "mapping", "value": [[to_json_value(key), to_json_value(inner)] for key, inner in value.items()]}


def _sorted_values(value: set[Any] | frozenset[Any]) -> list[Any]:
    """A set's order differs from process to process; the same set must not look like another revision."""
    return sorted((to_json_value(item) for item in value), key=repr)


def _note(value: object) -> dict[str, Any]:
    kind = type(value)
    return {TAG: "note", "class": f"{kind.__module__}.{kind.__qualname__}", "repr": _NOTE.repr(value)}


def from_json_value(value: Any) -> Any:
    """The value that `to_plain` wrote; what only looks like it stays as it is."""
    if isinstance(value, list):
        return [from_json_value(item) for item in value]
    if not isinstance(value, dict):
        return value
    inner = {key: from_json_value(item) for key, item in value.items()}
    read = _READERS.get(kind) if isinstance(kind := inner.get(TAG), str) else None
    if read is None:
        return inner
    try:
        return read(inner.get("value"))
    except (ValueError, TypeError, AttributeError, InvalidOperation):
        return inner


def from_langchain(message: BaseMessage) -> dict[str, Any]:
    """The complete dump of a message: what `append(message)` stores.

    Only where a message holds what JSON does not know (bytes or times in an artifact, say) do the two differ:
    `append` refuses it, and this writes it so that `to_langchain` gives it back (see `plain`).
    """
    try:
        return json_payload(message.model_dump(warnings=False))
    except (ValueError, RecursionError) as problem:  # a circle in an artifact
        raise Invalid(f"cannot be parsed: {problem}", field=f"message {message.id}") from problem


def json_payload(payload: Mapping[str, Any]) -> dict[str, Any]:
    """A payload of its own, all JSON; a later change of the original does not reach it."""
    return {key: to_json_value(value) for key, value in payload.items()}


def subgraph_conversation_id(thread_id: str, namespace: Sequence[str], first_message_id: str) -> str:
    """The id of the conversation that a subgraph's own messages go to; the same again for a resumed run."""
    name = json.dumps([thread_id, list(namespace), first_message_id])
    return "subagent-" + sha256(name.encode()).hexdigest()[:32]
