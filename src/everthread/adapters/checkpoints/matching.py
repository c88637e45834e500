"""Which message of a list is the one that a write held."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from langchain_core.messages import BaseMessage

from everthread.adapters.checkpoints.elements import Ref
from everthread.adapters.checkpoints.holding import Part
from everthread.adapters.checkpoints.moulds import Cast, Mould
from everthread.adapters.checkpoints.putting import Awaited, Item


class Matching:
    """One list, as writes are matched with it: where its first messages stand, and the rest as items."""

    def __init__(
        self,
        messages: Sequence[BaseMessage],
        standing: Sequence[Ref],
        items: Sequence[Item],
        casts: Mapping[Ref, Cast],
    ) -> None:
        self._messages = messages
        self._standing = standing
        self._items = items
        self._casts = casts
        self._taken: set[int] = set()

    def named(self, part: Part) -> Awaited | None:
        """The message with its place in the list; None when the list does not name it."""
        place = self._place_of(part)
        if place is None:
            return None
        self._taken.add(place)
        return Awaited(part, None, place, self._cast_at(place))

    def _place_of(self, part: Part) -> int | None:
        """By the object, by its id or, for one without, by what it says. From the end, where new ones stand."""
        places = range(len(self._messages) - 1, -1, -1)
        message = part.message
        by_object = next((place for place in places if self._messages[place] is message), None)
        if by_object is not None:
            return by_object
        if message.id is not None:
            return next((place for place in places if self._messages[place].id == message.id), None)
        new = range(len(self._standing), len(self._messages))
        return next((place for place in new if place not in self._taken and self._is_new_and_says(place, part)), None)

    def _cast_at(self, place: int) -> Cast | None:
        known = len(self._standing)
        return self._casts.get(self._standing[place]) if place < known else self._items[place - known].cast

    def _is_new_and_says(self, place: int, part: Part) -> bool:
        item = self._items[place - len(self._standing)]
        if item.ref is not None or not isinstance(item.cast, Mould) or not isinstance(part.cast, Mould):
            return False
        return _nameless(item.cast) == _nameless(part.cast)


def _nameless(cast: Mould) -> Mould:
    return cast._replace(plain={**cast.plain, "id": None})
