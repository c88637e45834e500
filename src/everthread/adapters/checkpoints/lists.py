"""Which messages of a list are known, and unchanged, without looking into each: by the objects themselves.

A list of thousands comes back with every checkpoint, and almost all of it is what was handed out or taken in before.
A message counts as unchanged only if it is the same object, each of its attributes is the same value, and what can
be changed in place has the same bytes. Anything else is dumped and compared, because middleware edits in place.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, count
from operator import is_
from typing import Any

from langchain_core.messages import BaseMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from everthread.adapters.checkpoints.elements import Ref
from everthread.adapters.checkpoints.moulds import IMMUTABLE

_pack = JsonPlusSerializer().dumps_typed
"""Only to compare bytes with bytes: nothing that it writes is kept."""


class Snapshot:
    """A list as it was handed out or taken in."""

    __slots__ = ("_packed", "_places", "_values", "messages", "refs")

    def __init__(self, messages: Sequence[BaseMessage], refs: Sequence[Ref]) -> None:
        self.messages = list(messages)
        self.refs = list(refs)
        self._values = [_values_of(message) for message in messages]
        self._packed = _pack_changeable(self._values)
        self._places: dict[int, int] | None = None

    def known_prefix(self, messages: Sequence[BaseMessage]) -> int:
        """How many messages at the beginning of a list are those of this one, unchanged: all of it, or none."""
        size = len(self.messages)
        if not self.is_continued_by(messages):
            return 0
        values = [_values_of(message) for message in self.messages]
        is_same = all(map(is_, chain.from_iterable(values), chain.from_iterable(self._values)))
        return size if is_same and _pack_changeable(values) == self._packed else 0

    def is_continued_by(self, messages: Sequence[BaseMessage]) -> bool:
        """Whether a list begins with the very objects of this one."""
        return len(messages) >= len(self.messages) and all(map(is_, self.messages, messages))

    def known(self, messages: Sequence[BaseMessage]) -> list[Ref | None]:
        """The entries of messages that stood in this list, wherever they stand now; None for one that changed."""
        places = [self._place(message) for message in messages]
        if all(place is None for place in places) or _pack_changeable(self._values) != self._packed:
            return [None] * len(messages)
        return [
            self.refs[place] if place is not None and self._has_same_values(message, place) else None
            for message, place in zip(messages, places, strict=True)
        ]

    def ref(self, message: BaseMessage) -> Ref | None:
        """The entry of a message that stood in this list, changed or not."""
        place = self._place(message)
        return None if place is None else self.refs[place]

    def _place(self, message: BaseMessage) -> int | None:
        if self._places is None:
            self._places = dict(zip(map(id, self.messages), count(), strict=False))
        return self._places.get(id(message))

    def _has_same_values(self, message: BaseMessage, place: int) -> bool:
        before, now = self._values[place], _values_of(message)
        return len(before) == len(now) and all(map(is_, before, now))


def _values_of(message: BaseMessage) -> tuple[Any, ...]:
    return (*vars(message).values(), message.__pydantic_extra__)


def _pack_changeable(values: Iterable[tuple[Any, ...]]) -> bytes:
    """The bytes of all that can be changed in place and is not empty."""
    return _pack([one for some in values for one in some if one.__class__ not in IMMUTABLE and one])[1]


def is_message_list(value: object) -> bool:
    """Whether a channel holds a list of messages, and at least one."""
    return value.__class__ is list and bool(value) and all(isinstance(item, BaseMessage) for item in value)
