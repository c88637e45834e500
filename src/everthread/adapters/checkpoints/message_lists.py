"""Which messages of a list are known, and unchanged, without looking into each: by the objects themselves.

A list of thousands comes back with every checkpoint, and almost all of it is what was handed out or taken in before.
A message counts as unchanged only if it is the same object, its attributes are equal to what they were, and what can
be changed in place has the same bytes. Anything else is dumped and compared, because middleware edits in place.

What a message was is most often known already, from the mould that it was cast from. Lists of them are compared, and
their references counted, without entering Python code: a loop over the messages would cost ten times as much, and would
cost it with every checkpoint.

What was handed out and nobody has any more, by the count of its references, can be handed out again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, compress, count, repeat
from operator import attrgetter, is_
from sys import getrefcount
from typing import Any

from langchain_core.messages import BaseMessage
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from everthread.adapters.checkpoints.row_format import MessageRef
from everthread.adapters.checkpoints.stored_message import IMMUTABLE, StoredMessage, is_simple

_dumped = JsonPlusSerializer().dumps_typed
"""Only to compare bytes with bytes: nothing that it writes is kept."""
_extra_of = attrgetter("__pydantic_extra__")
_LISTED = 3
"""References to a message that nobody else has: its snapshot's, that of the stretch it stands in, and one to count
them by. To what is in it: its own, that of the stretch or of a list made to look at it, and the same."""
_MAX_SEGMENTS = 16
"""A list that was continued more often is noted as a whole again …"""
_MAX_ADDED = 64
"""… and so is one that was handed out again with more than so many after those that were handed out at first."""


class ListSnapshot:
    """A list as it was handed out or taken in."""

    __slots__ = ("_stretches", "messages", "refs")

    def __init__(
        self,
        messages: Sequence[BaseMessage],
        refs: Sequence[MessageRef] = (),
        *,
        begun: ListSnapshot | None = None,
        casts: Sequence[StoredMessage] | None = None,
    ) -> None:
        """With `begun`, a snapshot of the first of these messages that has just been found unchanged; with `casts`,
        what all of them have been cast from, and nobody else has them yet."""
        self.messages: list[BaseMessage] = list(messages)
        self.refs = list(refs)
        known = () if begun is None else begun._to_share(len(messages), is_handed_out=casts is not None)
        start = sum(len(one.messages) for one in known)
        rest = [] if known and start == len(messages) else [_Segment(self.messages[start:], casts and casts[start:])]
        self._stretches: tuple[_Segment, ...] = (*known, *rest)

    def _to_share(self, length: int, *, is_handed_out: bool) -> tuple[_Segment, ...]:
        """The stretches that a list of this length which continues this one has in common with it."""
        if not is_handed_out:
            return self._stretches if len(self._stretches) < _MAX_SEGMENTS else ()
        return self._stretches[:1] if length - len(self._stretches[0].messages) <= _MAX_ADDED else ()

    @classmethod
    def _of(cls, stretches: Sequence[_Segment], refs: Sequence[MessageRef]) -> ListSnapshot:
        made = cls.__new__(cls)
        made.messages = list(chain.from_iterable(one.messages for one in stretches))
        made.refs, made._stretches = list(refs), tuple(stretches)
        return made

    def split(self, refs: Sequence[MessageRef], serde: SerializerProtocol) -> tuple[ListSnapshot, ListSnapshot] | None:
        """The beginning of what was handed out for these references and nobody has any more, ready to be handed out
        again, and the rest; None if there is nothing of it."""
        number, size = 0, 0
        for stretch in self._stretches:
            end = size + len(stretch.messages)
            if end > len(refs) or self.refs[size:end] != refs[size:end] or not stretch.is_free():
                break
            number, size = number + 1, end
        if not size:
            return None
        first = [stretch.again(serde) for stretch in self._stretches[:number]]
        return self._of(first, self.refs[:size]), self._of(self._stretches[number:], self.refs[size:])

    def is_in_use(self) -> bool:
        """Whether somebody else has one of its messages; if not, none of them will ever come back."""
        return max(_references(self.messages), default=0) > _LISTED

    def is_continued_by(self, messages: Sequence[BaseMessage]) -> bool:
        """Whether a list begins with the very objects of this one."""
        return len(messages) >= len(self.messages) and all(map(is_, self.messages, messages))

    def known_prefix(self, messages: Sequence[BaseMessage]) -> int:
        """How many messages at the beginning of a list are those of this one, unchanged: all of it, or none."""
        return len(self.messages) if self.is_continued_by(messages) and self._is_unchanged() else 0

    def _is_unchanged(self) -> bool:
        return all(stretch.is_unchanged() for stretch in self._stretches)

    def known(self, messages: Sequence[BaseMessage]) -> list[MessageRef | None]:
        """The entries of messages that stood in this list, wherever they stand now; None for one that changed."""
        places = [self._place(message) for message in messages]
        if all(place is None for place in places) or not all(one.has_same_bytes() for one in self._stretches):
            return [None] * len(messages)
        return [
            self.refs[place] if place is not None and self._has_same_values(message, place) else None
            for message, place in zip(messages, places, strict=True)
        ]

    def ref(self, message: BaseMessage) -> MessageRef | None:
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


class _Segment:
    """Some messages of a list, which later lists share while nothing in it changes."""

    __slots__ = (
        "_are_simple",
        "_casts",
        "_changeable",
        "_empty",
        "_extras",
        "_fields",
        "_packed",
        "_places",
        "messages",
    )

    def __init__(self, messages: Sequence[BaseMessage], casts: Sequence[StoredMessage] | None) -> None:
        self.messages = messages
        self._casts = casts
        """What they were made from; None for messages that others have made."""
        self._are_simple: list[bool] = []
        """Which of them have nothing in them that can be changed in place …"""
        self._empty: list[Any] = []
        """… and the fields of these that could be filled."""
        self._extras = _extras_of(messages)
        self._changeable: list[Any] = [*self._extras]
        self._fields: list[dict[str, Any]] = []
        for message, cast in zip(messages, casts or repeat(None), strict=False):
            fields = vars(message)
            if is_simple(cast):
                self._are_simple.append(True)
                self._fields.append(cast.plain)
                for name, _ in cast.empty:
                    self._empty.append(fields[name])
            else:
                self._are_simple.append(False)
                self._fields.append(fields.copy())
                self._changeable += [one for one in fields.values() if one.__class__ not in IMMUTABLE]
        self._packed = self._pack()
        self._places: dict[int, int] | None = None

    def is_free(self) -> bool:
        """Whether these were made here, and nobody has one of them, or a part of a simple one, or has changed that."""
        if self._casts is None or not _are_listed(self.messages) or not _are_listed(self._empty):
            return False
        simple = [*compress(self.messages, self._are_simple)]
        fields, extras = [*map(vars, simple)], [*map(_extra_of, simple)]
        return (
            _are_listed(fields)
            and _are_listed(extras)
            and not any(extras)
            and _are_equal(fields, [*compress(self._fields, self._are_simple)])
        )

    def again(self, serde: SerializerProtocol) -> _Segment:
        """To be handed out again. Of the others somebody may have what is deep in them: they are cast anew."""
        if all(self._are_simple):
            return self
        assert self._casts is not None
        pairs = zip(self.messages, self._casts, strict=True)
        return _Segment([message if is_simple(cast) else cast.cast(serde) for message, cast in pairs], self._casts)

    def place(self, message: BaseMessage) -> int | None:
        """Where a message stands."""
        if self._places is None:
            self._places = dict(zip(map(id, self.messages), count(), strict=False))
        return self._places.get(id(message))

    def is_unchanged(self) -> bool:
        is_same = _are_equal([*map(vars, self.messages)], self._fields) and _extras_of(self.messages) == self._extras
        return is_same and self.has_same_bytes()

    def has_same_bytes(self) -> bool:
        """Whether nothing that the messages had then was changed in place."""
        return self._pack() == self._packed

    def _pack(self) -> bytes:
        return _dumped(self._changeable)[1] if self._changeable else b""

    def has_same_values(self, message: BaseMessage, place: int) -> bool:
        has_same_extra = all(any(map(is_, self._extras, repeat(extra))) for extra in _extras_of([message]))
        return has_same_extra and _are_equal([vars(message)], [self._fields[place]])


def _are_equal(fields: list[dict[str, Any]], known: list[dict[str, Any]]) -> bool:
    try:
        return fields == known
    except (ValueError, TypeError, RuntimeError):  # arrays and tables, which were not there before, refuse to compare
        return False


def _are_listed(things: Iterable[object]) -> bool:
    return _references(things) <= {_LISTED}


def _references(things: Iterable[object]) -> set[int]:
    """The numbers of references that they have."""
    return {*map(getrefcount, things)}


def _extras_of(messages: Sequence[BaseMessage]) -> list[dict[str, Any]]:
    """What messages have beside their fields; most have nothing."""
    return list(filter(None, map(_extra_of, messages)))


def is_message_list(value: object) -> bool:
    """Whether a channel holds a list of messages, and at least one."""
    return (
        isinstance(value, list) and bool(value) and all(issubclass(kind, BaseMessage) for kind in set(map(type, value)))
    )
