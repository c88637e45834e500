"""Values that JSON has no word for, as JSON: what a framework's message may hold, for `ingest` and for checkpoints.

A tool may put anything into an artifact or into metadata. What is JSON stays as it is. A value of a few plain types is
written as `{"__everthread__": "bytes", "value": …}` and comes back equal. Any other object leaves its class and the
beginning of its `repr`, and comes back as that note: reviving it would mean running somebody's code on stored data.
"""

from __future__ import annotations

import base64
import reprlib
from collections.abc import Callable, Mapping
from datetime import date, datetime, time
from decimal import Decimal, InvalidOperation
from typing import Any
from uuid import UUID

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
    """The value that `to_json_value` wrote; what only looks like it stays as it is."""
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


def json_payload(payload: Mapping[str, Any]) -> dict[str, Any]:
    """A payload of its own, all JSON; a later change of the original does not reach it."""
    return {key: to_json_value(value) for key, value in payload.items()}
