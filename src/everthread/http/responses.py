"""JSON responses: by orjson, and by the standard library where that refuses (half surrogate pairs, huge numbers)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from datetime import datetime
from typing import Any

import orjson
from starlette.responses import Response


def dumps(value: object) -> bytes:
    """JSON as bytes; times as ISO 8601, bytes as hexadecimal."""
    try:
        return orjson.dumps(value, default=_to_plain)
    except TypeError:
        return json.dumps(value, default=_to_plain).encode()


def _to_plain(value: object) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence | Set):
        return list(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    raise TypeError(f"{type(value).__name__} is not JSON serializable")


class JsonResponse(Response):
    """A response of plain values: no model is between, since a message may hold what no model can write."""

    media_type = "application/json"

    def render(self, content: object) -> bytes:
        return dumps(content)
