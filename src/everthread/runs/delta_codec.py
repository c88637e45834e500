"""How the events of a graph are stored: each as its difference to the one of the same kind before.

A graph streams its whole state after each step, and a message's metadata with each of its tokens. Stored as they come,
50 steps over a history of 300 messages are 15 MB; as deltas they are the history once, and then what was added.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import orjson

from everthread.core.turn_events import WHOLE

JsonObject = dict[str, Any]

_MEMBERS = "~"
"""Each member of an object or list by itself; an empty delta says that one is unchanged."""
_KEPT, _ADDED = "n", "+"
"""A list: how many of its first elements are unchanged, and those that follow."""


class MissingBase(Exception):
    """The event that this one is a delta to was pruned or erased."""


class DeltaCodec:
    """Writes each event as its difference to the one of the same kind before, and reads it back.

        encoder = DeltaCodec(); stored = [encoder.encode(kind, data) for …]
        decoder = DeltaCodec(); data = decoder.decode(kind, stored)      in the same order

    Only whole members of an object or list, and the beginning of a list in it, are taken from the event before. Data
    are plain JSON.
    """

    def __init__(self) -> None:
        self._previous: dict[str, Any] = {}

    def encode(self, kind: str, data: Any) -> JsonObject:
        before, self._previous[kind] = self._previous.get(kind), data
        if isinstance(before, dict) and isinstance(data, dict) and before:
            return {_MEMBERS: {key: _encode_member(before.get(key), value) for key, value in data.items()}}
        if isinstance(before, list) and isinstance(data, list) and len(before) == len(data):
            return {_MEMBERS: [_encode_member(old, new) for old, new in zip(before, data, strict=True)]}
        return {WHOLE: data}

    def decode(self, kind: str, delta: Mapping[str, Any]) -> Any:
        before: Any = self._previous.get(kind)
        if WHOLE not in delta and before is None:
            raise MissingBase(kind)
        if WHOLE in delta:
            data = delta[WHOLE]
        elif isinstance(members := delta[_MEMBERS], dict):
            data = {key: _decode_member(before.get(key), value) for key, value in members.items()}
        else:
            data = [_decode_member(old, value) for old, value in zip(before, members, strict=True)]
        self._previous[kind] = data
        return data


def _encode_member(before: Any, data: Any) -> JsonObject:
    if before is not None and _is_same_json(before, data):
        return {}
    if isinstance(before, list) and isinstance(data, list):
        shared = 0
        for old, new in zip(before, data, strict=False):
            if not _is_same_json(old, new):
                break
            shared += 1
        return {_KEPT: shared, _ADDED: data[shared:]}
    return {WHOLE: data}


def _is_same_json(before: Any, data: Any) -> bool:
    """Whether two values are the same JSON. For Python, 1 equals True, and the order of members does not count."""
    if before != data:
        return False
    try:
        return orjson.dumps(before) == orjson.dumps(data)
    except TypeError:  # half of a surrogate pair, or a long number
        return json.dumps(before) == json.dumps(data)


def _decode_member(before: Any, delta: JsonObject) -> Any:
    if WHOLE in delta:
        return delta[WHOLE]
    return before[: delta[_KEPT]] + delta[_ADDED] if _ADDED in delta else before
