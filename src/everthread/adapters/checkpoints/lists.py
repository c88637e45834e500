"""Which messages of a list are known, and unchanged, without looking into each: by the objects themselves.

A list of thousands comes back with every checkpoint, and almost all of it is what was handed out or taken in before.
A message counts as unchanged only if it is the same object, its attributes are equal to what they were, and what can
be changed in place has the same bytes. Anything else is dumped and compared, because middleware edits in place.

What a message was is most often known already, from the mould that it was cast from. It is compared by iterators that
never enter Python code: a loop over the messages would cost ten times as much, and would cost it with every checkpoint.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import count, repeat
from operator import attrgetter, eq, is_
from sys import getrefcount
from typing import Any

from langchain_core.messages import BaseMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from everthread.adapters.checkpoints.elements import Ref
from everthread.adapters.checkpoints.moulds import IMMUTABLE, Cast, is_simple

_pack = JsonPlusSerializer().dumps_typed
"""Only to compare bytes with bytes: nothing that it writes is kept."""
_extra_of = attrgetter("__pydantic_extra__")
_UNKNOWN = repeat(None)
_OWN_REFERENCES = 3
"""To a message: of its snapshot, of the stretch it stands in, and of who counts them."""
_MOST_STRETCHES = 16
"""A list that was continued more often is noted as a whole again."""


class Snapshot:
    """A list as it was handed out or taken in."""

    __slots__ = ("_stretches", "messages", "refs")

    def __init__(
        self,
        messages: Sequence[BaseMessage],
        refs: Sequence[Ref] = (),
        *,
        begun: Snapshot | None = None,
        casts: Iterable[Cast | None] = _UNKNOWN,
    ) -> None:
        """With `begun`, a snapshot of the first of these messages that has just been found unchanged; with `casts`,
        what all of them have just been cast from, and nobody else has them yet."""
        self.messages: list[BaseMessage] = list(messages)
        self.refs = list(refs)
        known = () if begun is None or len(begun._stretches) >= _MOST_STRETCHES else begun._stretches
        rest = self.messages[sum(len(one.messages) for one in known) :]
        self._stretches: tuple[_Stretch, ...] = (*known, _Stretch(rest, casts))

    def is_in_use(self) -> bool:
        """Whether somebody else has one of its messages; if not, none of them will ever come back."""
        return any(map(_OWN_REFERENCES.__lt__, map(getrefcount, self.messages)))

    def is_continued_by(self, messages: Sequence[BaseMessage]) -> bool:
        """Whether a list begins with the very objects of this one."""
        return len(messages) >= len(self.messages) and all(map(is_, self.messages, messages))

    def known_prefix(self, messages: Sequence[BaseMessage]) -> int:
        """How many messages at the beginning of a list are those of this one, unchanged: all of it, or none."""
        return len(self.messages) if self.is_continued_by(messages) and self._is_unchanged() else 0

    def _is_unchanged(self) -> bool:
        return all(stretch.is_unchanged() for stretch in self._stretches)

    def known(self, messages: Sequence[BaseMessage]) -> list[Ref | None]:
        """The entries of messages that stood in this list, wherever they stand now; None for one that changed."""
        places = [self._place(message) for message in messages]
        if all(place is None for place in places) or not all(one.has_same_bytes() for one in self._stretches):
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
        start = 0
        for stretch in self._stretches:
            if (place := stretch.place(message)) is not None:
                return start + place
            start += len(stretch.messages)
        return None

    def _has_same_values(self, message: BaseMessage, place: int) -> bool:
        for stretch in self._stretches:
            if place < len(stretch.messages):
                return stretch.has_same_values(message, place)
            place -= len(stretch.messages)
        return False


class _Stretch:
    """Some messages of a list, which later lists share while nothing in it changes."""

    __slots__ = ("_changeable", "_extras", "_fields", "_packed", "_places", "messages")

    def __init__(self, messages: Sequence[BaseMessage], casts: Iterable[Cast | None]) -> None:
        self.messages = messages
        self._extras = _extras_of(messages)
        self._changeable: list[Any] = [*self._extras]
        self._fields: list[dict[str, Any]] = []
        for message, cast in zip(messages, casts, strict=False):
            if is_simple(cast):
                self._fields.append(cast.plain)
            else:
                self._fields.append(vars(message).copy())
                self._changeable += [one for one in vars(message).values() if one.__class__ not in IMMUTABLE]
        self._packed = _pack(self._changeable)[1]
        self._places: dict[int, int] | None = None

    def place(self, message: BaseMessage) -> int | None:
        """Where a message stands."""
        if self._places is None:
            self._places = dict(zip(map(id, self.messages), count(), strict=False))
        return self._places.get(id(message))

    def is_unchanged(self) -> bool:
        is_same = _have(self.messages, self._fields) and _extras_of(self.messages) == self._extras
        return is_same and self.has_same_bytes()

    def has_same_bytes(self) -> bool:
        """Whether nothing that the messages had then was changed in place."""
        return _pack(self._changeable)[1] == self._packed

    def has_same_values(self, message: BaseMessage, place: int) -> bool:
        has_same_extra = all(any(map(is_, self._extras, repeat(extra))) for extra in _extras_of([message]))
        return has_same_extra and _have([message], [self._fields[place]])


def _have(messages: Sequence[BaseMessage], fields: Iterable[dict[str, Any]]) -> bool:
    try:
        return all(map(eq, map(vars, messages), fields))
    except (ValueError, TypeError, RuntimeError):  # arrays and tables, which were not there before, refuse to compare
        return False


def _extras_of(messages: Sequence[BaseMessage]) -> list[dict[str, Any]]:
    """What messages have beside their fields; most have nothing."""
    return list(filter(None, map(_extra_of, messages)))


def is_message_list(value: object) -> bool:
    """Whether a channel holds a list of messages, and at least one."""
    return (
        isinstance(value, list) and bool(value) and all(issubclass(kind, BaseMessage) for kind in set(map(type, value)))
    )
