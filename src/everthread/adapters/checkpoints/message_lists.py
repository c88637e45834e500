"""Which messages of a list are known and unchanged, without looking into each: by the objects themselves.

A list of thousands comes back with every checkpoint, and almost all of it is what was handed out or taken in before. A
message counts as unchanged only if it is the same object, its attributes are equal to what they were, and what can be
changed in place has the same bytes. Anything else is dumped and compared, because middleware edits in place.

What a message was is mostly known already, from the template that it was built from. Lists of them are compared
without entering Python code: a loop over the messages would cost ten times as much, with every checkpoint.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, count, repeat
from operator import attrgetter, is_
from typing import Any

from langchain_core.messages import BaseMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from everthread.adapters.checkpoints import message_reuse
from everthread.adapters.checkpoints.row_format import MessageRef
from everthread.adapters.checkpoints.stored_message import IMMUTABLE, StoredMessage, is_simple

_dump = JsonPlusSerializer().dumps_typed
"""Only to compare bytes with bytes: nothing that it writes is kept."""
_extra_of = attrgetter("__pydantic_extra__")
_MAX_SEGMENTS = 16
"""A list that was continued more often is recorded as a whole again …"""
_MAX_ADDED = 64
"""… and so is one that was handed out again with more than so many after those that were handed out at first."""


class ListSnapshot:
    """A list as it was handed out or taken in."""

    __slots__ = ("_segments", "messages", "refs")

    def __init__(
        self,
        messages: Sequence[BaseMessage],
        refs: Sequence[MessageRef] = (),
        *,
        prefix: ListSnapshot | None = None,
        stored: Sequence[StoredMessage] | None = None,
    ) -> None:
        """With `prefix`, a snapshot of the first of these messages that has just been found unchanged; with `stored`,
        what all of them were built from, and nobody else has them yet."""
        self.messages: list[BaseMessage] = list(messages)
        self.refs = list(refs)
        shared: tuple[_Segment, ...] = ()
        if prefix is not None and stored is None:
            shared = prefix._segments if len(prefix._segments) < _MAX_SEGMENTS else ()
        elif prefix is not None and len(messages) - len(prefix._segments[0].messages) <= _MAX_ADDED:
            shared = prefix._segments[:1]
        start = sum(len(segment.messages) for segment in shared)
        is_complete = shared and start == len(messages)
        rest = [] if is_complete else [_Segment(self.messages[start:], stored and stored[start:])]
        self._segments: tuple[_Segment, ...] = (*shared, *rest)

    @classmethod
    def _of(cls, segments: Sequence[_Segment], refs: Sequence[MessageRef]) -> ListSnapshot:
        snapshot = cls.__new__(cls)
        snapshot.messages = list(chain.from_iterable(segment.messages for segment in segments))
        snapshot.refs, snapshot._segments = list(refs), tuple(segments)
        return snapshot

    def split(self, refs: Sequence[MessageRef]) -> tuple[ListSnapshot, ListSnapshot] | None:
        """Split off the beginning of this list that matches these references and that nobody holds any more, so that
        it can be handed out again; None if there is no such beginning."""
        number, size = 0, 0
        for segment in self._segments:
            end = size + len(segment.messages)
            if end > len(refs) or self.refs[size:end] != refs[size:end] or not segment.is_free():
                break
            number, size = number + 1, end
        if not size:
            return None
        return self._of(self._segments[:number], self.refs[:size]), self._of(self._segments[number:], self.refs[size:])

    def is_in_use(self) -> bool:
        """Whether somebody else holds one of its messages; if not, none of them will ever come back."""
        return message_reuse.is_any_referenced(self.messages)

    def is_continued_by(self, messages: Sequence[BaseMessage]) -> bool:
        """Whether a list begins with the very objects of this one."""
        return len(messages) >= len(self.messages) and all(map(is_, self.messages, messages))

    def known_prefix(self, messages: Sequence[BaseMessage]) -> int:
        """How many messages at the beginning of a list are unchanged messages of this one: all of this one, or none."""
        is_same = self.is_continued_by(messages) and all(segment.is_unchanged() for segment in self._segments)
        return len(self.messages) if is_same else 0

    def known(self, messages: Sequence[BaseMessage]) -> list[MessageRef | None]:
        """The entries of messages that stood in this list, wherever they stand now; None for one that changed."""
        found = [self._find(message) for message in messages]
        if all(match is None for match in found) or not all(segment.has_same_bytes() for segment in self._segments):
            return [None] * len(messages)
        return [
            None if match is None or not match[0].has_same_values(message, match[1]) else self.refs[match[2]]
            for message, match in zip(messages, found, strict=True)
        ]

    def ref(self, message: BaseMessage) -> MessageRef | None:
        """The entry of a message that stood in this list, changed or not."""
        match = self._find(message)
        return None if match is None else self.refs[match[2]]

    def _find(self, message: BaseMessage) -> tuple[_Segment, int, int] | None:
        """Its segment, its position there, and its position in the list."""
        start = 0
        for segment in self._segments:
            if (position := segment.position(message)) is not None:
                return segment, position, start + position
            start += len(segment.messages)
        return None


class _Segment:
    """Some messages of a list, which later lists share while nothing in it changes."""

    __slots__ = ("_changeable", "_empty", "_extras", "_fields", "_is_reusable", "_packed", "_positions", "messages")

    def __init__(self, messages: Sequence[BaseMessage], stored: Sequence[StoredMessage] | None) -> None:
        self.messages = messages
        self._empty: list[Any] = []
        """The fields of simple messages that could be filled."""
        self._extras = _extras_of(messages)
        self._changeable: list[Any] = [*self._extras]
        self._fields: list[dict[str, Any]] = []
        self._is_reusable = stored is not None
        """Whether all were built here and have nothing in them that can be changed in place."""
        for message, template in zip(messages, stored or repeat(None), strict=False):
            fields = vars(message)
            if is_simple(template):
                self._fields.append(template.plain)
                for name, _ in template.empty:
                    self._empty.append(fields[name])
            else:
                self._is_reusable = False
                self._fields.append(fields.copy())
                self._changeable += [one for one in fields.values() if one.__class__ not in IMMUTABLE]
        self._packed = self._pack()
        self._positions: dict[int, int] | None = None

    def is_free(self) -> bool:
        """Whether these may be handed out again: nobody holds one of them or a part of it, or has changed it."""
        if not (message_reuse.ENABLED and self._is_reusable) or not message_reuse.are_unreferenced(self.messages):
            return False
        fields, extras = [*map(vars, self.messages)], [*map(_extra_of, self.messages)]
        return (
            message_reuse.are_unreferenced(self._empty)
            and message_reuse.are_unreferenced(fields)
            and message_reuse.are_unreferenced(extras)
            and not any(extras)
            and _are_equal(fields, self._fields)
        )

    def position(self, message: BaseMessage) -> int | None:
        """Where a message stands."""
        if self._positions is None:
            self._positions = dict(zip(map(id, self.messages), count(), strict=False))
        return self._positions.get(id(message))

    def is_unchanged(self) -> bool:
        is_same = _are_equal([*map(vars, self.messages)], self._fields) and _extras_of(self.messages) == self._extras
        return is_same and self.has_same_bytes()

    def has_same_bytes(self) -> bool:
        """Whether nothing that the messages had then was changed in place."""
        return self._pack() == self._packed

    def _pack(self) -> bytes:
        return _dump(self._changeable)[1] if self._changeable else b""

    def has_same_values(self, message: BaseMessage, position: int) -> bool:
        has_same_extra = all(any(map(is_, self._extras, repeat(extra))) for extra in _extras_of([message]))
        return has_same_extra and _are_equal([vars(message)], [self._fields[position]])


def _are_equal(fields: list[dict[str, Any]], known: list[dict[str, Any]]) -> bool:
    try:
        return fields == known
    except (ValueError, TypeError, RuntimeError):  # arrays and tables, which were not there before, refuse to compare
        return False


def _extras_of(messages: Sequence[BaseMessage]) -> list[dict[str, Any]]:
    """The extra attributes of messages; most have none."""
    return list(filter(None, map(_extra_of, messages)))


def is_message_list(value: object) -> bool:
    """Whether a channel holds a list of messages, and at least one."""
    return (
        isinstance(value, list) and bool(value) and all(issubclass(kind, BaseMessage) for kind in set(map(type, value)))
    )
