"""Who a message in a graph's list is: its own id or, where it has none, one that the next run finds again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from langchain_core.messages import BaseMessage, convert_to_messages

from everthread.adapters.checkpoints.payloads import from_langchain, made_id, plain_payload
from everthread.core import payloads
from everthread.core.errors import Invalid


class Found(NamedTuple):
    """A message as a state holds it. One is made for every message of every event, so it is made cheaply."""

    message: BaseMessage | Mapping[str, Any]
    fields: Mapping[str, Any]
    """A message's fields as they are now: some middleware edits a message in place, so identity says nothing."""
    own_id: str | None

    @property
    def is_instruction(self) -> bool:
        """Whether it tells a reducer to remove something; nobody said it."""
        return self.fields.get("type") == "remove"

    def payload(self) -> dict[str, Any]:
        """The message as JSON, a copy that later edits do not reach."""
        return from_langchain(self.message) if isinstance(self.message, BaseMessage) else plain_payload(self.message)


def find(given: object, position: int) -> Found:
    """A message as it is; LangChain's shorthands, `"hi"` and `("user", "hi")`, as the messages they mean."""
    if isinstance(given, BaseMessage):
        extra = given.__pydantic_extra__
        return Found(given, {**vars(given), **extra} if extra else vars(given), given.id or None)
    if isinstance(given, Mapping):
        own = payloads.message_id(given)
        return Found(given, given, own if own is None or isinstance(own, str) else str(own))
    if isinstance(given, str | tuple | list):
        (meant,) = convert_to_messages([given])
        return find(meant, position)
    raise Invalid(f"a {type(given).__name__} is no message", field=f"messages[{position}]")


class Named(NamedTuple):
    """A message and the id it is logged by."""

    id: str
    found: Found

    def payload(self) -> dict[str, Any]:
        """What the log keeps; a message without an id carries the one it was given."""
        payload = self.found.payload()
        return payload if self.found.own_id == self.id else with_id(payload, self.id)

    def says(self, kept: Mapping[str, Any]) -> bool:
        """Whether the log keeps just this. Asked for every message of every event, so the dump comes last."""
        return self.found.fields == kept or self.payload() == kept


class Naming:
    """Gives the messages of one list their ids, event after event.

    A message without an id gets one made from the thread, its position and what it says: the same list in a later
    run makes the same ids. Within a run an object keeps the id it was given, wherever it moves.
    """

    def __init__(self, scope: Sequence[str]) -> None:
        self._scope = list(scope)
        self._given: dict[int, Named] = {}

    def name_all(self, messages: Iterable[object]) -> dict[str, Named]:
        """The messages by id, in the list's order. Where an id stands twice, the last one is meant."""
        listed: dict[str, Named] = {}
        given: dict[int, Named] = {}
        for position, message in enumerate(messages):
            found = find(message, position)
            if not found.is_instruction:
                named = self._name(found, position)
                listed[named.id] = named
                if named.id != found.own_id:
                    given[id(found.message)] = named
        self._given = given
        return listed

    def _name(self, found: Found, position: int) -> Named:
        known = self._given.get(id(found.message)) if self._given else None
        if known is not None and known.found.message is found.message:
            return Named(known.id, found)
        return Named(self._made(found, position) if found.own_id is None else found.own_id, found)

    def _made(self, found: Found, position: int) -> str:
        return made_id(self._scope, position, found.payload())


def with_id(payload: dict[str, Any], id: str) -> dict[str, Any]:
    """The payload with this id, where its shape keeps it."""
    inner = payloads.fields(payload)
    if inner is payload:
        return {**payload, "id": id}
    place = "kwargs" if payload.get("lc") == 1 else "data"
    return {**payload, place: {**inner, "id": id}}
