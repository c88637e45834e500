"""Events as they are kept: what the event before said already is not written again.

A graph streams its whole state after each step, and what is known of a message with each of its tokens. Kept as they
come, 50 steps over a history of 300 messages are 15 MB; folded, they are the history once and then what was added.

    folding = Folding(); kept = [folding.fold(event, data) for …]
    unfolding = Folding(); data = unfolding.unfold(event, kept)      gives the same back, in the same order

Only whole members of an object or a list, and the beginning of a list in it, are taken from the event of the same name
before it. Data are plain JSON.
"""

from __future__ import annotations

from typing import Any

import orjson

from everthread.http.protocol.wire import Json

_WHOLE = "="
"""What is written out."""
_MEMBERS = "~"
"""Each member of an object or a list by itself; one that says nothing is as before."""
_KEPT, _ADDED = "n", "+"
"""A list as before, up to this many, and then these."""


class Folding:
    """Remembers of each kind of event the newest, to fold the next or to unfold it."""

    def __init__(self) -> None:
        self._before: dict[str, Any] = {}

    def fold(self, event: str, data: Any) -> Json:
        """What to keep of an event."""
        before, self._before[event] = self._before.get(event), data
        if isinstance(before, dict) and isinstance(data, dict) and before:
            return {_MEMBERS: {key: _folded(before.get(key), value) for key, value in data.items()}}
        if isinstance(before, list) and isinstance(data, list) and len(before) == len(data):
            return {_MEMBERS: [_folded(old, new) for old, new in zip(before, data, strict=True)]}
        return {_WHOLE: data}

    def unfold(self, event: str, kept: Json) -> Any:
        """The event that was kept so."""
        data = self._before[event] = _unfolded(self._before.get(event), kept)
        return data


def _folded(before: Any, data: Any) -> Json:
    if before is not None and _are_same(before, data):
        return {}
    if isinstance(before, list) and isinstance(data, list):
        shared = _shared(before, data)
        return {_KEPT: shared, _ADDED: data[shared:]}
    return {_WHOLE: data}


def _shared(before: list[Any], data: list[Any]) -> int:
    """How many the two begin with in common."""
    for place, (old, new) in enumerate(zip(before, data, strict=False)):
        if not _are_same(old, new):
            return place
    return min(len(before), len(data))


def _are_same(before: Any, data: Any) -> bool:
    """Also in what Python calls equal and JSON does not: 1 and true, and the order of members."""
    return bool(before == data) and orjson.dumps(before) == orjson.dumps(data)


def _unfolded(before: Any, kept: Json) -> Any:
    if _WHOLE in kept:
        return kept[_WHOLE]
    members = kept[_MEMBERS]
    if isinstance(members, dict):
        return {key: _member(before.get(key), value) for key, value in members.items()}
    return [_member(old, value) for old, value in zip(before, members, strict=True)]


def _member(before: Any, kept: Json) -> Any:
    if _WHOLE in kept:
        return kept[_WHOLE]
    return before[: kept[_KEPT]] + kept[_ADDED] if _ADDED in kept else before
